"""Bodies of the operations on flows, and the rules of a flow's definition (C19)."""

from typing import Annotated, Any, Final, Literal, NotRequired

from pydantic import AfterValidator, ConfigDict, Field
from typing_extensions import TypedDict

from recado.domain.core.ids import NUMBER
from recado.domain.core.json_size import stored_size
from recado.domain.flows.flow import FlowCategory, FlowProviderStatus, FlowStatus, has_cycle
from recado.http.api.models import ApiModel, PatchModel, Timestamp, unset
from recado.http.api.paging import CountedPage, PageQuery
from recado.http.api.route import MIB
from recado.http.routes.core.views import view_of
from recado.storage.flows.flows import Flow

MOST_SCREENS: Final = 50
LARGEST: Final = MIB
"""Bytes of a definition, as the database writes it."""
USUAL_VERSION: Final = "6.2"

_CONFIG = ConfigDict(strict=True, str_strip_whitespace=True, extra="ignore", hide_input_in_errors=True)

ScreenId = Annotated[str, Field(pattern=r"^[A-Za-z_]{1,64}$")]


class FlowLayout(TypedDict):
    """What a screen shows, from top to bottom."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]

    type: Literal["SingleColumnLayout"]
    children: list[dict[str, Any]]


class FlowScreen(TypedDict):
    """One screen of a flow."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]

    id: ScreenId
    title: NotRequired[str]
    terminal: NotRequired[bool]
    success: NotRequired[bool]
    refresh_on_back: NotRequired[bool]
    sensitive: NotRequired[list[str]]
    data: NotRequired[dict[str, Any]]
    layout: NotRequired[FlowLayout]


def _screens(screens: list[FlowScreen]) -> list[FlowScreen]:
    if len({screen["id"] for screen in screens}) < len(screens):
        raise ValueError("must have unique ids")
    if not any(screen.get("terminal") for screen in screens):
        raise ValueError("must have a screen that is terminal")
    return screens


Targets = Annotated[list[ScreenId], Field(max_length=MOST_SCREENS)]
Screens = Annotated[list[FlowScreen], Field(min_length=1, max_length=MOST_SCREENS), AfterValidator(_screens)]


class FlowJson(TypedDict):
    """The screens of a flow, and which of them lead to which."""

    __pydantic_config__ = _CONFIG  # type: ignore[misc]

    version: NotRequired[Annotated[str, Field(min_length=1, max_length=16)]]
    routing_model: NotRequired[Annotated[dict[str, Targets], Field(max_length=MOST_SCREENS)]]
    screens: Screens


def checked(definition: FlowJson) -> FlowJson:
    """The definition with its version; raises ValueError for one that breaks a rule of all its parts."""
    routes = definition.get("routing_model", {})
    known = {screen["id"] for screen in definition["screens"]}
    if not known.issuperset(routes) or not all(known.issuperset(targets) for targets in routes.values()):
        raise ValueError("must name only its screens in `routing_model`")
    if has_cycle(routes):
        raise ValueError("must not lead back to a screen in `routing_model`")
    complete: FlowJson = {"version": USUAL_VERSION, **definition}
    if stored_size(complete) > LARGEST:
        raise ValueError("must have at most 1 MiB")
    return complete


Name = Annotated[str, Field(min_length=1, max_length=120)]
Description = Annotated[str, Field(max_length=1024)]
Categories = Annotated[list[Annotated[FlowCategory, Field(strict=False)]], Field(min_length=1, max_length=3)]
Definition = Annotated[FlowJson, AfterValidator(checked)]


class FlowQuery(PageQuery):
    """Filters of the list of flows."""

    status: FlowStatus | None = None
    meta_status: Annotated[FlowProviderStatus | None, Field(description="Of `providerStatus`.")] = None
    category: FlowCategory | None = None
    number_id: Annotated[str | None, Field(max_length=64)] = None


class FlowCreate(ApiModel):
    """A new flow, always a draft."""

    number_id: Annotated[str, Field(max_length=64, description=f"Prefix {NUMBER}")]
    name: Name
    description: Description | None = None
    provider_categories: Categories
    flow_json: Definition


class FlowPatch(PatchModel):
    """An edit. Of a flow that was published it begins a new version, which is a draft until it is published."""

    name: Name = unset()
    description: Description | None = None
    provider_categories: Categories = unset()
    flow_json: Definition = unset()


class FlowOut(ApiModel):
    """A flow."""

    id: str
    organization_id: str
    number_id: str
    name: str
    description: str | None = None
    status: FlowStatus
    version: int
    provider_flow_id: str | None = None
    provider_status: FlowProviderStatus
    provider_categories: list[FlowCategory]
    flow_json: FlowJson
    published_at: Timestamp | None = None
    created_at: Timestamp
    updated_at: Timestamp


class FlowPage(CountedPage[FlowOut]):
    """Flows, newest first."""


flow_view = view_of(Flow, FlowOut, provider_categories=lambda flow: list(flow.provider_categories))
