"""The chat-app provider of the test environment: a phone's last digits say what happens to its messages (C29.4).

It keeps nothing: reports and replies come back as follow-ups, which the caller stores and feeds to itself later.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Literal

from recado.channels.core.events import Followup, Inbound, Status, TemplateStatus
from recado.channels.core.provider import (
    Accepted,
    Account,
    NumberHealth,
    OutboundMessage,
    Outcome,
    ProviderTemplate,
    Refused,
    Retry,
    SlowDown,
    Submission,
    TemplateSubmission,
    Unknown,
)
from recado.domain.core.clock import Clock

# Seconds after the hand-over, before scaling.
ACCEPT = 0.1
DELIVERED = 1.0
READ = 2.0
REPLY = 3.0
LATE_REPORT = 30.0
REVIEW = 2.0
SLOW_REVIEW = 60.0
SLOW_DOWN = 2.0
VERIFICATION = 1.0

_MOST_SLOWED = 10_000


class Sandbox:
    """`time_scale` multiplies every time; 0: everything is due at once and no send waits."""

    name = "sandbox"
    idempotent = False  # so that an unknown outcome stays one, as with most providers
    always_references = True
    paces_pairs = False

    def __init__(self, clock: Clock, time_scale: float = 1.0) -> None:
        self._clock = clock
        self._scale = time_scale
        # A "slow down" spends no attempt, so the attempt alone cannot tell the first try (…9013) from the second.
        self._slowed: dict[str, None] = {}

    @property
    def verification_delay(self) -> float:
        return VERIFICATION * self._scale

    async def start(self) -> None:
        """Nothing to open."""

    async def stop(self) -> None:
        """Nothing to close."""

    async def send(self, message: OutboundMessage, account: Account, attempt: int) -> Outcome:
        if self._scale:
            await self._clock.sleep(ACCEPT * self._scale)
        suffix = message.to[-4:]
        if suffix == "9013" and attempt == 1 and self._first_try(message.id):
            return SlowDown(SLOW_DOWN * self._scale)
        behaviour = _BEHAVIOURS.get(suffix)
        script = _Script(message, account, self._clock.now(), self._scale)
        return script.default() if behaviour is None else behaviour(script, attempt)

    async def number_health(self, account: Account) -> NumberHealth:
        """Every number is verified; all else stands as stored, where the simulation operations set it."""
        return NumberHealth(verified=True)

    async def update_profile(self, account: Account, profile: Mapping[str, str]) -> None:
        """Taken as given."""

    async def connect(self, account: Account) -> None:
        """Always let in."""

    async def disconnect(self, account: Account) -> None:
        """Always let go."""

    async def submit_template(self, account: Account, template: TemplateSubmission) -> Submission:
        """Taken for review at once; the verdict is written in the template's name."""
        after = (SLOW_REVIEW if "slow" in template.name else REVIEW) * self._scale
        status: Literal["approved", "rejected"] = "rejected" if "reject" in template.name else "approved"
        provider_template_id = provider_id(template.id)
        verdict = TemplateStatus(
            status,
            self._clock.now() + timedelta(seconds=after),
            provider_template_id,
            account=account.phone_number_id,
            reason="the name asks the sandbox to reject it" if status == "rejected" else None,
        )
        return Submission(provider_template_id, (Followup(after, verdict),))

    async def delete_template(self, account: Account, name: str, provider_template_id: str | None) -> None:
        """Nothing is kept, so nothing is left."""

    async def list_templates(self, account: Account) -> list[ProviderTemplate]:
        """Empty: the sandbox knows no template that the service has not."""
        return []

    def _first_try(self, message_id: str) -> bool:
        if message_id in self._slowed:
            del self._slowed[message_id]
            return False
        if len(self._slowed) >= _MOST_SLOWED:
            del self._slowed[next(iter(self._slowed))]
        self._slowed[message_id] = None
        return True


def provider_id(record_id: str) -> str:
    """The sandbox's own id of a message or template: the same for every attempt."""
    return f"sandbox_{record_id[4:]}"


class _Script:
    """What the sandbox can do with one message at one moment."""

    __slots__ = ("_account", "_message", "_now", "_provider_id", "_scale")

    def __init__(self, message: OutboundMessage, account: Account, now: datetime, scale: float) -> None:
        self._message = message
        self._account = account
        self._now = now
        self._scale = scale
        self._provider_id = provider_id(message.id)

    def default(self) -> Outcome:
        return self.accepted(self.delivered(), self.read())

    def accepted(self, *followups: Followup) -> Outcome:
        return Accepted(self._provider_id, followups)

    def delivered(self, after: float = DELIVERED) -> Followup:
        return self._report(after, "delivered")

    def read(self) -> Followup:
        return self._report(READ, "read")

    def failed(self, code: str) -> Followup:
        return self._report(DELIVERED, "failed", code)

    def reply(self, text: str) -> Followup:
        after, at = self._at(REPLY)
        return Followup(
            after,
            Inbound(
                self._account.phone_number_id,
                self._message.to,
                at,
                "text",
                {"text": {"body": text}},
                f"{self._provider_id}_reply",
            ),
        )

    def _report(
        self, after: float, status: Literal["delivered", "read", "failed"], code: str | None = None
    ) -> Followup:
        after, at = self._at(after)
        message = self._message
        return Followup(after, Status(status, at, self._provider_id, message.id, code, self._account.phone_number_id))

    def _at(self, after: float) -> tuple[float, datetime]:
        after *= self._scale
        return after, self._now + timedelta(seconds=after) if after else self._now


_Behaviour = Callable[[_Script, int], Outcome]

# By the last four digits of the phone. 9009 (opens a link; chat-app links are not rewritten), 9010 (not RCS capable)
# and 9013 after its first try are as every other phone.
_BEHAVIOURS: Mapping[str, _Behaviour] = {
    "9001": lambda script, attempt: Refused("recipient_unreachable", "the recipient cannot be reached"),
    "9002": lambda script, attempt: script.accepted(script.failed("provider_error")),
    "9003": lambda script, attempt: script.accepted(),
    "9004": lambda script, attempt: script.accepted(script.delivered()),
    "9005": lambda script, attempt: Retry() if attempt <= 2 else script.default(),
    "9006": lambda script, attempt: Unknown((script.delivered(LATE_REPORT),)),
    "9007": lambda script, attempt: script.accepted(script.delivered(), script.read(), script.reply("OK")),
    "9008": lambda script, attempt: script.accepted(script.delivered(), script.reply("SAIR")),
    "9011": lambda script, attempt: Refused("policy_blocked", "the provider's policy forbids this message"),
    "9012": lambda script, attempt: script.accepted(script.failed("expired")),
    "9014": lambda script, attempt: Unknown(),
}
