"""Bodies and views of origin links (C27.4), and what the address of a click may say."""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field

from recado.domain.links.origin import Fonte
from recado.http.api.models import BLANK_IS_NONE, ApiModel, PatchModel, QueryModel, Timestamp, unset
from recado.http.api.paging import CountedPage
from recado.http.routes.core.views import view_of
from recado.storage.links.origin_links import OriginLink

Name = Annotated[str, Field(min_length=1, max_length=120)]
NumberId = Annotated[str, Field(min_length=1, max_length=64)]
Text = Annotated[str, Field(min_length=1, max_length=200, description="What the person sends; the code follows it.")]
Rotulo = Annotated[str, Field(max_length=120, description="Names the source, where `fonte` is `outra`."), BLANK_IS_NONE]


class OriginLinkCreate(ApiModel):
    """A new link to the chat of a number."""

    name: Name
    number_id: NumberId
    text: Text
    fonte: Fonte
    fonte_rotulo: Rotulo | None = None


class OriginLinkPatch(PatchModel):
    """Changes of a link. Its address stays; codes that people have already tell what was true when they got them."""

    name: Name = unset()
    number_id: NumberId = unset()
    text: Text = unset()
    fonte: Fonte = unset()
    fonte_rotulo: Rotulo | None = None


class OriginLinkOut(ApiModel):
    """A link. `clicks`: how often people opened it."""

    id: str
    name: str
    number_id: str
    text: str
    fonte: Fonte
    fonte_rotulo: str | None = None
    slug: str
    url: str
    clicks: int
    created_at: Timestamp


class OriginLinkPage(CountedPage[OriginLinkOut]):
    """Origin links, newest first."""


class OpenQuery(QueryModel):
    """What the address of a click says of it; all of it may be absent, and what is too long is cut.

    Whoever follows a link is led on, whatever was made of its address on the way.
    """

    forgiving = True

    utm_campaign: Annotated[str | None, Field(alias="utm_campaign")] = None
    utm_content: Annotated[str | None, Field(alias="utm_content")] = None
    utm_term: Annotated[str | None, Field(alias="utm_term")] = None
    campanha: str | None = None
    grupo: str | None = None
    anuncio: str | None = None
    palavra_chave: str | None = None


def origin_link_view(link_base: str) -> Callable[[OriginLink], dict[str, Any]]:
    """The view of a link whose address is under `link_base`."""
    return view_of(OriginLink, OriginLinkOut, url=lambda link: f"{link_base}/c/{link.slug}")
