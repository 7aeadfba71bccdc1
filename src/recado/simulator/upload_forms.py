"""Uploads to the simulated provider: forms of several parts, one of which is a file."""

from dataclasses import dataclass, field

from aiohttp import BodyPartReader, web

from recado.simulator.cloud_state import LONGEST_MEDIA

_PIECE = 64 * 1024  # bytes


class TooLong(Exception):
    """The file is longer than any provider takes."""


@dataclass(slots=True)
class ReceivedForm:
    """`fields`: all parts but the file, by name."""

    fields: dict[str, bytes] = field(default_factory=dict)
    content: bytearray = field(default_factory=bytearray)
    mime_type: str = ""


async def read_form(request: web.BaseRequest) -> ReceivedForm:
    """Raises `TooLong`; ValueError for what is no form, or has a part within a part."""
    form = ReceivedForm()
    async for part in await request.multipart():
        if not isinstance(part, BodyPartReader):
            raise ValueError("a part within a part")
        if part.name != "file":
            form.fields[part.name or ""] = bytes(await part.read())
            continue
        form.mime_type = part.headers.get("Content-Type", "application/octet-stream")
        while chunk := await part.read_chunk(_PIECE):
            form.content += chunk
            if len(form.content) > LONGEST_MEDIA:
                raise TooLong
    return form
