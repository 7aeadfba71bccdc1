"""Adapters by what they do, in small protocols, and where they are found: by channel, environment and route (C29.2).

Whoever speaks to one asks for the protocol that it needs, and for no other.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from recado.channels.core.events import CallbackEvent
from recado.channels.core.media import MediaStore
from recado.channels.core.provider import (
    Account,
    FlowDefinition,
    NumberHealth,
    OutboundMessage,
    Outcome,
    ProviderTemplate,
    Submission,
    TemplateSubmission,
)
from recado.channels.core.references import NamedBy
from recado.domain.email.sender import DnsRecord, SenderLook


class MessageSender(Protocol):
    """Hands messages over."""

    @property
    def name(self) -> str:
        """As in the callback's path and the metrics: `sandbox`, `bridge`, `cloud`."""

    @property
    def idempotent(self) -> bool:
        """True: a send of unknown outcome may be repeated under the same message id (C29.2)."""

    @property
    def looked_up_by(self) -> frozenset[NamedBy]:
        """By what it names messages without telling whose they are: each needs a look-up row."""

    @property
    def paces_pairs(self) -> bool:
        """True: the provider bounds the messages from one number to one recipient (C14.5, pair)."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def send(self, message: OutboundMessage, account: Account, attempt: int) -> Outcome:
        """Hand one message over. `attempt` counts from 1. Never raises, cancellation aside."""


class AnswersAtOnce(Protocol):
    """A `MessageSender` that may know an outcome without waiting for anybody: such a call needs no task."""

    def outcome_of(self, message: OutboundMessage, account: Account, attempt: int) -> Outcome | None:
        """As `send`, or None, with nothing done, where the outcome must be waited for."""


class EventReader(Protocol):
    """Reads what was stored as it came from its provider."""

    @property
    def name(self) -> str:
        """As in the callback's path."""

    def parse_callback(self, headers: Mapping[str, str], body: bytes) -> Sequence[CallbackEvent]:
        """The events of a verified callback, in their order; raises `MalformedCallback`.

        A method of the class, not of the adapter: a large body is read in another process, which has no adapter.
        `headers`: its content type, and those named by `read_with`; neither for one that an older version stored.
        """


class CallbackSource(EventReader, Protocol):
    """Knows its provider's callbacks (C29.5)."""

    def verify_callback(self, headers: Mapping[str, str], body: bytes, now: datetime) -> bool:
        """Whether this provider sent the callback. Header names in any case."""

    @property
    def read_with(self) -> Collection[str]:
        """The headers, besides the content type, without which a body cannot be read: they are kept with it."""

    @property
    def challenged(self) -> bool:
        """True: the provider asks whether the address is ours before it sends anything there."""

    def answer_challenge(self, query: Mapping[str, str]) -> str | None:
        """The text that it waits for; None for whoever does not know what it knows. `query`: of the address asked."""


class PreparedCallbacks(Protocol):
    """A `CallbackSource` whose callbacks are read before it is known who sent them, and whose provider must be asked
    for something before that can be verified.
    """

    @property
    def largest_callback(self) -> int:
        """Bytes; the provider sends none that is larger."""

    def envelopes_in(self, body: bytes) -> tuple[Sequence[Any], str | None]:
        """The envelope that a body is, and what is wrong with one that is none.

        A method of the class, not of the adapter: a large body is read in another process, which has no adapter.
        """

    def is_prepared(self, envelope: Any) -> bool:
        """Whether nothing is missing to say who sent it. So it is of what is refused whatever the provider says."""

    async def prepare_callback(self, envelope: Any) -> None:
        """Ask for what is missing, as often as that is due, and for whatever else an envelope of ours wants. Never
        raises, cancellation aside; the envelope may be anybody's.
        """

    def verify_envelope(self, envelope: Any, now: datetime) -> bool:
        """Whether this provider sent what the envelope is of."""


Sink = Callable[[bytes], Awaitable[None]]
"""Stores what a provider said, as `parse_callback` reads it; raises when it is not stored."""


