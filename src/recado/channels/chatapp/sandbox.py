"""The chat-app provider of the test environment, and its reviews of templates (C29.4)."""

from collections import OrderedDict
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from hashlib import sha256
from typing import Final, Literal

from recado.channels.core.chat_stories import CHAT_STORIES, USUAL_CHAT
from recado.channels.core.errors import ProviderError
from recado.channels.core.events import Followup, TemplateVerdict
from recado.channels.core.media import OpenMedia
from recado.channels.core.provider import (
    Account,
    FlowDefinition,
    NumberHealth,
    ProviderTemplate,
    Submission,
    TemplateSubmission,
)
from recado.channels.core.sandbox import ChannelSandbox, provider_id
from recado.domain.core.clock import Clock

# Seconds, before scaling.
REVIEW = 2.0
SLOW_REVIEW = 60.0
VERIFICATION = 1.0


_MOST_MEDIA: Final = 32 * 1024 * 1024
"""Bytes of what imagined people sent, until it is copied: the oldest go first."""
_PIECE: Final = 64 * 1024


class Sandbox(ChannelSandbox):
    """`time_scale` multiplies every time; 0: everything is due at once and no send waits."""

    def __init__(self, clock: Clock, time_scale: float = 1.0) -> None:
        super().__init__(clock, time_scale, usual=USUAL_CHAT, stories=CHAT_STORIES)
        self._sent: OrderedDict[str, tuple[str, bytes]] = OrderedDict()  # by reference: type and content

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

    # Media ------------------------------------------------------------------------------------------------------------

    async def upload_media(
        self, account: Account, content: AsyncIterable[bytes], *, size: int, mime_type: str, filename: str
    ) -> str:
        """Read to its end, and not kept: nobody looks at it."""
        came, digest = 0, sha256(account.provider_id.encode())
        async for chunk in content:
            came += len(chunk)
            digest.update(chunk)
        if came != size:
            raise ProviderError("refused", "media_invalid", "the media is not as long as was said")
        return f"sandbox-{digest.hexdigest()[:32]}"

    def person_sends(self, reference: str, mime_type: str, content: bytes) -> None:
        """Hold what an imagined person sends, for `open_media`."""
        self._sent[reference] = (mime_type, content)
        while sum(len(held) for _, held in self._sent.values()) > _MOST_MEDIA and len(self._sent) > 1:
            self._sent.popitem(last=False)

    @asynccontextmanager
    async def open_media(self, account: Account, media_ref: str) -> AsyncIterator[OpenMedia]:
        if (found := self._sent.get(media_ref)) is None:
            raise ProviderError("refused", "not_found", "the sandbox holds no such media any more")
        mime_type, content = found

        async def chunks() -> AsyncIterator[bytes]:
            for at in range(0, len(content), _PIECE):
                yield content[at : at + _PIECE]

        yield OpenMedia(mime_type, len(content), None, chunks())
