"""Bodies of the operations on chat-app templates (C11.1)."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from recado.domain.core.ids import NUMBER
from recado.domain.core.json_size import stored_size
from recado.domain.templates.template import Language, TemplateCategory, TemplateStatus
from recado.http.api.models import ApiModel, PatchModel, Timestamp, unset
from recado.http.api.paging import CountedPage, PageQuery
from recado.http.api.route import MIB
from recado.http.routes.core.views import view_of
from recado.http.routes.core.web_addresses import WebAddress
from recado.storage.templates.templates import Template

MOST_COMPONENTS = 50

Name = Annotated[str, Field(min_length=1, max_length=512)]
NumberId = Annotated[str, Field(max_length=64, description=f"Prefix {NUMBER}")]


class Component(ApiModel):
    """A part of a template: HEADER, BODY, FOOTER or BUTTONS. What `payload` may hold is checked at submission."""

    type: Annotated[str, Field(min_length=1, max_length=32)]
    payload: Any = Field(default_factory=lambda: None)


def _storable(components: list[Component]) -> list[Component]:
    if stored_size(stored_components(components)) > MIB:
        raise ValueError("must have at most 1 MiB")
    return components


Components = Annotated[list[Component], Field(max_length=MOST_COMPONENTS), AfterValidator(_storable)]


class TemplateQuery(PageQuery):
    """Filters of the list of templates."""

    status: TemplateStatus | None = None
    category: TemplateCategory | None = None
    language: Language | None = None
    number_id: Annotated[str | None, Field(max_length=64)] = None


class TemplateCreate(ApiModel):
    """A new template, always a draft."""

    number_id: NumberId
    name: Name
    language: Language
    category: TemplateCategory
    components: Components
    header_example_url: WebAddress | None = None


class TemplatePatch(PatchModel):
    """An edit: it raises `version`, and what was approved must be approved again."""

    category: TemplateCategory = unset()
    components: Components = unset()
    header_example_url: WebAddress | None = None


class TemplateSyncRequest(ApiModel):
    """Whose templates to fetch from the provider."""

    number_id: NumberId


class SyncStarted(ApiModel):
    """The templates are fetched."""

    started: bool


class TemplateOut(ApiModel):
    """A template."""

    id: str
    organization_id: str
    number_id: str
    name: str
    language: Language
    category: TemplateCategory
    status: TemplateStatus
    components: list[Component]
    header_example_url: str | None = None
    provider_template_id: str | None = None
    version: int
    rejection_reason: str | None = None
    created_at: Timestamp
    updated_at: Timestamp


class TemplatePage(CountedPage[TemplateOut]):
    """Templates, newest first."""


def stored_components(components: Sequence[Component]) -> tuple[dict[str, Any], ...]:
    """The components as they are kept: an absent payload stays absent."""
    return tuple(component.model_dump(exclude_unset=True) for component in components)


template_view = view_of(Template, TemplateOut)
