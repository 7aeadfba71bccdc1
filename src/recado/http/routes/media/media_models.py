"""Bodies and views of media (C8)."""

from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from recado.domain.media.media_types import LONGEST_TYPE
from recado.http.api.models import ApiModel, QueryModel, Timestamp
from recado.http.routes.core.views import view_of
from recado.storage.media.media import KeptMedia

_TRUE = Annotated[
    str | None,
    Field(pattern="^(1|true|0|false)$"),
    WithJsonSchema({"type": "string", "enum": ["1", "true", "0", "false"]}),
]


class MediaUpload(ApiModel):
    """A binary in base64. White space in it is ignored."""

    filename: Annotated[str, Field(min_length=1, max_length=1_024, examples=["photo.png"])]
    mime_type: Annotated[str, Field(min_length=3, max_length=LONGEST_TYPE, examples=["image/png"])]
    data_base64: Annotated[
        str,
        Field(
            description="At most 140,000,000 characters.",
            examples=[
                "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
            ],
        ),
    ]


class UploadResult(ApiModel):
    """An upload. `voice`: it can be sent as a voice note."""

    media_id: str
    kind: Annotated[str, Field(json_schema_extra={"enum": ["image", "audio", "video", "document", "sticker"]})]
    mime_type: str
    filename: str
    size: int
    sha256: str
    voice: bool | None = None


class MediaOut(UploadResult):
    """An upload as it is kept, until `expiresAt`. It was made to a number, or to a social account."""

    number_id: str | None = None
    social_account_id: str | None = None
    created_at: Timestamp
    expires_at: Timestamp


class DownloadQuery(QueryModel):
    """How a download is given."""

    redirect: Annotated[_TRUE, Field(description="Lead to an address that opens for 90 minutes, where a copy is.")] = (
        None
    )
    download: Annotated[_TRUE, Field(description="As an attachment.")] = None
    filename: Annotated[str | None, Field(max_length=1_024, description="The name of the attachment.")] = None


class StoredFileQuery(QueryModel):
    """What a signed address says."""

    forgiving = True

    exp: str = ""
    ct: str = ""
    cd: str = ""
    sig: str = ""


_own: dict[str, Any] = {
    "media_id": lambda media: media.id,
    "voice": lambda media: True if media.voice else None,
}
upload_view = view_of(KeptMedia, UploadResult, **_own)
media_view = view_of(KeptMedia, MediaOut, **_own)


def asked(flag: str | None) -> bool:
    return flag in ("1", "true")
