"""Signs binaries whose hash is known: the client's own signer would read them on the event loop (C31)."""

from typing import Any, Final

from botocore.auth import AUTH_TYPE_MAPS, S3SigV4Auth

from recado.storage.blobs.request_bodies import FileBody, MemoryPart

_NAME: Final = "recado-s3v4-parts"


class PartAuth(S3SigV4Auth):  # type: ignore[misc] # botocore has no types
    """As any request's."""

    def payload(self, request: Any) -> str:
        body = request.data
        digest: str = body.sha256 if isinstance(body, FileBody | MemoryPart) else super().payload(request)
        return digest


def sign_parts(client: Any) -> None:
    """Let this client of S3 sign what it uploads so, whole or in parts."""
    AUTH_TYPE_MAPS[_NAME] = PartAuth
    for call in ("UploadPart", "PutObject"):
        client.meta.events.register_first(f"choose-signer.s3.{call}", lambda **_: _NAME)
