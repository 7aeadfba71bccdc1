"""What providers report: the signature is checked and the body stored before the answer; the rest is later (C29.5)."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated

from pydantic import Field

from recado.channels.core.adapters import CallbackSource
from recado.domain.core.errors import Problem, not_found
from recado.http.api.call import Call
from recado.http.api.models import ApiModel, QueryModel
from recado.http.api.route import MIB, Access, Route
from recado.http.bodies.body_reading import LARGE, has_many_items
from recado.http.wire.client_ip import network_of
from recado.http.wire.reply import Reply
from recado.storage.core.shares.fair_threads import FairThreads

LARGEST = 3 * MIB

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
    """The handlers. `providers`: by channel and adapter, those that send callbacks. `threads` hash large bodies."""

    def __init__(self, providers: Mapping[tuple[str, str], CallbackSource], take: Take, threads: FairThreads) -> None:
        self._providers = dict(providers)
        self._take = take
        self._threads = threads

    def require_provider(self, call: Call) -> None:
        """404 unless somebody sends callbacks there."""
        if (call.path["channel"], call.path["adapter"]) not in self._providers:
            raise not_found()

    async def receive(self, call: Call) -> Reply:
        channel, adapter = call.path["channel"], call.path["adapter"]
        provider = self._providers[channel, adapter]
        if (prepare := getattr(provider, "prepare_callback", None)) is not None:  # of `PreparedCallbacks`
            if has_many_items(call.raw_body):  # which anybody may have sent, and is read before that is known
                raise Problem("BODY_TOO_LARGE", "The body holds more than any callback of this provider.")
            await prepare(call.raw_body)
        if not await self._verified(provider, call):
            raise Problem("INVALID_SIGNATURE", "The signature of the callback is not valid.")
        await self._take(channel, adapter, call.raw_body, _kept(call.headers, provider))
        return Reply(200, {})

    async def _verified(self, provider: CallbackSource, call: Call) -> bool:
        given = (call.headers, call.raw_body, call.now)
        if len(call.raw_body) <= LARGE:
            return provider.verify_callback(*given)
        return await self._threads.run(network_of(call.client_ip), provider.verify_callback, *given)

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
    *, providers: Mapping[tuple[str, str], CallbackSource], take: Take, threads: FairThreads
) -> tuple[Route, ...]:
    """The addresses that providers call. Only where one of them asks first is there an address that answers it."""
    operations = CallbackOperations(providers, take, threads)
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
