"""Media at the hosted API: the fields of its uploads, and downloads from an address that it gives."""

from typing import Annotated, Final

from pydantic import Field, StrictInt
from yarl import URL

from recado.channels.chatapp.cloud_messages import PRODUCT
from recado.channels.core.errors import ProviderError
from recado.channels.core.fields import Text128, Text256, Text4096
from recado.channels.core.media_transfer import LARGEST, FormField, header_text
from recado.channels.core.reading import record
from recado.channels.http.outbound_guard import UrlRefused, form_fault, target_of

MEDIA: Final = record(
    {"url": Text4096, "mime_type": Text256},
    {"sha256": Text128 | None, "file_size": Annotated[StrictInt, Field(ge=0, le=LARGEST)] | None},
)
"""What the provider says of media before it gives it."""


def upload_fields(mime_type: str) -> tuple[FormField, ...]:
    """What stands in the form of an upload beside its file."""
    return (
        FormField("messaging_product", PRODUCT.encode()),
        FormField("type", header_text(mime_type).encode()),
    )


def download_address(text: str, api: URL) -> URL:
    """The address of media as the provider gives it; raises `ProviderError` for one that the token must not go to.

    That is the host of the API itself, or with https any name that is not one of a local network.
    """
    try:
        url, target = URL(text), target_of(text)
    except (ValueError, UrlRefused):
        url, target = URL(), None
    ours = url.host == api.host and url.scheme in (api.scheme, "https")
    if target is None or not (ours or form_fault(target, live=True) is None):
        raise ProviderError("unreachable", "malformed_answer", "the provider gave an address of media that is not safe")
    return url
