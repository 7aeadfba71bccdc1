"""What only one channel asks of batches, and of messages that a batch sends again (C15.4, C15.5).

What concerns a batch as a whole is asked once for it; nothing but what a recipient says for itself is read for each.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

from recado.domain.channels.policy import Obeys
from recado.domain.core.steps import Steps
from recado.domain.links.tracked import TrackedLink
from recado.domain.messages.message import Priority
from recado.services.batches.batch_draft import BatchDraft
from recado.storage.batches.batch_rows import MessageKind, Recipients
from recado.storage.messages.resends import Old

MANY: Final = 250
"""Recipients in a turn of the loop: some milliseconds when each has sixty variables."""

Where = tuple[str, str]
"""Organization and environment."""


class RenderedContent(NamedTuple):
    """What one message says beside what its batch says. `payload`, `details`: JSON texts."""

    payload: str | None = None
    units: int = 1
    details: str | None = None


class Misfit(NamedTuple):
    """Why a recipient's own content makes no message."""

    code: str
    message: str


RecipientContent = RenderedContent | str | None
"""The content of one message; a JSON text: the variables of its template, and no more; None: nothing of its own."""


def _no_content(given: Any) -> RecipientContent | Misfit:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTerms:
    """What the messages of a batch share, as its channel decides it once.

    `granted_only`: of what is subject to consent, whether nobody gets it who never agreed (C12.5.5). `usual`: what a
    recipient without content of its own is told; `member`: by which member others have it (None: by none), and
    `content` makes the message's content of that. It is called for each recipient, `in_a_turn` of them in a turn of the
    loop.
    `region`: of the only phones that they go to; None: to all. `lacks`: the channel of what may take their place, where
    nobody sends that in their environment.
    """

    sender_id: str
    due_at: datetime
    ttl: timedelta
    held_ms: int
    obeys: Obeys
    granted_only: bool
    usual: RecipientContent | Misfit = None
    member: str | None = None
    in_a_turn: int = MANY
    content: Callable[[Any], RecipientContent | Misfit] = _no_content
    region: str | None = None
    lacks: str | None = None


class Sort(NamedTuple):
    """By what messages of a batch are told apart. `details`: a JSON text."""

    type: str
    template_id: str | None
    sender_id: str | None
    details: str | None


class MessageCopy(NamedTuple):
    """What takes the place of a failed message: from where it leaves, with which template, and as what.

    `payload`: a JSON text, where it is not that of the old one.
    """

    sender_id: str
    template_id: str | None
    kind: MessageKind
    ttl: timedelta
    held_ms: int
    payload: str | None = None


class Tracked(NamedTuple):
    """Recipients with short links in what they are told, and the links of each (C27.1).

    `left_out`: how many get no message, by reason: what they were to be told is too long with the links of now.
    """

    recipients: Recipients
    links: Sequence[Sequence[TrackedLink]]
    left_out: Mapping[str, int] = MappingProxyType({})


Replaced = Mapping[str, Sequence[TrackedLink]]
"""Tracked links by the id of their message."""


class ChannelBatches(Protocol):
    """The rules of a channel that has batches. Whatever forbids one as a whole is a `Problem`."""

    @property
    def channel(self) -> str: ...

    @property
    def sends_in(self) -> Collection[str]:
        """The environments that have a provider; a send in another answers 502 (C33)."""

    @property
    def no_such_message(self) -> str:
        """What is told of an id that no message of the channel has."""

    async def terms(self, draft: BatchDraft, now: datetime) -> BatchTerms:
        """What the messages of a batch share that is accepted now."""

    async def kind(self, where: Where, priority: Priority, sort: Sort) -> MessageKind:
        """What messages of a sort obey and cost, as their records are now."""

    def tracked(self, payload: str | None, recipients: Recipients, replaced: Replaced) -> Steps[Tracked | None]:
        """What a block is told, when it becomes messages, with links that are tracked; None: none of them is.

        `payload`: of those without one of their own. `replaced`: the links of the messages whose place these take.
        """

    async def suppressed(self, where: Where, addresses: Sequence[str]) -> Collection[str]:
        """Those of up to a block of addresses that get nothing, whatever their people consented to (C10.5)."""

    async def check_sender(self, where: Where, sender_id: str, *, field: str, sends: bool) -> None:
        """The sender that `field` names exists; with `sends` it is to send, and can."""

    async def copies(
        self, where: Where, olds: Sequence[Old], sender_id: str | None, now: datetime
    ) -> Mapping[str, MessageCopy | Misfit]:
        """By id: how each of `MANY` messages at most is sent again, or why not.

        `sender_id`: what sends all of them now.
        """
