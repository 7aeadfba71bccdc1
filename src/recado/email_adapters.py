"""The adapters of e-mail, by the settings: the sandbox, a bridge, a mail server, and SES (C29.1)."""

import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from recado.channels.core.adapters import Adapter, IdentityMaker, ProviderPlace
from recado.channels.core.bridge.bridge import LONGEST_CALL
from recado.channels.email.bridge import EmailBridge
from recado.channels.email.composing import THREADS, Composer
from recado.channels.email.dns_proof import DnsProof, SenderIdentities
from recado.channels.email.sandbox import EmailSandbox
from recado.channels.email.ses.ses import Ses, SesOptions
from recado.channels.email.simulator import WithSimulator
from recado.channels.email.smtp.connections import SmtpServer
from recado.channels.email.smtp.smtp import Smtp
from recado.channels.email.txt_records import TxtRecords
from recado.channels.http.outbound_guard import Turn
from recado.channels.http.outbound_http import CONNECTIONS
from recado.config.bridges import bridge_settings
from recado.config.settings import Settings
from recado.domain.channels.email import EMAIL
from recado.domain.core.clock import Clock
from recado.domain.email.dkim import DkimKey, dkim_key
from recado.storage.core.shares.fair_places import FairPlaces

QUESTIONS_AT_ONCE, QUESTIONS_EACH, MOST_QUESTIONS_WAITING = 16, 2, 50  # to name servers, in all and of an organization
MOST_EMAILS_WAITING: Final = 200  # of an organization: to be made, and to be handed over
_PARTS: Final = 2


def email_adapters(settings: Settings, clock: Clock, connections: int) -> Mapping[tuple[str, str | None], Adapter]:
    """The sandbox in test; in live the adapter of the setting, which may be none.

    Whoever sends in live, the mailbox simulator's addresses are answered here (C29.4).
    """
    found: dict[tuple[str, str | None], Adapter] = {("test", None): sandbox(settings, clock, CONNECTIONS)}
    live = LIVE_EMAIL.get(settings.adapter_email)
    if live is not None:
        adapter = live(settings, clock, connections)
        if adapter.sender is not None:
            mailboxes = WithSimulator(adapter.sender, email_sandbox(settings, clock), settings.email_simulator_domain)
            adapter = replace(adapter, sender=mailboxes)
        found["live", None] = adapter
    return found


def sandbox(settings: Settings, clock: Clock, connections: int) -> Adapter:
    made = email_sandbox(settings, clock)
    return Adapter(sender=made, verifier=made)


def email_sandbox(settings: Settings, clock: Clock) -> EmailSandbox:
    return EmailSandbox(clock, settings.sandbox_time_scale, simulator_domain=settings.email_simulator_domain)


def bridge(settings: Settings, clock: Clock, connections: int) -> Adapter:
    said = bridge_settings(settings, "email", EMAIL)
    made = EmailBridge(**said, clock=clock)
    at_once = min(connections, LONGEST_CALL * settings.email_per_second)
    place = ProviderPlace("the bridge", said["url"], "start it")
    return Adapter(sender=made, callbacks=made, verifier=dns_proof(settings, made), connections=at_once, place=place)


def smtp(settings: Settings, clock: Clock, connections: int) -> Adapter:
    at = urlsplit(settings.smtp_url or "")
    at_once = min(connections, settings.smtp_connections)
    password = settings.smtp_password
    server = SmtpServer(
        host=at.hostname or "",
        port=at.port or 0,
        tls=at.scheme == "smtps",
        starttls=at.scheme == "smtp" and not is_loopback(at.hostname or ""),
        name=greeting_name(settings.address()),
        user=settings.smtp_user,
        password=password.get_secret_value() if password else "",
        ca_file=None if settings.smtp_ca_file is None else str(settings.smtp_ca_file),
    )
    made = Smtp(server, composer=composer(settings, clock), places=by_half(at_once), clock=clock)
    fix = "look at its address in the settings, and at the network"
    place = ProviderPlace("the mail server", settings.smtp_url or "", fix)
    return Adapter(sender=made, verifier=dns_proof(settings), connections=at_once, place=place)


def ses(settings: Settings, clock: Clock, connections: int) -> Adapter:
    at_once = min(connections, settings.ses_connections)
    secret, region = settings.ses_secret_access_key, settings.ses_region or ""
    options = SesOptions(
        region=region,
        access_key_id=settings.ses_access_key_id or "",
        secret_access_key=secret.get_secret_value() if secret else "",
        topic=settings.ses_topic or "",
        configuration_set=settings.ses_configuration_set or "",
        endpoint=settings.ses_endpoint,
        sns_hosts=settings.ses_certificate_hosts,
        connections=at_once,
    )
    made = Ses(options, composer=composer(settings, clock), places=by_half(at_once), clock=clock)
    url = settings.ses_endpoint or f"https://email.{region}.amazonaws.com"
    place = ProviderPlace("SES", url, "look at RECADO_SES_REGION, RECADO_SES_ENDPOINT and the network")
    verifier = dns_proof(settings, made, made)
    return Adapter(sender=made, callbacks=made, verifier=verifier, connections=at_once, place=place)


def dns_proof(
    settings: Settings, provider: SenderIdentities | None = None, identities: IdentityMaker | None = None
) -> DnsProof:
    questions = FairPlaces(QUESTIONS_AT_ONCE, each=QUESTIONS_EACH, most_waiting=MOST_QUESTIONS_WAITING)
    return DnsProof(txt_records(settings, questions.place), provider, identities)


def txt_records(settings: Settings, turn: Turn | None = None) -> TxtRecords:
    server = settings.dns_server
    return TxtRecords(turn=turn) if server is None else TxtRecords(turn=turn, servers=(server.host,), port=server.port)


def composer(settings: Settings, clock: Clock) -> Composer:
    return Composer(clock=clock, key=signing_key(settings), turn=by_half(THREADS))


def signing_key(settings: Settings) -> DkimKey | None:
    """None: nothing is signed here."""
    domain, selector, key = settings.dkim_domain, settings.dkim_selector, settings.dkim_key
    return dkim_key(domain, selector, key.get_secret_value()) if domain and selector and key else None


def by_half(places: int) -> Turn:
    """Places of which an organization leaves half to all others (C31)."""
    return FairPlaces(places, each=max(1, places // _PARTS), most_waiting=MOST_EMAILS_WAITING).place


def is_loopback(host: str) -> bool:
    """Whether what is said to it stays on this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def greeting_name(address: str) -> str:
    """What we call ourselves at a mail server: the host of the API, an address of it in brackets (RFC 5321, 4.1.3)."""
    host = urlsplit(address).hostname or ""
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return host
    return f"[IPv6:{host}]" if found.version == 6 else f"[{host}]"


LIVE_EMAIL: Mapping[str, Callable[[Settings, Clock, int], Adapter]] = {
    "sandbox": sandbox,
    "bridge": bridge,
    "smtp": smtp,
    "ses": ses,
}
"""By the setting; another value is none."""