class SessionSource(EventReader, Protocol):
    """Hears of reports and messages on connections that it holds, and not by callbacks (C29.1)."""

    async def run(self, sink: Sink) -> None:
        """Give what comes to `sink`, until it is cancelled.

        The provider is told that we have something only when `sink` has returned for it. What that raises for, or what
        a crash cut short, the provider brings again: nothing is lost, and some things come twice.
        """


class SenderConnector(Protocol):
    """Puts what messages leave from into service, and takes it out. Raises `ProviderError`."""

    async def connect(self, account: Account) -> None: ...

    async def disconnect(self, account: Account) -> None: ...


class SenderAdmin(SenderConnector, Protocol):
    """Registers what messages leave from, and says how it is. Raises `ProviderError`."""

    @property
    def verification_delay(self) -> float:
        """Seconds after which it is worth asking whether a new number is verified (C14.2)."""

    async def number_health(self, account: Account) -> NumberHealth: ...

    async def update_profile(self, account: Account, profile: Mapping[str, str]) -> None: ...


class TemplateReviewer(Protocol):
    """Has templates reviewed, and keeps them (C11.3). Raises `ProviderError`."""

    async def submit_template(self, account: Account, template: TemplateSubmission) -> Submission: ...

    async def delete_template(self, account: Account, name: str, provider_template_id: str | None) -> None: ...

    async def list_templates(self, account: Account) -> list[ProviderTemplate]: ...


class FlowAdmin(Protocol):
    """Keeps flows (C19). Raises `ProviderError`."""

    async def create_flow(self, account: Account, flow: FlowDefinition) -> str:
        """Make a draft there; its id."""

    async def publish_flow(self, account: Account, provider_flow_id: str) -> None: ...

    async def deprecate_flow(self, account: Account, provider_flow_id: str) -> None:
        """Take it out of use; one that is deprecated already stays so."""


class SenderVerifier(Protocol):
    """Knows what senders of e-mail prove themselves by, and looks whether they did (C10.4)."""

    @property
    def at_once(self) -> bool:
        """True: every sender is verified when it is made."""

    def proofs(self, domain: str, token: str) -> tuple[DnsRecord, ...]:
        """What the owner of a domain is to enter at its name server."""

    @property
    def identities(self) -> "IdentityMaker | None":
        """Who tells the provider of domains; None: nobody has to."""

    async def sender_status(
        self, domain: str, records: tuple[DnsRecord, ...], owner: str, *, address: str | None = None
    ) -> SenderLook:
        """The same records, each with whether it is found now, and what the provider wants besides. It makes nothing.

        `owner`: the organization that asks; `address`: of a sender that is a single one.
        Raises `ProviderError` when that cannot be told.
        """


class IdentityMaker(Protocol):
    """Tells a provider of domains that e-mail is to leave from, and takes them back (C10.4)."""

    @property
    def place(self) -> str:
        """The account at the provider."""

    async def make(self, domain: str, owner: str) -> SenderLook | None:
        """Tell it a domain that it did not know. None: that did not make it; it knows it already, or may not be told.

        Raises `NothingDoneError` where nothing was made, `ProviderError` where that is not known.
        """

    async def remove(self, domain: str, owner: str) -> None:
        """Take a domain back; one that is not there is gone already. Raises `ProviderError`."""


class ChatOpener(Protocol):
    """Knows at which address people begin a chat (C29.2)."""

    def open_chat_url(self, phone: str, text: str) -> str:
        """Where the chat with a number opens, in which `text` is written. `phone`: the number's, in E.164."""


# Of an environment; None where it has none.
AdminFor = Callable[[str], SenderAdmin | None]
ConnectorFor = Callable[[str], SenderConnector | None]
ReviewerFor = Callable[[str], TemplateReviewer | None]
FlowAdminFor = Callable[[str], FlowAdmin | None]
OpenerFor = Callable[[str], ChatOpener | None]
VerifierFor = Callable[[str], SenderVerifier | None]


