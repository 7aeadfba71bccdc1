"""The provider of the test environment, of any channel: a recipient's last four characters say what happens (C29.4).

It keeps nothing: reports and replies come back as follow-ups, which the caller stores and feeds to itself later.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from recado.channels.core.events import Event, Followup, Inbound, LinkOpened, ReportStatus, Status
from recado.channels.core.provider import (
    Accepted,
    Account,
    OutboundMessage,
    Outcome,
    Refused,
    Retry,
    SlowDown,
    Unknown,
)
from recado.channels.core.references import NamedBy
from recado.domain.core.clock import Clock
from recado.domain.links.codes import is_link_code
from recado.domain.links.text_links import parted

# Seconds after the hand-over, before scaling.
ACCEPT = 0.1
SLOW_DOWN = 2.0

_MOST_SLOWED = 10_000


@dataclass(frozen=True, slots=True)
class ReportStep:
    """`after`: seconds; `code`: of a failure."""

    after: float
    status: ReportStatus
    code: str | None = None


@dataclass(frozen=True, slots=True)
class ReplyStep:
    """The recipient answers with a text."""

    text: str
    after: float = 3.0


@dataclass(frozen=True, slots=True)
class OpenStep:
    """The recipient opens the first link that is tracked, if there is one."""

    after: float = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What happens to a message; `answered`: whether the hand-over is, else its outcome is unknown.

    `slow`: the first try goes too fast; `passing`: attempts that are refused for now; `refused`: so are all others.
    """

    steps: tuple[ReportStep | ReplyStep | OpenStep, ...] = ()
    answered: bool = True
    slow: bool = False
    passing: int = 0
    refused: Refused | None = None


class ChannelSandbox:
    """`usual`: the story of a message; `stories`: the others, by the ending of the recipient, or as `story_of` says.

    `time_scale` multiplies every time; 0: everything is due at once and no send waits.
    """

    name = "sandbox"
    idempotent = False  # so that an unknown outcome stays one, as with most providers
    looked_up_by: frozenset[NamedBy] = frozenset()
    paces_pairs = False

    def __init__(self, clock: Clock, time_scale: float, *, usual: Story, stories: Mapping[str, Story]) -> None:
        self._clock = clock
        self._scale = time_scale
        self._usual = usual
        self._stories = stories
        # A "slow down" spends no attempt, so the attempt alone cannot tell the first try from the second.
        self._slowed: dict[str, None] = {}

    def story_of(self, message: OutboundMessage) -> str:
        """Which of the stories is this one's."""
        return message.to[-4:]

    async def start(self) -> None:
        """Nothing to open."""

    async def stop(self) -> None:
        """Nothing to close."""

    async def send(self, message: OutboundMessage, account: Account, attempt: int) -> Outcome:
        if self._scale:
            await self._clock.sleep(ACCEPT * self._scale)
        return self._told(message, account, attempt)

    def outcome_of(self, message: OutboundMessage, account: Account, attempt: int) -> Outcome | None:
        return None if self._scale else self._told(message, account, attempt)

    def _told(self, message: OutboundMessage, account: Account, attempt: int) -> Outcome:
        story = self._stories.get(self.story_of(message), self._usual)
        if story.slow and attempt == 1 and self._first_try(message.id):
            return SlowDown(SLOW_DOWN * self._scale)
        if attempt <= story.passing:
            return Retry()
        if story.refused is not None:
            return story.refused
        taken, now, sender = provider_id(message.id), self._clock.now(), account.provider_id
        followups = []
        for step in story.steps:
            after = step.after * self._scale
            at = now + timedelta(seconds=after) if after else now
            event: Event | LinkOpened
            match step:
                case ReportStep():
                    event = Status(step.status, at, taken, message.id, step.code, sender)
                case ReplyStep():
                    event = Inbound(sender, message.to, at, "text", {"text": {"body": step.text}}, f"{taken}_reply")
                case OpenStep():
                    code = _first_code(message)
                    if code is None:
                        continue
                    event = LinkOpened(code)
            followups.append(Followup(after, event))
        return Accepted(taken, tuple(followups)) if story.answered else Unknown(tuple(followups))

    def _first_try(self, message_id: str) -> bool:
        if message_id in self._slowed:
            del self._slowed[message_id]
            return False
        if len(self._slowed) >= _MOST_SLOWED:
            del self._slowed[next(iter(self._slowed))]
        self._slowed[message_id] = None
        return True


def _first_code(message: OutboundMessage) -> str | None:
    """That of the first short link in what the recipient sees."""
    links = (link for text in _seen(message.payload or {}) for link in parted(text)[1::2])
    codes = (link.rpartition("/l/")[2] for link in links)
    return next((code for code in codes if is_link_code(code)), None)


def _seen(payload: Mapping[str, Any]) -> Iterator[str]:
    """The text, and of RCS what the card says and the suggestions open."""
    card = payload.get("card") or {}
    yield (payload.get("text") or {}).get("body") or ""
    yield from (card.get(name) or "" for name in ("title", "description"))
    for each in (*(card.get("suggestions") or ()), *(payload.get("suggestions") or ())):
        yield each["value"]


def provider_id(record_id: str) -> str:
    """The sandbox's own id of a message or template: the same for every attempt."""
    return f"sandbox_{record_id[4:]}"
