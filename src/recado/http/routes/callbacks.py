"""What providers report: the signature is checked and the body stored before the answer; the rest is later (C29.5)."""

from collections.abc import Awaitable, Callable, Mapping

from recado.channels.provider import ChatAppProvider
from recado.domain.errors import Problem, not_found
from recado.http.call import Call
from recado.http.models import ApiModel
from recado.http.reply import Reply
from recado.http.route import MIB, Access, Route

LARGEST = 3 * MIB

Take = Callable[[str, str, bytes], Awaitable[None]]
"""(channel, adapter, body): stores the body once, and has it processed."""


class CallbackTaken(ApiModel):
    """Nothing to say: the body is stored."""


class CallbackOperations:
    """The handler. `providers`: by channel and adapter, those that send callbacks."""

    def __init__(self, providers: Mapping[tuple[str, str], ChatAppProvider], take: Take) -> None:
        self._providers = dict(providers)
        self._take = take

    async def receive(self, call: Call) -> Reply:
        channel, adapter = call.path["channel"], call.path["adapter"]
        provider = self._providers.get((channel, adapter))
        if provider is None:
            raise not_found()
        if not provider.verify_callback(call.headers, call.raw_body, call.now):
            raise Problem("INVALID_SIGNATURE", "The signature of the callback is not valid.")
        await self._take(channel, adapter, call.raw_body)
        return Reply(200, {})


def callback_routes(*, providers: Mapping[tuple[str, str], ChatAppProvider], take: Take) -> tuple[Route, ...]:
    """The address that providers call."""
    operations = CallbackOperations(providers, take)
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
            raw_body=True,
            body_limit=LARGEST,
            responses={200: CallbackTaken},
            errors=(401, 404, 413, 503),
        ),
    )
