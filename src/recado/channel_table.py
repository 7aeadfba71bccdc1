"""The channels of this program by their parts: adapters, rules, routes, gateways. A new channel is one entry more.

What a channel differs by in the pipeline is its policy, which is entered in `domain/channels/installed.py`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from recado.actors.dispatch.gateway import GatewayPlan
from recado.channels.chatapp.bridge import Bridge
from recado.channels.chatapp.chat_address import SANDBOX_ADDRESS, ChatAddress
from recado.channels.chatapp.cloud import Cloud
from recado.channels.chatapp.sandbox import Sandbox
from recado.channels.core.adapters import Adapter, Adapters
from recado.channels.http.outbound_guard import Turn
from recado.config.settings import Settings
from recado.domain.channels.chatapp import CHATAPP
from recado.domain.core.clock import Clock
from recado.domain.core.ids import IdSource
from recado.domain.links.tracked import MessageLinks
from recado.http.api.route import Route
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.messages.bulk_models import BatchBody
from recado.services.batches.channel_batches import ChannelBatches
from recado.services.batches.chatapp_batches import ChatAppBatches
from recado.services.messages.acceptance import Acceptance, ChannelRules
from recado.services.messages.chatapp_rules import ChatAppRules
from recado.storage.access.directories import Directories
from recado.storage.billing.prices import PriceDirectory
from recado.storage.core.fair_places import FairPlaces
from recado.storage.core.postgres import Database
from recado.storage.messages.chat_windows import ChatWindows

PART_OF_AN_ACCOUNT = 4  # a quarter of the connections for all but sends (C31)
MOST_CALLS_WAITING = 100  # of an account

AdapterKey = tuple[str, str | None]
"""Environment and route; None: its channel has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleParts:
    """What the rules of a channel are made of. `sends_in`: the environments in which somebody sends for it.

    `links`: makes those of a message whose links are tracked (C27.1).
    """

    database: Database
    directories: Directories
    windows: ChatWindows
    ids: IdSource
    clock: Clock
    sends_in: Collection[str]
    prices: PriceDirectory | None
    links: Callable[[], MessageLinks]


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
    """The sandbox in test; in live the adapter of the setting, which may be none."""
    found: dict[AdapterKey, Adapter] = {("test", None): sandbox(settings, clock)}
    live = LIVE_CHATAPP.get(settings.adapter_chatapp)
    if live is not None:
        found["live", None] = live(settings, clock, connections)
    return found


def sandbox(settings: Settings, clock: Clock, connections: int | None = None) -> Adapter:
    """It calls nobody, and needs no connections: it has as many calls as usual."""
    made = Sandbox(clock, settings.sandbox_time_scale)
    return Adapter(sender=made, admin=made, templates=made, opener=ChatAddress(SANDBOX_ADDRESS))


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
    return Adapter(
        sender=made, callbacks=made, admin=made, templates=made, opener=chat_address(settings), connections=connections
    )


def cloud(settings: Settings, clock: Clock, connections: int) -> Adapter:
    app_secret, verify_token = settings.cloud_app_secret, settings.cloud_verify_token
    made = Cloud(
        url=settings.cloud_url or "",
        app_secret=app_secret.get_secret_value() if app_secret else "",
        verify_token=verify_token.get_secret_value() if verify_token else None,
        clock=clock,
        shares=by_account,
    )
    return Adapter(
        sender=made, callbacks=made, admin=made, templates=made, opener=chat_address(settings), connections=connections
    )


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
        windows=parts.windows,
        ids=parts.ids,
        clock=parts.clock,
        sends_in=parts.sends_in,
        prices=parts.prices,
    )


def chatapp_batches(parts: RuleParts) -> ChannelBatches:
    return ChatAppBatches(parts.database, parts.directories, sends_in=parts.sends_in)


CHANNELS: Final[list[ChannelParts]] = [
    ChannelParts(channel=CHATAPP, adapters=chatapp_adapters, rules=chatapp_rules, batches=chatapp_batches),
]
