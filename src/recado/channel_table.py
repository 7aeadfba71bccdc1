"""The channels of this program by their parts: adapters, rules, routes, gateways. A new channel is one entry more.

What a channel differs by in the pipeline is its policy, which is entered in `domain/channels/installed.py`.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final
from urllib.parse import urlsplit

from pydantic import SecretStr

from recado.actors.dispatch.shared_gateway import GatewayPlan
from recado.channels.chatapp.bridge import Bridge
from recado.channels.chatapp.chat_address import SANDBOX_ADDRESS, ChatAddress
from recado.channels.chatapp.cloud import Cloud
from recado.channels.chatapp.sandbox import Sandbox
from recado.channels.core.adapters import Adapter, Adapters, ProviderPlace
from recado.channels.core.bridge.bridge import LONGEST_CALL
from recado.channels.core.provider import Account
from recado.channels.http.outbound_guard import Turn
from recado.channels.http.outbound_http import CONNECTIONS
from recado.channels.rcs.bridge import RcsBridge
from recado.channels.rcs.sandbox import RcsSandbox
from recado.channels.sms.bridge import SmsBridge
from recado.channels.sms.sandbox import SmsSandbox
from recado.channels.sms.smpp.session import SmppLogin
from recado.channels.sms.smpp.smpp import Smpp, SmppOptions
from recado.channels.social.bridge import SocialBridge
from recado.channels.social.sandbox import SocialSandbox
from recado.config.bridges import BridgeSettings, bridge_settings
from recado.config.settings import Settings
from recado.domain.channels.chatapp import CHATAPP
from recado.domain.channels.email import EMAIL
from recado.domain.channels.rcs import RCS
from recado.domain.channels.sms import GATEWAYS as SMS_GATEWAYS
from recado.domain.channels.sms import SMS
from recado.domain.channels.social import SOCIAL
from recado.domain.channels.source import SANDBOX
from recado.domain.core.clock import Clock
from recado.domain.core.ids import IdSource
from recado.domain.links.tracked import MessageLinks
from recado.domain.messages.sms_text import segment_texts
from recado.email_adapters import email_adapters
from recado.http.api.route import Route
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.email.bulk_models import CreateEmailBatch
from recado.http.routes.email.messages import email_routes
from recado.http.routes.messages.bulk_models import BatchBody
from recado.http.routes.rcs.rcs import rcs_routes
from recado.http.routes.rcs.rcs_models import CreateRcsBatch
from recado.http.routes.sms.sms import sms_routes
from recado.http.routes.sms.sms_models import CreateSmsBatch
from recado.services.batches.channel_batches import ChannelBatches
from recado.services.batches.chatapp_batches import ChatAppBatches
from recado.services.batches.email_batches import EmailBatches
from recado.services.batches.rcs_batches import RcsBatches
from recado.services.batches.sms_batches import SmsBatches
from recado.services.email.sendable import SendableMailboxes, SendableTemplates
from recado.services.email.tracking import EmailTracking
from recado.services.media.media_use import MediaUse
from recado.services.messages.acceptance import Acceptance, ChannelRules
from recado.services.messages.chatapp_rules import ChatAppRules
from recado.services.messages.email_rules import EmailRules
from recado.services.messages.rcs_rules import RcsRules
from recado.services.messages.sms_rules import SmsRules
from recado.services.messages.social_rules import SocialRules
from recado.storage.access.directories import Directories
from recado.storage.billing.prices import PriceDirectory
from recado.storage.core.connections.postgres import Database
from recado.storage.core.shares.fair_places import FairPlaces
from recado.storage.messages.chat_windows import ChatWindows

PART_OF_AN_ACCOUNT = 4  # a quarter of the connections for all but sends (C31)
MOST_CALLS_WAITING = 100  # of an account

AdapterKey = tuple[str, str | None]
"""Environment and route; None: its channel has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleParts:
    """What the rules of a channel are made of. `sends_in`: the environments in which somebody sends for it; `sms_in`:
    for SMS, which may take the place of its messages.

    `links`: makes those of a message whose links are tracked (C27.1); `tracking`: what is added to e-mails;
    `simulator_domain`: of the mailbox simulator; `email_templates`, `mailboxes`: what queued e-mails are made of;
    `media`: what numbers and social accounts send uploads by.
    """

    database: Database
    directories: Directories
    windows: ChatWindows
    ids: IdSource
    clock: Clock
    sends_in: Collection[str]
    sms_in: Collection[str]
    prices: PriceDirectory | None
    links: Callable[[], MessageLinks]
    simulator_domain: str
    tracking: EmailTracking
    email_templates: SendableTemplates
    mailboxes: SendableMailboxes
    media: MediaUse


