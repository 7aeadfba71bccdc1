"""The future behind `ask` and `stop`: pykka's vocabulary on an asyncio future, to be awaited and never blocked on."""

import asyncio
import functools
import sys
from collections.abc import Callable, Generator, Iterable
from types import TracebackType
from typing import Any, TypeVar

import pykka
from pykka import ActorDeadError

from recado.domain.core.clock import Clock, TimerHandle
from recado.engine.errors import AskTimeout

T = TypeVar("T")
M = TypeVar("M")
J = TypeVar("J")
R = TypeVar("R")

_ExcInfo = tuple[type[BaseException] | None, BaseException | None, TracebackType | None]


class ReplyFuture(pykka.Future[T]):
    """A value that an actor will give. Setting it twice, or after the asker left, does nothing."""

    # pykka's constructor would set these for each ask; as class attributes they cost nothing.
    _get_hook = None
    _get_hook_result: Any = None

    def __init__(self) -> None:
        self._future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def __await__(self) -> Generator[Any, None, T]:
        return self._future.__await__()

    __iter__ = __await__

    def done(self) -> bool:
        """Whether a value or an error is there, or the asker gave up."""
        return self._future.done()

    def get(self, *, timeout: float | None = None) -> T:
        """The value if it is there already; RuntimeError otherwise, since blocking would stop the event loop."""
        if not self._future.done():
            raise RuntimeError("the reply is not there yet: await it")
        result: T = self._future.result()
        return result

    def set(self, value: T | None = None) -> None:
        """Give the value."""
        if not self._future.done():
            self._future.set_result(value)

    def set_exception(self, exc_info: _ExcInfo | None = None) -> None:
        """Give an error: pykka's triple, or what is being handled."""
        error = (exc_info or sys.exc_info())[1]
        self.fail(error if error is not None else RuntimeError("no exception is being handled"))

    def fail(self, error: BaseException) -> None:
        """Give an error."""
        if not self._future.done():
            self._future.set_exception(error)

    def set_get_hook(self, func: Callable[[float | None], T]) -> None:
        """Not on asyncio: a hook would run at a blocking `get`. Use `map`."""
        raise NotImplementedError("use map: an asyncio reply has no blocking get to hook")

    def expire_after(self, seconds: float, clock: Clock) -> None:
        """Fail with `AskTimeout` when nothing came within `seconds`."""

        def expire() -> None:
            self.fail(AskTimeout(f"no reply within {seconds} s"))

        timer: TimerHandle = clock.call_at(clock.monotonic() + seconds, expire)
        self._future.add_done_callback(lambda _: timer.cancel())

    def map(self, func: Callable[[T], M]) -> "ReplyFuture[M]":
        """A reply with `func` of this one's value; an error passes through, one raised by `func` becomes its own."""
        mapped: ReplyFuture[M] = ReplyFuture()

        def settle(future: asyncio.Future[T]) -> None:
            if future.cancelled():
                mapped._future.cancel()
                return
            error = future.exception()
            if error is not None:
                mapped.fail(error)
                return
            try:
                mapped.set(func(future.result()))
            except Exception as raised:  # noqa: BLE001 - whatever func raises belongs to who awaits the mapped reply
                mapped.fail(raised)

        self._future.add_done_callback(settle)
        return mapped

    def filter(self: "ReplyFuture[Iterable[J]]", func: Callable[[J], bool]) -> "ReplyFuture[Iterable[J]]":
        """A reply with the items of this one for which `func` is true."""
        return self.map(lambda items: [item for item in items if func(item)])

    def reduce(self: "ReplyFuture[Iterable[J]]", func: Callable[[Any, J], Any], *args: Any) -> "ReplyFuture[Any]":
        """A reply with the items of this one folded by `func`."""
        return self.map(lambda items: functools.reduce(func, items, *args))

    def join(self, *futures: pykka.Future[Any]) -> "ReplyFuture[Iterable[Any]]":
        """Not on asyncio: `asyncio.gather` waits for many replies, and stops with its caller."""
        raise NotImplementedError("use asyncio.gather")

    def stopped_by_us(self) -> "ReplyFuture[bool]":
        """For `stop`: True once the actor stopped, False where it was dead already."""
        answer: ReplyFuture[bool] = ReplyFuture()

        def settle(future: asyncio.Future[T]) -> None:
            if future.cancelled() or not isinstance(error := future.exception(), BaseException):
                answer.set(not future.cancelled())
            elif isinstance(error, ActorDeadError):
                answer.set(False)
            else:
                answer.fail(error)

        self._future.add_done_callback(settle)
        return answer
