"""From the settings to those whom the service speaks to: providers of messages in live and in test, and of payments."""

from collections.abc import Callable, Mapping

from recado.channels.chatapp.bridge import Bridge
from recado.channels.chatapp.cloud import Cloud
from recado.channels.chatapp.sandbox import Sandbox
from recado.channels.core.adapters import Adapter, Adapters
from recado.channels.http.outbound_guard import Turn
from recado.channels.payments.payments import PAYMENTS, PaymentsBridge
from recado.config.settings import Settings
from recado.domain.channels.chatapp import CHATAPP
from recado.domain.core.clock import Clock
from recado.storage.core.fair_places import FairPlaces

PART_OF_AN_ACCOUNT = 4  # a quarter of the connections for all but sends (C31)
MOST_CALLS_WAITING = 100  # of an account


def adapters_of(settings: Settings, clock: Clock, connections: int) -> Adapters:
    """The adapters of each channel and environment; live may have none (C33). `connections`: of one that has any.

    `payments` sends nothing: it says what was paid.
    """
    found: dict[tuple[str, str, str | None], Adapter] = {(CHATAPP, "test", None): sandbox(settings, clock)}
    live = LIVE_CHATAPP.get(settings.adapter_chatapp)
    if live is not None:
        found[CHATAPP, "live", None] = live(settings, clock, connections)
    if settings.adapter_payments == "bridge" and settings.billing_enabled:
        secret = settings.bridge_payments_secret
        found[PAYMENTS, "live", None] = Adapter(callbacks=PaymentsBridge(secret.get_secret_value() if secret else ""))
    return Adapters(found)


def sandbox(settings: Settings, clock: Clock, connections: int | None = None) -> Adapter:
    """It calls nobody, and needs no connections: it has as many calls as usual."""
    made = Sandbox(clock, settings.sandbox_time_scale)
    return Adapter(sender=made, admin=made, templates=made)


def bridge(settings: Settings, clock: Clock, connections: int) -> Adapter:
    token, secret = settings.bridge_chatapp_token, settings.bridge_chatapp_secret
    made = Bridge(
        url=settings.bridge_chatapp_url or "",
        token=token.get_secret_value() if token else "",
        secret=secret.get_secret_value() if secret else "",
        callback_url=f"{settings.address()}/v2/callbacks/{CHATAPP}/bridge",
        clock=clock,
        idempotent=settings.bridge_chatapp_idempotent,
        shares=by_account,
    )
    return Adapter(sender=made, callbacks=made, admin=made, templates=made, connections=connections)


def cloud(settings: Settings, clock: Clock, connections: int) -> Adapter:
    app_secret, verify_token = settings.cloud_app_secret, settings.cloud_verify_token
    made = Cloud(
        url=settings.cloud_url or "",
        app_secret=app_secret.get_secret_value() if app_secret else "",
        verify_token=verify_token.get_secret_value() if verify_token else None,
        clock=clock,
        shares=by_account,
    )
    return Adapter(sender=made, callbacks=made, admin=made, templates=made, connections=connections)


LIVE_CHATAPP: Mapping[str, Callable[[Settings, Clock, int], Adapter]] = {
    "sandbox": sandbox,
    "bridge": bridge,
    "cloud": cloud,
}
"""By the setting; another value is none."""


def by_account(connections: int) -> Turn:
    """Connections in which an account that hangs leaves room for all others (C31)."""
    return FairPlaces(connections, each=connections // PART_OF_AN_ACCOUNT, most_waiting=MOST_CALLS_WAITING).place