def _no_gateways(settings: Settings, adapters: Adapters) -> Sequence[GatewayPlan]:
    return ()


def _no_routes(dependencies: Dependencies, acceptance: Acceptance) -> tuple[Route, ...]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelParts:
    """One channel.

    `adapters`: those who send for it by the settings, of whom live may have none (C33), and how many calls an adapter
    bears that has connections. `rules`: what it asks of a draft. `gateways`: those that its senders share, in the order
    in which they are preferred; none where each sender has its own. `routes`: what only it serves. `batches`: what it
    asks of batches, and `batch_body` what callers give for one, where that is not chat-app's; None: it has no batches.
    """

    channel: str
    adapters: Callable[[Settings, Clock, int], Mapping[AdapterKey, Adapter]]
    rules: Callable[[RuleParts], ChannelRules]
    gateways: Callable[[Settings, Adapters], Sequence[GatewayPlan]] = _no_gateways
    routes: Callable[[Dependencies, Acceptance], tuple[Route, ...]] = _no_routes
    batches: Callable[[RuleParts], ChannelBatches] | None = None
    batch_body: type[BatchBody] | None = None


# Chat-app -------------------------------------------------------------------------------------------------------------


def chatapp_adapters(settings: Settings, clock: Clock, connections: int) -> Mapping[AdapterKey, Adapter]:
    """The sandbox in test; in live the adapter of the setting, which may be none.

    Where several processes send, the provider sees the connections of all: each has its part.
    """
    found: dict[AdapterKey, Adapter] = {("test", None): sandbox(settings, clock)}
    live = LIVE_CHATAPP.get(settings.adapter_chatapp)
    if live is not None:
        found["live", None] = live(settings, clock, max(1, connections // settings.sending_processes))
    return found


def sandbox(settings: Settings, clock: Clock, connections: int | None = None) -> Adapter:
    """It calls nobody, and needs no connections: it has as many calls as usual."""
    made = Sandbox(clock, settings.sandbox_time_scale)
    return Adapter(sender=made, admin=made, templates=made, flows=made, opener=ChatAddress(SANDBOX_ADDRESS), media=made)


def bridge(settings: Settings, clock: Clock, connections: int) -> Adapter:
    said = bridge_settings(settings, "chatapp", CHATAPP)
    made = Bridge(**said, clock=clock, shares=by_account)
    place = ProviderPlace("the bridge", said["url"], "start it")
    return Adapter(
        sender=made, callbacks=made, admin=made, templates=made, flows=made, opener=chat_address(settings), media=made,
        connections=connections, place=place,
    )  # fmt: skip


def cloud(settings: Settings, clock: Clock, connections: int) -> Adapter:
    app_secret, verify_token = settings.cloud_app_secret, settings.cloud_verify_token
    made = Cloud(
        url=settings.cloud_url or "",
        app_secret=app_secret.get_secret_value() if app_secret else "",
        verify_token=verify_token.get_secret_value() if verify_token else None,
        clock=clock,
        shares=by_account,
    )
    place = ProviderPlace("the hosted API", str(settings.cloud_url), "look at RECADO_CLOUD_URL and the network")
    return Adapter(
        sender=made, callbacks=made, admin=made, templates=made, flows=made, opener=chat_address(settings), media=made,
        connections=connections, place=place,
    )  # fmt: skip


def chat_address(settings: Settings) -> ChatAddress | None:
    """None: nobody said where chats open, so no link can lead there."""
    return None if settings.chat_url is None else ChatAddress(settings.chat_url)


LIVE_CHATAPP: Mapping[str, Callable[[Settings, Clock, int], Adapter]] = {
    "sandbox": sandbox,
    "bridge": bridge,
    "cloud": cloud,
}
"""By the setting; another value is none."""


def by_account(connections: int) -> Turn:
    """Connections in which an account that hangs leaves room for all others (C31)."""
    return FairPlaces(connections, each=connections // PART_OF_AN_ACCOUNT, most_waiting=MOST_CALLS_WAITING).place


def chatapp_rules(parts: RuleParts) -> ChannelRules:
    directories = parts.directories
    return ChatAppRules(
        numbers=directories.numbers,
        organizations=directories.organizations,
        templates=directories.templates,
        flows=directories.flows,
        windows=parts.windows,
        ids=parts.ids,
        clock=parts.clock,
        sends_in=parts.sends_in,
        media=parts.media,
        prices=parts.prices,
    )


def chatapp_batches(parts: RuleParts) -> ChannelBatches:
    return ChatAppBatches(parts.database, parts.directories, sends_in=parts.sends_in, media=parts.media)


# SMS ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SmppSettings:
    """An SMS centre, and how it wants it."""

    url: str | None
    system_id: str | None
    password: SecretStr | None
    system_type: str
    options: SmppOptions


@dataclass(frozen=True, slots=True)
class SmsGateway:
    """What the settings say of a gateway of live."""

    name: str
    adapter: str
    per_second: int
    bridge: BridgeSettings
    callbacks: str  # as what its bridge calls back
    smpp: SmppSettings


def sms_gateways_of(settings: Settings) -> Sequence[SmsGateway]:
    """Those that have an adapter, in the order in which they are preferred."""
    first, second = SMS_GATEWAYS
    found = (
        SmsGateway(
            first,
            settings.adapter_sms,
            settings.sms_gateway_a_per_second,
            bridge_settings(settings, "sms", SMS, callbacks="bridge"),
            "bridge",
            SmppSettings(
                settings.smpp_url, settings.smpp_system_id, settings.smpp_password, settings.smpp_system_type,
                SmppOptions(
                    binds=settings.smpp_binds, window=settings.smpp_window, source=settings.smpp_source,
                    alphabet=settings.smpp_alphabet, message_ids=settings.smpp_message_ids,
                    wide_reference=settings.smpp_wide_reference,
                ),
            ),
        ),
        SmsGateway(
            second,
            settings.adapter_sms_b,
            settings.sms_gateway_b_per_second,
            bridge_settings(settings, "sms_b", SMS, callbacks="bridge_b"),
            "bridge_b",
            SmppSettings(
                settings.smpp_b_url, settings.smpp_b_system_id, settings.smpp_b_password, settings.smpp_b_system_type,
                SmppOptions(
                    binds=settings.smpp_b_binds, window=settings.smpp_b_window, source=settings.smpp_b_source,
                    alphabet=settings.smpp_b_alphabet, message_ids=settings.smpp_b_message_ids,
                    wide_reference=settings.smpp_b_wide_reference,
                ),
            ),
        ),
    )  # fmt: skip
    return [each for each in found if each.adapter in LIVE_SMS]


def sms_adapters(settings: Settings, clock: Clock, connections: int) -> Mapping[AdapterKey, Adapter]:
    """The sandbox in test; in live one for each gateway, whose name is its route."""
    found: dict[AdapterKey, Adapter] = {("test", None): Adapter(sender=SmsSandbox(clock, settings.sandbox_time_scale))}
    for gateway in sms_gateways_of(settings):
        found["live", gateway.name] = LIVE_SMS[gateway.adapter](gateway, settings, clock, connections)
    return found


def sms_sandbox(gateway: SmsGateway, settings: Settings, clock: Clock, connections: int) -> Adapter:
    return Adapter(sender=SmsSandbox(clock, settings.sandbox_time_scale))


def sms_bridge(gateway: SmsGateway, settings: Settings, clock: Clock, connections: int) -> Adapter:
    made = SmsBridge(**gateway.bridge, clock=clock, name=gateway.callbacks)
    at_once = min(connections, LONGEST_CALL * gateway.per_second)
    place = ProviderPlace("the bridge", gateway.bridge["url"], "start it")
    return Adapter(sender=made, callbacks=made, connections=at_once, place=place)


def sms_smpp(gateway: SmsGateway, settings: Settings, clock: Clock, connections: int) -> Adapter:
    said = gateway.smpp
    at = urlsplit(said.url or "")
    made = Smpp(
        SmppLogin(
            host=at.hostname or "",
            port=at.port or 0,
            tls=at.scheme == "smpps",
            system_id=said.system_id or "",
            password=said.password.get_secret_value() if said.password else "",
            system_type=said.system_type,
        ),
        said.options,
        account=gateway.name,
        segments=segment_texts,
        clock=clock,
        chance=Random(os.urandom(32)),  # noqa: S311 - spreads binds, and names lives; guards nothing
    )
    at_once = said.options.binds * said.options.window
    place = ProviderPlace("the SMS centre", said.url or "", "look at its address in the settings, and at the network")
    return Adapter(sender=made, sessions=made, connections=at_once, place=place)


LIVE_SMS: Mapping[str, Callable[[SmsGateway, Settings, Clock, int], Adapter]] = {
    "sandbox": sms_sandbox,
    "bridge": sms_bridge,
    "smpp": sms_smpp,
}
"""By the setting; another value is none."""


def sms_gateways(settings: Settings, adapters: Adapters) -> Sequence[GatewayPlan]:
    """What all routes share: the sandbox in test; in live those of the settings (C16.3)."""
    test = _sms_plan("test", SANDBOX, None, settings.sms_gateway_a_per_second, adapters)
    live = [_sms_plan("live", each.name, each.name, each.per_second, adapters) for each in sms_gateways_of(settings)]
    return [test, *live]


def _sms_plan(env: str, name: str, route: str | None, per_second: float, adapters: Adapters) -> GatewayPlan:
    adapter = adapters.find(SMS, env, route)
    assert adapter.sender is not None  # noqa: S101 - made by `sms_adapters` from the same settings
    return GatewayPlan(
        channel=SMS,
        env=env,
        name=name,
        per_second=per_second,
        provider=adapter.sender,
        account=Account(sender_id=name, organization_id="", env=env, provider_id=name, owner=name),
        connections=adapter.connections or CONNECTIONS,
    )


def sms_rules(parts: RuleParts) -> ChannelRules:
    return SmsRules(
        organizations=parts.directories.organizations,
        ids=parts.ids,
        clock=parts.clock,
        sends_in=parts.sends_in,
        prices=parts.prices,
        links=parts.links,
    )


def sms_batches(parts: RuleParts) -> ChannelBatches:
    return SmsBatches(parts.directories.organizations, sends_in=parts.sends_in, links=parts.links)


# RCS ------------------------------------------------------------------------------------------------------------------


def rcs_adapters(settings: Settings, clock: Clock, connections: int) -> Mapping[AdapterKey, Adapter]:
    """The sandbox in test; in live the adapter of the setting, which is its route: SMS leave through others."""
    found: dict[AdapterKey, Adapter] = {("test", None): Adapter(sender=RcsSandbox(clock, settings.sandbox_time_scale))}
    if settings.adapter_rcs == SANDBOX:
        found["live", SANDBOX] = Adapter(sender=RcsSandbox(clock, settings.sandbox_time_scale))
    elif settings.adapter_rcs:
        found["live", settings.adapter_rcs] = rcs_bridge(settings, clock, connections)
    return found


def rcs_bridge(settings: Settings, clock: Clock, connections: int) -> Adapter:
    said = bridge_settings(settings, "rcs", RCS)
    made = RcsBridge(**said, clock=clock, shares=by_account)
    at_once = min(connections, LONGEST_CALL * settings.rcs_per_second)
    place = ProviderPlace("the bridge", said["url"], "start it")
    return Adapter(sender=made, callbacks=made, connections=at_once, place=place)


def rcs_gateways(settings: Settings, adapters: Adapters) -> Sequence[GatewayPlan]:
    """One in each environment in which somebody sends."""
    plans = []
    for env, route, name in (("test", None, SANDBOX), ("live", settings.adapter_rcs, settings.adapter_rcs)):
        adapter = adapters.find(RCS, env, route)
        if adapter.sender is not None:
            plans.append(
                GatewayPlan(
                    channel=RCS,
                    env=env,
                    name=name,
                    per_second=settings.rcs_per_second,
                    provider=adapter.sender,
                    account=Account(sender_id=name, organization_id="", env=env, provider_id=name, owner=name),
                    connections=adapter.connections or CONNECTIONS,
                )
            )
    return plans


def rcs_rules(parts: RuleParts) -> ChannelRules:
    return RcsRules(
        organizations=parts.directories.organizations,
        ids=parts.ids,
        clock=parts.clock,
        sends_in=parts.sends_in,
        sms_in=parts.sms_in,
        prices=parts.prices,
        links=parts.links,
    )


def rcs_batches(parts: RuleParts) -> ChannelBatches:
    return RcsBatches(parts.directories.organizations, sends_in=parts.sends_in, sms_in=parts.sms_in, links=parts.links)


# Social ---------------------------------------------------------------------------------------------------------------


def social_adapters(settings: Settings, clock: Clock, connections: int) -> Mapping[AdapterKey, Adapter]:
    """The sandbox in test; in live the adapter of the setting, which may be none."""
    found: dict[AdapterKey, Adapter] = {("test", None): social_sandbox(settings, clock, connections)}
    live = LIVE_SOCIAL.get(settings.adapter_social)
    if live is not None:
        found["live", None] = live(settings, clock, connections)
    return found


def social_sandbox(settings: Settings, clock: Clock, connections: int) -> Adapter:
    made = SocialSandbox(clock, settings.sandbox_time_scale)
    return Adapter(sender=made, connector=made, media=made)


def social_bridge(settings: Settings, clock: Clock, connections: int) -> Adapter:
    said = bridge_settings(settings, "social", SOCIAL)
    made = SocialBridge(**said, clock=clock, shares=by_account)
    place = ProviderPlace("the bridge", said["url"], "start it")
    return Adapter(sender=made, callbacks=made, connector=made, media=made, connections=connections, place=place)


LIVE_SOCIAL: Mapping[str, Callable[[Settings, Clock, int], Adapter]] = {
    "sandbox": social_sandbox,
    "bridge": social_bridge,
}
"""By the setting; another value is none."""


def social_rules(parts: RuleParts) -> ChannelRules:
    directories = parts.directories
    return SocialRules(
        database=parts.database,
        accounts=directories.social_accounts,
        organizations=directories.organizations,
        windows=parts.windows,
        ids=parts.ids,
        clock=parts.clock,
        sends_in=parts.sends_in,
        media=parts.media,
        prices=parts.prices,
    )


# E-mail ---------------------------------------------------------------------------------------------------------------


def email_gateways(settings: Settings, adapters: Adapters) -> Sequence[GatewayPlan]:
    """One in each environment in which somebody sends."""
    plans = []
    for env, name in (("test", SANDBOX), ("live", settings.adapter_email)):
        adapter = adapters.find(EMAIL, env)
        if adapter.sender is not None:
            account = Account(sender_id=name, organization_id="", env=env, provider_id=name, owner=name)
            plans.append(
                GatewayPlan(
                    channel=EMAIL,
                    env=env,
                    name=name,
                    per_second=settings.email_per_second,
                    provider=adapter.sender,
                    account=account,
                    connections=adapter.connections or CONNECTIONS,
                )
            )
    return plans


def email_rules(parts: RuleParts) -> ChannelRules:
    return EmailRules(
        database=parts.database,
        organizations=parts.directories.organizations,
        ids=parts.ids,
        clock=parts.clock,
        sends_in=parts.sends_in,
        prices=parts.prices,
        simulator_domain=parts.simulator_domain,
        tracking=parts.tracking,
        templates=parts.email_templates,
        mailboxes=parts.mailboxes,
    )


def email_batches(parts: RuleParts) -> ChannelBatches:
    return EmailBatches(
        parts.database,
        parts.directories.organizations,
        sends_in=parts.sends_in,
        templates=parts.email_templates,
        mailboxes=parts.mailboxes,
        simulator_domain=parts.simulator_domain,
    )


CHANNELS: Final[list[ChannelParts]] = [
    ChannelParts(channel=CHATAPP, adapters=chatapp_adapters, rules=chatapp_rules, batches=chatapp_batches),
    ChannelParts(
        channel=SMS,
        adapters=sms_adapters,
        rules=sms_rules,
        gateways=sms_gateways,
        routes=sms_routes,
        batches=sms_batches,
        batch_body=CreateSmsBatch,
    ),
    ChannelParts(
        channel=RCS,
        adapters=rcs_adapters,
        rules=rcs_rules,
        gateways=rcs_gateways,
        routes=rcs_routes,
        batches=rcs_batches,
        batch_body=CreateRcsBatch,
    ),
    ChannelParts(
        channel=EMAIL,
        adapters=email_adapters,
        rules=email_rules,
        gateways=email_gateways,
        routes=email_routes,
        batches=email_batches,
        batch_body=CreateEmailBatch,
    ),
    ChannelParts(channel=SOCIAL, adapters=social_adapters, rules=social_rules),
]
