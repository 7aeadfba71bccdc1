"""From the settings to those whom the service speaks to: the adapters of each channel, and who says what was paid."""

from recado.channel_table import CHANNELS
from recado.channels.core.adapters import Adapter, Adapters
from recado.channels.email.dns_proof import DnsProof
from recado.channels.email.sandbox import EmailSandbox
from recado.channels.email.txt_records import TxtRecords
from recado.channels.payments.payments import PAYMENTS, PaymentsBridge
from recado.config.settings import Settings
from recado.domain.channels.email import EMAIL
from recado.domain.core.clock import Clock
from recado.storage.core.fair_places import FairPlaces

QUESTIONS_AT_ONCE, QUESTIONS_EACH, MOST_QUESTIONS_WAITING = 16, 2, 50  # to name servers, in all and of an organization


def adapters_of(settings: Settings, clock: Clock, connections: int) -> Adapters:
    """The adapters of each channel and environment; live may have none (C33). `connections`: of one that has any.

    `payments` sends nothing: it says what was paid. Nor does e-mail yet: its senders are verified.
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
    match settings.adapter_email:
        case "sandbox":
            found[EMAIL, "live", None] = Adapter(verifier=EmailSandbox())
        case "smtp":
            questions = FairPlaces(QUESTIONS_AT_ONCE, each=QUESTIONS_EACH, most_waiting=MOST_QUESTIONS_WAITING)
            found[EMAIL, "live", None] = Adapter(verifier=DnsProof(TxtRecords(turn=questions.place)))
    return Adapters(found)
