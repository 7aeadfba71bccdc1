"""What the chat-app bridge's operations are answered with (C29.3). Pure."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, StrictInt

from recado.channels.core.answers import read
from recado.channels.core.bridge.bridge_answers import NOUN
from recado.channels.core.errors import MalformedCallback
from recado.channels.core.events import NameState, NumberState, Quality, Tier
from recado.channels.core.fields import Text64, Text256, Text512, Text2048
from recado.channels.core.provider import NumberHealth, ProviderTemplate, Submission
from recado.channels.core.reading import Shape, record

_ISSUE = record({"code": Text64, "message": Text512})
_PROFILE = record(
    {}, dict.fromkeys(("about", "address", "email", "website", "vertical", "profilePictureUrl"), Text2048 | None)
)
_HEALTH = record(
    {"status": Literal["pending"] | NumberState},
    {
        "quality": Quality | None,
        "tier": Tier | None,
        "nameStatus": NameState | None,
        "verifiedName": Text512 | None,
        "perSecond": Annotated[StrictInt, Field(ge=0, le=1_000_000)] | None,
        "profile": _PROFILE.of,
        "issues": Annotated[list[_ISSUE.of], Field(max_length=50)],  # type: ignore[name-defined]
    },
)
_TEMPLATES = record({}, {"templates": Annotated[list[Any], Field(max_length=1_000)]})
_TEMPLATE = Shape[ProviderTemplate](ProviderTemplate)
_FLOW = record({"providerFlowId": Text256})
_SUBMITTED = record({"providerTemplateId": Text256})


def number_health(result: Mapping[str, Any]) -> NumberHealth:
    said = read(_HEALTH, result, "numberHealth", NOUN)
    profile = said.get("profile")
    return NumberHealth(
        verified=said["status"] in ("available", "connected", "flagged"),
        status=said["status"],
        quality_rating=said.get("quality"),
        messaging_tier=said.get("tier"),
        name_status=said.get("nameStatus"),
        verified_name=said.get("verifiedName"),
        per_second=said.get("perSecond"),
        profile=None if profile is None else {name: text for name, text in profile.items() if text is not None},
        issues=tuple((issue["code"], issue["message"]) for issue in said.get("issues", ())),
    )


def submission(result: Mapping[str, Any]) -> Submission:
    return Submission(read(_SUBMITTED, result, "submission", NOUN)["providerTemplateId"])


def flow_id(result: Mapping[str, Any]) -> str:
    """What the provider calls a flow; raises `ProviderError` when it is not there."""
    made: str = read(_FLOW, result, "flow", NOUN)["providerFlowId"]
    return made


def templates(result: Mapping[str, Any]) -> Iterator[ProviderTemplate | MalformedCallback]:
    """One by one, as they are asked for; for one that cannot be read, where it cannot."""
    for index, item in enumerate(read(_TEMPLATES, result, "list", NOUN).get("templates", ())):
        try:
            yield _TEMPLATE.read(item)
        except MalformedCallback as error:
            yield error.within(f"templates[{index}]")
