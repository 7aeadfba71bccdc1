"""From the settings to those whom the service speaks to: the adapters of each channel, and who says what was paid."""

from collections.abc import Callable, Mapping

from recado.channel_table import CHANNELS
from recado.channels.core.adapters import Adapter, Adapters
from recado.channels.email.sandbox import EmailSandbox
from recado.channels.payments.payments import PAYMENTS, PaymentsBridge
from recado.config.settings import Settings
from recado.domain.channels.email import EMAIL
from recado.domain.core.clock import Clock
from recado.email_adapters import ses, smtp


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
    found[EMAIL, "test", None] = Adapter(verifier=EmailSandbox())
    live = LIVE_EMAIL.get(settings.adapter_email)
    if live is not None:
        found[EMAIL, "live", None] = live(settings, clock, connections)
    return Adapters(found)


# E-mail ---------------------------------------------------------------------------------------------------------------


def email_sandbox(settings: Settings, clock: Clock, connections: int) -> Adapter:
    return Adapter(verifier=EmailSandbox())


LIVE_EMAIL: Mapping[str, Callable[[Settings, Clock, int], Adapter]] = {
    "sandbox": email_sandbox,
    "smtp": smtp,
    "ses": ses,
}
"""By the setting; another value is none."""
