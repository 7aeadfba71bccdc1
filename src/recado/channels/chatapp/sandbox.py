"""The chat-app provider of the test environment, and its reviews of templates (C29.4)."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Literal

from recado.channels.core.chat_stories import CHAT_STORIES, USUAL_CHAT
from recado.channels.core.errors import ProviderError
from recado.channels.core.events import Followup, TemplateVerdict
from recado.channels.core.media_sandbox import MediaSandbox
from recado.channels.core.provider import (
    Account,
    FlowDefinition,
    NumberHealth,
    ProviderTemplate,
    Submission,
    TemplateSubmission,
)
from recado.channels.core.sandbox import provider_id
from recado.domain.core.clock import Clock

# Seconds, before scaling.
REVIEW = 2.0
SLOW_REVIEW = 60.0
VERIFICATION = 1.0


class Sandbox(MediaSandbox):
    """`time_scale` multiplies every time; 0: everything is due at once and no send waits."""

    def __init__(self, clock: Clock, time_scale: float = 1.0) -> None:
        super().__init__(clock, time_scale, usual=USUAL_CHAT, stories=CHAT_STORIES)

    @property
    def verification_delay(self) -> float:
        return VERIFICATION * self._scale

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
        verdict = TemplateVerdict(
            status,
            self._clock.now() + timedelta(seconds=after),
            provider_template_id,
            account=account.provider_id,
            reason="the name asks the sandbox to reject it" if status == "rejected" else None,
        )
        return Submission(provider_template_id, (Followup(after, verdict),))

    async def delete_template(self, account: Account, name: str, provider_template_id: str | None) -> None:
        """Nothing is kept, so nothing is left."""

    async def list_templates(self, account: Account) -> list[ProviderTemplate]:
        """Empty: the sandbox knows no template that the service has not."""
        return []

    # Flows ------------------------------------------------------------------------------------------------------------

    async def create_flow(self, account: Account, flow: FlowDefinition) -> str:
        """Taken, unless its name asks for a refusal."""
        if "reject" in flow.name:
            raise ProviderError("refused", "provider_error", "the name asks the sandbox to reject it")
        return provider_id(flow.name)

    async def publish_flow(self, account: Account, provider_flow_id: str) -> None:
        """Always published."""

    async def deprecate_flow(self, account: Account, provider_flow_id: str) -> None:
        """Nothing is kept, so nothing is left."""
