"""Where media is stored: whether it is there, and lets us in."""

import asyncio
from typing import Final

from recado.cli.doctor.finding import Finding, failure, ok
from recado.config.settings import Settings
from recado.domain.core.errors import Problem
from recado.providers import blobs_of
from recado.storage.blobs.blobs import BlobMissing
from recado.storage.blobs.local import writable
from recado.storage.blobs.signed_links import SignedLinks

SUBJECT: Final = "storage"
_PATIENCE: Final = 10.0  # seconds


async def storage(settings: Settings) -> Finding:
    """Nothing is made or written."""
    if settings.storage == "local":
        folder = settings.storage_dir or settings.data_dir / "media"
        try:
            writable(folder)
        except OSError as error:
            return failure(SUBJECT, f"media cannot be kept in {folder} ({error.strerror}): let this user write there")
        return ok(SUBJECT, f"media is kept in {folder}")
    blobs = blobs_of(settings, SignedLinks("", b""))
    try:
        async with asyncio.timeout(_PATIENCE):
            await blobs.start()
            await blobs.check()
    except (Problem, BlobMissing, TimeoutError):
        text = f"the bucket {settings.s3_bucket} does not let us in: look at RECADO_S3_* and at the rights of its key"
        return failure(SUBJECT, text)
    finally:
        await blobs.stop()
    return ok(SUBJECT, f"media is kept in the bucket {settings.s3_bucket}")