class SenderFor(Protocol):
    """Finds who sends for a channel in an environment; None where nobody does."""

    def __call__(self, channel: str, env: str, route: str | None = None, /) -> MessageSender | None: ...


class ProviderPlace(NamedTuple):
    """Where an adapter reaches its provider: `what` is there, and what an operator does when it does not answer."""

    what: str
    url: str
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """One adapter by what it does; None: that it does not do.

    `connections`: its calls in flight; None: as many as usual (C31). `place`: None where its messages reach nobody.
    """

    sender: MessageSender | None = None
    callbacks: CallbackSource | None = None
    sessions: SessionSource | None = None
    admin: SenderAdmin | None = None
    connector: SenderConnector | None = None
    templates: TemplateReviewer | None = None
    flows: FlowAdmin | None = None
    opener: ChatOpener | None = None
    verifier: SenderVerifier | None = None
    media: MediaStore | None = None
    connections: int | None = None
    place: ProviderPlace | None = None


_NOTHING = Adapter()


class Adapters:
    """The adapters of an installation. A channel with one adapter an environment has no routes: its route is None."""

    def __init__(self, adapters: Mapping[tuple[str, str, str | None], Adapter]) -> None:
        """By channel, environment and route."""
        self._adapters = dict(adapters)

    def senders(self) -> list[MessageSender]:
        """All, each once: to be started, and stopped."""
        found = (adapter.sender for adapter in self._adapters.values())
        return list({id(sender): sender for sender in found if sender is not None}.values())

    def find(self, channel: str, env: str, route: str | None = None, /) -> Adapter:
        """One that does nothing where there is none."""
        return self._adapters.get((channel, env, route), _NOTHING)

    def of(self, channel: str, env: str) -> dict[str | None, Adapter]:
        """Those of a channel in an environment, by route."""
        return {
            route: adapter for (at, of_env, route), adapter in self._adapters.items() if (at, of_env) == (channel, env)
        }

    def sender(self, channel: str, env: str, route: str | None = None, /) -> MessageSender | None:
        return self.find(channel, env, route).sender

    def admin(self, channel: str, env: str, route: str | None = None, /) -> SenderAdmin | None:
        return self.find(channel, env, route).admin

    def connector(self, channel: str, env: str, /) -> SenderConnector | None:
        return self.find(channel, env).connector

    def reviewer(self, channel: str, env: str, route: str | None = None, /) -> TemplateReviewer | None:
        return self.find(channel, env, route).templates

    def opener(self, channel: str, env: str, route: str | None = None, /) -> ChatOpener | None:
        return self.find(channel, env, route).opener

    def flow_admin(self, channel: str, env: str, /) -> FlowAdmin | None:
        return self.find(channel, env).flows

    def verifier(self, channel: str, env: str, /) -> SenderVerifier | None:
        return self.find(channel, env).verifier

    def media(self, channel: str, env: str, /) -> MediaStore | None:
        return self.find(channel, env).media

    def sends_in(self, channel: str) -> frozenset[str]:
        """The environments in which somebody sends for a channel."""
        return frozenset(env for (at, env, _), adapter in self._adapters.items() if at == channel and adapter.sender)

    def callback_sources(self) -> dict[tuple[str, str], CallbackSource]:
        """Who sends callbacks, by channel and adapter, as in their path."""
        return {
            (channel, adapter.callbacks.name): adapter.callbacks
            for (channel, _, _), adapter in self._adapters.items()
            if adapter.callbacks is not None
        }

    def session_sources(self) -> list[tuple[str, SessionSource]]:
        """Who hears on connections of its own, each with its channel."""
        return [
            (channel, adapter.sessions)
            for (channel, _, _), adapter in self._adapters.items()
            if adapter.sessions is not None
        ]

    def connections(self) -> dict[tuple[str, str], int]:
        """By channel and environment, where the adapter of a channel without routes bears fewer calls than usual."""
        return {
            (channel, env): adapter.connections
            for (channel, env, route), adapter in self._adapters.items()
            if route is None and adapter.connections is not None
        }
