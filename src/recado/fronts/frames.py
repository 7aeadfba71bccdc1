"""What the owner and its fronts say to one another, and what a front is begun with."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from recado.config.secrets import Keys
from recado.config.settings import Settings
from recado.domain.messages.changes import (
    AccountChanged,
    Change,
    ConsentRefused,
    FlowChanged,
    KeyChanged,
    NumberChanged,
    OrganizationChanged,
    SocialAccountChanged,
    SubscriptionChanged,
    TemplateChanged,
)
from recado.engine.steady_time import Moment

# From the owner. Beats and changes have a number, one more than the one before, which the front answers with `ACK`.
BEAT: Final = "beat"
"""`[number, moment, until]`: the front may answer, and begin calls, for `ANSWERS_FOR` seconds from then on, by the
machine's clock; calls no longer than `until`, where it is said."""
CHANGE: Final = "change"
"""`[number, name, *fields]`: a record was changed."""
GATE: Final = "gate"
"""`[number, part, more]`: what closes gates of messages was changed (`gates.py`); it is numbered as a change is."""
GATES: Final = "gates"
"""`[part, more]`: all that closed them when the first part was said; what is changed since comes beside."""
SETTLE: Final = "settle"
"""A number, which the front answers with `SETTLED` when each claim that it has begun is committed, or has failed."""
JOIN: Final = "join"
"""`[epoch, moment]`: prepare to send, with this epoch."""
SHARDS: Final = "shards"
"""`[shards, moment]`: numbers of these are yours; they may send from then on, by the machine's clock."""
ASK: Final = "ask"
"""`[asked, what, about]`: a question (`asks.py`)."""
WAITS: Final = "waits"
"""`[part, more]`: what messages of numbers waited for so far (`held.py`), to the process that has them next; from a
front that ends to the owner, which answers the last part with `TAKEN`."""
TAKEN: Final = "taken"
HINT: Final = "hint"
"""`[organization, env, channel, sender, hint]`: for the lane of a number that the front has."""
CLOCK: Final = "clock"
"""What the machine's clock shows is believed, though somebody has set it."""
DRAIN: Final = "drain"
"""Take nothing more, finish what is under way, and end."""
LEAVE: Final = "leave"
"""Another front has the place: end so that no client notices."""

# From a front.
READY: Final = "ready"
"""The program that it is (`program_on_disk`): it listens."""
SENDS: Final = "sends"
"""It is prepared to send."""
SETTLED: Final = "settled"
"""The number of a `SETTLE`."""
ANSWER: Final = "answer"
"""`[asked, part, more]`: a part of the answer; `more`: others follow."""
EMPTIED: Final = "emptied"
"""`[[organization, env, kind, key], …]`: of these batches and campaigns nothing is queued or sending any more."""
EXPECTED: Final = "expected"
"""A moment: a report of the sandbox is due then; those that are due after it may not be said before it is over."""
ACK: Final = "ack"
"""The number of the last beat or change that it has followed."""
ROWS: Final = "rows"
"""`[organization, env, channel, sender, rows]`: accepted and committed. No rows: something of the sender is new."""
QUEUED: Final = "queued"
"""`[[organization, subscription], …]`: deliveries to these were written."""
CHANGED: Final = "changed"
"""`[name, *fields]`: as `CHANGE`, changed by the front."""
ANSWERED: Final = "answered"
"""All requests that it had taken are over, of one that ends; calls to providers may be under way."""
LEFT: Final = "left"
"""Messages of people who told the provider to stop are still to be withdrawn: rows say whose."""
FIGURES: Final = "figures"
"""`{"accepted": {channel: count}, "refused": count, "requests": [[method, path, *figures], …], "dropped": count,
"sent": {channel: count}, "failed": [[channel, code, count], …], "batches": [[name, rows, seconds, counts], …],
"restarts": {kind: count}}` since the last ones; `refused`: by wallets; `dropped`: frames that never went."""

ANSWERS_FOR: Final = 2.0
"""Seconds after a beat: a front that hears nothing of changes answers nothing for longer."""
BEATS_EVERY: Final = 0.5  # seconds

_CHANGES: Final[Mapping[str, type[Change]]] = {
    each.__name__: each
    for each in (
        AccountChanged, FlowChanged, KeyChanged, NumberChanged, OrganizationChanged,
        SocialAccountChanged, SubscriptionChanged, TemplateChanged,
    )
}  # fmt: skip
"""Those of which a front has copies in memory."""


@dataclass(frozen=True, slots=True)
class FrontBeginning:
    """What a front is begun with, by the owner that begins it, and through no file nor argument.

    `owner`: its process id. `present`: the moment, and the machine's seconds then.
    `server`, `sessions`: of the database, as asyncpg connects to it, and the name of the owner's sessions.
    `number`: of the front, from 1. `program`: that of the owner (`program_on_disk`).
    `link`, `gives`, `listening`: descriptors of its link to the owner, of the channel by which it hands connections
    over, and of the sockets that it listens on.
    `limits`, `salt`: the descriptor and the secret of the table of request limits that all share.
    """

    owner: int
    present: Moment
    settings: Settings
    keys: Keys = field(repr=False)
    server: Mapping[str, Any] = field(repr=False)
    sessions: str
    number: int
    program: str
    link: int
    gives: int
    listening: tuple[int, ...]
    limits: int
    salt: bytes = field(repr=False)

    def with_descriptors(self, here: Mapping[int, int]) -> "FrontBeginning":
        """The same in a process in which each descriptor has the number that `here` has for it."""
        return replace(
            self,
            link=here[self.link],
            gives=here[self.gives],
            listening=tuple(here[each] for each in self.listening),
            limits=here[self.limits],
        )


def said_of(change: Change, *, to_senders: bool = False) -> list[Any] | None:
    """The change as a frame says it; None where no front has a copy of what it changes.

    `to_senders`: the fronts send, or those who do are told.
    """
    name = type(change).__name__
    if to_senders and isinstance(change, ConsentRefused):
        return [name, change.recipients]
    return [name, *(getattr(change, each.name) for each in fields(change))] if name in _CHANGES else None


def change_of(said: list[Any]) -> Change:
    """The change that was said."""
    name, *values = said
    if name == ConsentRefused.__name__:
        return ConsentRefused(tuple((organization, env, recipient) for organization, env, recipient in values[0]))
    return _CHANGES[name](*values)
