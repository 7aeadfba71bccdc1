"""The recipients of a batch as columns: a thousand of them become rows in one statement, without a record for each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, Self

import orjson

from recado.domain.channels.policy import Obeys
from recado.domain.links.tracked import TrackedLink


class MessageKind(NamedTuple):
    """What a message obeys until it leaves, and what it costs.

    `asks_grant`: where it is subject to consent, a grant is asked for if its organization wants that (C12.5.5).
    `region`: of the only phones that it goes to; None: to all.
    """

    obeys: Obeys
    price_kind: str
    asks_grant: bool = True
    region: str | None = None


@dataclass(slots=True)
class Recipients:
    """Parallel lists, one place a recipient. `template_vars`, `metadata`, `payloads` and `details` are JSON texts.

    What may be absent as a whole is None: then all have what their batch has. `replaces`: ids of the messages whose
    place these take (C15.4). `held_bases`: of their numbers, as in `dispatch`. `contact_ids`: of an audience, or as the
    recipients name them.
    """

    phones: list[str]
    hashes: list[int]
    template_vars: list[str | None]
    metadata: list[str | None]
    types: list[str] | None = None
    template_ids: list[str | None] | None = None
    payloads: list[str | None] | None = None
    replaces: list[str] | None = None
    sender_ids: list[str] | None = None
    campaign_ids: list[str | None] | None = None
    held_bases: list[int] | None = None
    contact_ids: Sequence[str | None] | None = None
    units: list[int] | None = None
    details: list[str | None] | None = None

    def __len__(self) -> int:
        return len(self.phones)

    def part(self, start: int, stop: int) -> Self:
        """The recipients from `start` up to `stop`."""
        return self._each(lambda column: column[start:stop])

    def only(self, places: Sequence[int]) -> Self:
        """The recipients in these places."""
        return self._each(lambda column: [column[place] for place in places])

    def dump(self) -> str:
        """The text from which `load` makes them again."""
        return orjson.dumps([getattr(self, field.name) for field in fields(self)]).decode()

    @classmethod
    def load(cls, text: str) -> Self:
        """What `dump` wrote."""
        return cls(*orjson.loads(text))

    def _each(self, change: Any) -> Self:
        columns: list[Any] = [getattr(self, field.name) for field in fields(self)]
        changed: list[Any] = [None if column is None else change(column) for column in columns]
        return type(self)(*changed)


@dataclass(slots=True, eq=False)
class Block:
    """Recipients that become messages in one commit: `ids`, as what each of them leaves, and what each holds of the
    wallet (None: not billed). `links`: those of their texts that are tracked, by message (C27.1). `left_out`: how many
    recipients become none, by reason.
    """

    recipients: Recipients
    ids: list[str]
    kinds: list[MessageKind]
    coins: list[int | None]
    price_kinds: list[str | None]
    links: Mapping[str, Sequence[TrackedLink]] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def held(self) -> int:
        """Coins that the whole block holds."""
        return sum(coins for coins in self.coins if coins is not None)
