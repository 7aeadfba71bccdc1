"""The SES adapter: e-mails out through its API, and what SNS brings of them back (C10.2.13, C29.1, C29.5)."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import structlog
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from yarl import URL

from recado.channels.core.errors import MalformedCallback, NothingDoneError, ProviderError
from recado.channels.core.events import CallbackEvent
from recado.channels.core.provider import Accepted, Account, Down, NoPlace, OutboundMessage, Outcome, Unknown
from recado.channels.core.references import NamedBy
from recado.channels.email.composing import PLACE_WITHIN, TIMEOUT, Composer, quotable_of, unsendable_outcome
from recado.channels.email.ses.answers import outcome_of
from recado.channels.email.ses.identities import identity_of, make_identity, remove_identity
from recado.channels.email.ses.reports import TAG, events_of
from recado.channels.email.ses.sns import LARGEST_ENVELOPE, NOTIFICATION, Envelope, SnsHosts, envelope_of, key_of
from recado.channels.http.answer import Answer
from recado.channels.http.outbound_guard import Turn
from recado.channels.http.outbound_http import OutboundHttp
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.domain.email.mime import EmailOnWire, UnsendableEmail
from recado.domain.email.sender import SenderLook

log = structlog.get_logger()

CONNECT_WITHIN: Final = 5.0
FETCH_WITHIN: Final = 5.0  # seconds, for a certificate
MOST_KEYS: Final = 16  # of certificates, kept
FETCH_AGAIN_AFTER: Final = 1.0  # seconds: whoever names new certificates all the time has one fetched a second


@dataclass(frozen=True, slots=True, kw_only=True)
class SesOptions:
    """How one account is used. `endpoint`: elsewhere than the region's own; None: there.

    `configuration_set`: which makes reports; `topic`: the ARN of the SNS topic that brings them; `sns_hosts`: as
    `SnsHosts` has it.
    """

    region: str
    access_key_id: str
    secret_access_key: str = field(repr=False)
    topic: str
    configuration_set: str
    endpoint: str | None = None
    sns_hosts: str = "sns.*.amazonaws.com"
    connections: int = 100


class Ses:
    """One account. `places`: the bound on its calls, shared among organizations; raises `Unavailable`."""

    name = "ses"
    idempotent = False
    looked_up_by = frozenset({NamedBy.OUR_ID})
    paces_pairs = False
    read_with: Collection[str] = ()
    challenged = False
    largest_callback = LARGEST_ENVELOPE
    only_looks = True

    def __init__(
        self,
        options: SesOptions,
        *,
        composer: Composer,
        places: Turn,
        clock: Clock,
        http: OutboundHttp | None = None,
        timeout: float = TIMEOUT,
        place_within: float = PLACE_WITHIN,
    ) -> None:
        """`http`: asks SNS."""
        self._options = options
        self._composer = composer
        self._places = places
        self._clock = clock
        self._hosts = SnsHosts(options.sns_hosts)
        self._http = http or OutboundHttp(connections=2, timeout=FETCH_WITHIN, connect_timeout=FETCH_WITHIN)
        self._timeout, self._place_within = timeout, place_within
        self._keys: dict[str, RSAPublicKey] = {}
        self._fetching = asyncio.Lock()
        self._fetched: str | None = None
        self._fetched_at: float | None = None
        self._client: Any = None
        self._open = AsyncExitStack()

    async def start(self) -> None:
        if self._client is not None:
            return
        self._composer.start()
        await self._http.start()
        self._client = await self._open.enter_async_context(await asyncio.to_thread(_client, self._options))

    async def stop(self) -> None:
        self._client = None
        self._composer.stop()
        await self._open.aclose()
        await self._http.stop()

    # Out --------------------------------------------------------------------------------------------------------------

    async def send(self, message: OutboundMessage, account: Account, attempt: int) -> Outcome:
        begun = False
        try:
            async with asyncio.timeout(self._timeout):
                email = await self._composer.compose(message)
                async with asyncio.timeout(self._place_within) as waiting, self._places(message.organization_id):
                    waiting.reschedule(None)
                    begun = True
                    return await self._call(email, message)
        except UnsendableEmail as unsendable:
            return unsendable_outcome(unsendable)
        except Unavailable:
            return NoPlace()
        except TimeoutError:
            return Unknown() if begun else NoPlace()

    async def _call(self, email: EmailOnWire, message: OutboundMessage) -> Outcome:
        from botocore import exceptions

        if self._client is None:
            return Down("stopped")
        try:
            answer = await self._client.send_email(
                FromEmailAddress=email.sender,
                Destination={"ToAddresses": [email.recipient]},
                Content={"Raw": {"Data": email.data}},
                EmailTags=[{"Name": TAG, "Value": message.id}],
                ConfigurationSetName=self._options.configuration_set,
            )
        except exceptions.ClientError as error:
            told = error.response.get("Error", {})
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            code, text = str(told.get("Code", "")), str(told.get("Message", ""))
            return outcome_of(code, status, text, quotable_of(message))
        except (
            exceptions.EndpointConnectionError,
            exceptions.ConnectTimeoutError,
            exceptions.SSLError,
            exceptions.ParamValidationError,
        ):
            return Down("connect_failed")
        except (exceptions.BotoCoreError, OSError, ValueError):
            return Unknown()
        taken = answer.get("MessageId")
        return Accepted(taken) if isinstance(taken, str) and 0 < len(taken) <= 255 else Unknown()

    # Identities: among the calls that send, each with a place of its organization's -----------------------------------

    @property
    def place(self) -> str:
        """The region, and the account that the topic belongs to."""
        return f"{self._options.region}:{account_of(self._options.topic)}"

    async def identity(self, domain: str, owner: str, *, address: str | None = None) -> SenderLook | None:
        """As `SenderIdentities` has it."""
        async with self._asking(owner) as client:
            return await identity_of(client, domain, address)

    async def make(self, domain: str, owner: str) -> SenderLook | None:
        """As `IdentityMaker` has it."""
        async with self._asking(owner) as client:
            return await make_identity(client, domain)

    async def remove(self, domain: str, owner: str) -> None:
        """As `IdentityMaker` has it."""
        async with self._asking(owner) as client:
            await remove_identity(client, domain)

    @asynccontextmanager
    async def _asking(self, owner: str) -> AsyncIterator[Any]:
        if self._client is None:
            raise NothingDoneError("unreachable", "stopped", "the adapter is stopped")
        try:
            async with asyncio.timeout(self._timeout), self._places(owner):
                yield self._client
        except TimeoutError:
            raise ProviderError("unreachable", "no_answer", "SES did not answer") from None

    # In ---------------------------------------------------------------------------------------------------------------

    @staticmethod
    def envelopes_in(body: bytes) -> tuple[Sequence[Envelope], str | None]:
        try:
            return [envelope_of(body)], None
        except MalformedCallback as error:
            return [], str(error)

    def is_prepared(self, envelope: Envelope) -> bool:
        """Whether its certificate is here, or it calls itself none of ours."""
        return envelope.certificate_url in self._keys or not self._is_ours(envelope)

    async def prepare_callback(self, envelope: Envelope) -> None:
        """Fetch the certificate by which the callback can be verified, and confirm a subscription that is ours."""
        if not self._is_ours(envelope):
            return
        if envelope.certificate_url not in self._keys:
            await self._fetch(envelope.certificate_url)
        if envelope.subscribe_url is not None and self.verify_envelope(envelope, self._clock.now()):
            confirmed = await self._get(envelope.subscribe_url) if self._hosts.has(envelope.subscribe_url) else None
            log.info("ses_subscription", confirmed=confirmed is not None)

    def verify_envelope(self, envelope: Envelope, now: datetime) -> bool:
        """By a certificate that `prepare_callback` fetched: no other is known."""
        if not self._is_ours(envelope) or not envelope.is_fresh(now):
            return False
        key = self._keys.get(envelope.certificate_url)
        return key is not None and envelope.is_signed_with(key)

    def verify_callback(self, headers: Mapping[str, str], body: bytes, now: datetime) -> bool:
        return any(self.verify_envelope(each, now) for each in self.envelopes_in(body)[0])

    @staticmethod
    def parse_callback(headers: Mapping[str, str], body: bytes) -> Sequence[CallbackEvent]:
        envelope = envelope_of(body)
        return events_of(envelope.message) if envelope.type == NOTIFICATION else ()

    def answer_challenge(self, query: Mapping[str, str]) -> str | None:
        return None

    def _is_ours(self, envelope: Envelope) -> bool:
        """Whether it calls itself one of our topic, under a certificate that may be fetched."""
        return envelope.topic == self._options.topic and self._hosts.has(envelope.certificate_url, ".pem")

    async def _fetch(self, url: str) -> None:
        """One at a time, and not many: anybody can name one. Nobody waits for that of another."""
        if self._fetching.locked() and self._fetched != url:
            return
        async with self._fetching:
            now = self._clock.monotonic()
            late = self._fetched_at is None or now - self._fetched_at >= FETCH_AGAIN_AFTER
            if url in self._keys or not late:
                return
            self._fetched, self._fetched_at = url, now
            certificate = await self._get(url)
            key = None if certificate is None else key_of(certificate, self._clock.now())
            if key is None:
                log.warning("sns_certificate_of_no_use", fetched=certificate is not None)
                return
            if len(self._keys) >= MOST_KEYS:
                del self._keys[next(iter(self._keys))]
            self._keys[url] = key

    async def _get(self, url: str) -> bytes | None:
        answer = await self._http.request("GET", URL(url, encoded=True), {"User-Agent": "Recado"})
        return answer.body if isinstance(answer, Answer) and answer.status == 200 and answer.complete else None


def account_of(topic: str) -> str:
    """The number of the account in the ARN of a topic."""
    parts = topic.split(":")
    return parts[4] if len(parts) > 4 else ""


def _client(options: SesOptions) -> Any:
    """What makes the client. Nothing is taken from the environment, and nothing is tried twice."""
    from aiobotocore.config import AioConfig
    from aiobotocore.session import get_session

    return get_session().create_client(
        "sesv2",
        region_name=options.region,
        endpoint_url=options.endpoint,
        aws_access_key_id=options.access_key_id,
        aws_secret_access_key=options.secret_access_key,
        config=AioConfig(
            connect_timeout=CONNECT_WITHIN,
            read_timeout=TIMEOUT,
            max_pool_connections=options.connections,
            proxies={},
            retries={"total_max_attempts": 1},
        ),
    )
