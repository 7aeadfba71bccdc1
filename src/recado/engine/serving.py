"""The inner loop of every actor: handle what waits, one message at a time, until something else has to happen."""

import asyncio
from collections.abc import Generator
from typing import Any, Final, NamedTuple

from recado.engine.address import ActorAddress, Incarnation
from recado.engine.errors import HandlerCancelled
from recado.engine.mailbox import CONTROL, Envelope

_BURST: Final = 128


class Pause(NamedTuple):
    """Why serving paused: the mailbox is empty (both None), an order to end was met, or the actor failed."""

    order: Envelope[Any] | None = None
    error: BaseException | None = None
    in_hand: object = None


_EMPTY: Final = Pause()


class _Breath:
    """Awaiting it lets the rest of the loop run once."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        yield


_BREATH: Final = _Breath()


async def serve(address: ActorAddress, actor: Incarnation) -> Pause:
    """Handle messages in their order; replies and the errors of asks are answered here."""
    queue = address.mailbox.queue
    handle = actor.handle
    burst = _BURST
    while True:
        while queue:
            envelope = queue.popleft()
            message = envelope.message
            if type(message) in CONTROL:
                return Pause(order=envelope)
            reply = envelope.reply_to
            try:
                answer = await handle(message)
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - sorted by who has to hear of it
                if reply is None or _answer_failure(actor, reply, error):
                    return Pause(error=error, in_hand=message)
            else:
                if reply is not None:
                    reply.set(answer)
            address.handled += 1
            burst -= 1
            if not burst:
                # A handler that never waits must not keep the other actors waiting.
                burst = _BURST
                await _BREATH
        # An asker that has just got its reply often asks again: to look once more is cheaper than a new task.
        await _BREATH
        if not queue:
            return _EMPTY


def _answer_failure(actor: Incarnation, reply: Any, error: BaseException) -> bool:
    """Give the asker the error; whether it fails the actor as well."""
    if isinstance(error, Exception):
        reply.fail(error)
        return actor.is_fatal(error)
    # The asker itself was not cancelled, and must not look as if it was.
    cancelled = HandlerCancelled("the handler was cancelled")
    cancelled.__cause__ = error
    reply.fail(cancelled)
    # Cancelled from outside (the loop is closing, or a cut): to serve on could keep the loop from ending.
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
