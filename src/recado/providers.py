"""From the settings to those whom the service speaks to: the adapters of each channel, and who says what was paid."""

from recado.channel_table import CHANNELS
from recado.channels.core.adapters import Adapter, Adapters
from recado.channels.payments.payments import PAYMENTS, PaymentsBridge
from recado.config.settings import Settings
from recado.domain.core.clock import Clock
from recado.storage.blobs.blobs import Blobs
from recado.storage.blobs.local import LocalBlobs
from recado.storage.blobs.s3 import S3Blobs, S3Bucket
from recado.storage.blobs.signed_links import SignedLinks


def adapters_of(settings: Settings, clock: Clock, connections: int) -> Adapters:
    """The adapters of each channel and environment; live may have none (C33). `connections`: of one that has any.

    `payments` sends nothing: it says what was paid.
    """
    found: dict[tuple[str, str, str | None], Adapter] = {
        (each.channel, env, route): adapter
        for each in CHANNELS
        for (env, route), adapter in each.adapters(settings, clock, connections).items()
    }
    if settings.adapter_payments == "bridge" and settings.billing_enabled:
        secret = settings.bridge_payments_secret
        found[PAYMENTS, "live", None] = Adapter(callbacks=PaymentsBridge(secret.get_secret_value() if secret else ""))
    return Adapters(found)


def blobs_of(settings: Settings, links: SignedLinks) -> Blobs:
    """Where media is stored. `links`: how files of the local storage are fetched."""
    if settings.storage == "s3":
        secret = settings.s3_secret_access_key
        return S3Blobs(
            S3Bucket(
                name=settings.s3_bucket or "",
                region=settings.s3_region or "",
                endpoint=settings.s3_endpoint,
                access_key_id=settings.s3_access_key_id or "",
                secret_access_key=secret.get_secret_value() if secret else "",
            )
        )
    return LocalBlobs(settings.storage_dir or settings.data_dir / "media", links)
