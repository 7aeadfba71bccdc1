"""What providers report: the signature is checked and the body stored before the answer; the rest is later (C29.5)."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Final, cast

from pydantic import Field

from recado.channels.core.adapters import CallbackSource, PreparedCallbacks
from recado.domain.core.errors import Problem, Unavailable, not_found
from recado.http.api.call import Call
from recado.http.api.models import ApiModel, QueryModel
from recado.http.api.route import MIB, Access, Route
from recado.http.bodies.body_reading import LARGE
from recado.http.bodies.body_workers import MOST_WAITING, BodyWorkers
from recado.http.wire.client_ip import network_of
from recado.http.wire.reply import Reply
from recado.storage.core.shares.fair_places import FairPlaces
from recado.storage.core.shares.fair_threads import FairThreads

LARGEST = 3 * MIB
ANYBODY: Final = "anybody"
"""Together one caller of the process that reads large callbacks: those who are believed have their turns there."""

PREPARING: Final = 64
"""Callbacks that wait for what must be asked for before they can be verified, with their bodies."""
PREPARING_OF_ONE: Final = 16
ASK_AGAIN: Final = 5  # seconds

Take = Callable[[str, str, bytes, Mapping[str, str]], Awaitable[None]]
"""(channel, adapter, body, headers that it is read with): stores the body once, and has it processed."""


class CallbackTaken(ApiModel):
    """Nothing to say: the body is stored."""


class SubscriptionQuery(QueryModel):
    """What the hosted API asks when somebody enters this address there."""

    mode: Annotated[str, Field(alias="hub.mode", max_length=64)]
    challenge: Annotated[str, Field(alias="hub.challenge", max_length=1024, description="Comes back as the answer.")]
    verify_token: Annotated[str, Field(alias="hub.verify_token", max_length=1024)]


class CallbackOperations:
    """The handlers. `providers`: by channel and adapter, those that send callbacks. `threads` hash large bodies.

    `apart` reads large ones that nobody is believed for yet: one at a time, of all who may send some.
    """

    def __init__(
        self, providers: Mapping[tuple[str, str], CallbackSource], take: Take, threads: FairThreads, apart: BodyWorkers
    ) -> None:
        self._providers = dict(providers)
        self._take = take
        self._threads = threads
        self._apart = apart
        self._anybodys = FairPlaces(1, most_waiting=MOST_WAITING)
        self._preparing = FairPlaces(PREPARING, each=PREPARING_OF_ONE, most_waiting=0)

    def require_provider(self, call: Call) -> None:
        """404 unless somebody sends callbacks there."""
        if (call.path["channel"], call.path["adapter"]) not in self._providers:
            raise not_found()

    async def receive(self, call: Call) -> Reply:
        channel, adapter = call.path["channel"], call.path["adapter"]
        provider = self._providers[channel, adapter]
        if not await self._verified(provider, call):
            raise Problem("INVALID_SIGNATURE", "The signature of the callback is not valid.")
        await self._take(channel, adapter, call.raw_body, _kept(call.headers, provider))
        return Reply(200, {})

    async def _verified(self, provider: CallbackSource, call: Call) -> bool:
        if hasattr(provider, "prepare_callback"):
            return await self._verified_by_envelope(cast("PreparedCallbacks", provider), call)
        given = (call.headers, call.raw_body, call.now)
        if len(call.raw_body) <= LARGE:
            return provider.verify_callback(*given)
        return await self._threads.run(network_of(call.client_ip), provider.verify_callback, *given)

    async def _verified_by_envelope(self, provider: PreparedCallbacks, call: Call) -> bool:
        """Anybody may have sent it, and it is read before that is known."""
        body = call.raw_body
        if len(body) > provider.largest_callback:
            raise Problem("BODY_TOO_LARGE", "The body is larger than any callback of this provider.")
        if self._apart.takes_long(body):
            async with self._anybodys.place(network_of(call.client_ip)):
                found, _ = await self._apart.find(provider.envelopes_in, body, caller=ANYBODY)
        else:
            found, _ = provider.envelopes_in(body)
        for envelope in found:
            await self._prepare(provider, envelope, network_of(call.client_ip))
        return bool(found) and all(provider.verify_envelope(each, call.now) for each in found)

    async def _prepare(self, provider: PreparedCallbacks, envelope: object, network: str) -> None:
        """Who would wait for what the provider is asked for has few places; nobody else waits for them."""
        if provider.is_prepared(envelope):
            await provider.prepare_callback(envelope)
            return
        async with self._preparing.place(network):
            await provider.prepare_callback(envelope)
        if not provider.is_prepared(envelope):
            raise Unavailable("This cannot be verified at the moment: send it again.", retry_after=ASK_AGAIN)

    async def subscribe(self, call: Call) -> Reply:
        """The provider asks whether the address is ours before it sends anything there."""
        query: SubscriptionQuery = call.query
        provider = self._providers.get((call.path["channel"], call.path["adapter"]))
        if provider is None or not provider.challenged:
            raise not_found()
        answer = provider.answer_challenge(query.model_dump(by_alias=True))
        if answer is None:
            raise Problem("INVALID_SIGNATURE", "The verify token is not the one of this installation.")
        # As text that no browser takes for a page: anyone who holds the token chooses what it says.
        headers = {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"}
        return Reply(200, answer.encode(), headers=headers)


def _kept(headers: Mapping[str, str], provider: CallbackSource) -> dict[str, str]:
    """What the body will be read with. A byte that is no text is not kept: the row could not hold it."""
    found = ((name, headers.get(name)) for name in ("Content-Type", *provider.read_with))
    return {name: value.encode(errors="replace").decode() for name, value in found if value is not None}


def callback_routes(
    *, providers: Mapping[tuple[str, str], CallbackSource], take: Take, threads: FairThreads, apart: BodyWorkers
) -> tuple[Route, ...]:
    """The addresses that providers call. Only where one of them asks first is there an address that answers it."""
    operations = CallbackOperations(providers, take, threads, apart)
    challenged = any(provider.challenged for provider in providers.values())
    subscription = (
        Route(
            method="GET",
            path="/v2/callbacks/{channel}/{adapter}",
            handler=operations.subscribe,
            operation_id="verifyCallbackSubscription",
            summary="Answer the challenge of a provider that is about to send callbacks here",
            description="Only of `chatapp` and `cloud`; there is no such operation where live has another adapter.",
            tag="Callbacks",
            access=Access.CALLBACK,
            query=SubscriptionQuery,
            responses={200: None},
            response_types={200: "text/plain"},
            errors=("INVALID_SIGNATURE",),
        ),
    )
    return (
        Route(
            method="POST",
            path="/v2/callbacks/{channel}/{adapter}",
            handler=operations.receive,
            operation_id="receiveCallback",
            summary="Take a provider's callback",
            description="Authenticated by the provider's signature. A repeated body is ignored.",
            tag="Callbacks",
            access=Access.CALLBACK,
            before_body=operations.require_provider,
            raw_body=True,
            body_limit=LARGEST,
            responses={200: CallbackTaken},
            errors=("INVALID_SIGNATURE",),
        ),
        *(subscription if challenged else ()),
    )
