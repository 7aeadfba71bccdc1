"""A few threads for work on files, which would hold the event loop. An owner has half of them at most (C31).

An owner is an organization as a rule: a disk that is slow for its many files keeps nobody else's waiting.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from io import BytesIO
from typing import IO, Final, ParamSpec, TypeVar

from recado.domain.core.errors import Unavailable
from recado.storage.core.shares.fair_places import FairPlaces
from recado.storage.core.shielded import to_its_end

THREADS: Final = 4
OF_ONE: Final = 2
MOST_WAITING: Final = 5_000  # steps of an owner

P = ParamSpec("P")
T = TypeVar("T")


class FairThreads:
    """A service (`start`, `stop`); `name`: of its threads."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._threads: ThreadPoolExecutor | None = None
        self._places = FairPlaces(THREADS, each=OF_ONE, most_waiting=MOST_WAITING)

    async def start(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix=self._name)

    async def stop(self) -> None:
        threads, self._threads = self._threads, None
        if threads is not None:
            await asyncio.to_thread(threads.shutdown)

    async def run(self, owner: str, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do it in a thread, when the owner's turn has come."""
        if not self._places.take(owner):
            await self._places.turn(owner)
        if self._threads is None:
            self._places.leave(owner)
            raise Unavailable("The service stops.")
        loop = asyncio.get_running_loop()
        told: asyncio.Future[T] = loop.create_future()

        def leave(done: Future[T]) -> None:
            """The thread has its place until it is done, also when nobody waits for it any more."""
            self._places.leave(owner)
            error = done.exception()
            if error is None:
                told.set_result(done.result())
            elif isinstance(error, StopIteration):  # no future takes one, and its caller would wait for ever
                failed = RuntimeError("the work raised StopIteration")
                failed.__cause__ = error
                told.set_exception(failed)
            else:
                told.set_exception(error)

        try:
            done = self._threads.submit(work, *args, **kwargs)
        except RuntimeError:  # the system gives no thread
            self._places.leave(owner)
            raise
        done.add_done_callback(lambda done: loop.call_soon_threadsafe(leave, done))  # once: it wakes the loop
        # Who is cancelled goes when the thread has ended: it may hold a file that is closed next.
        return await to_its_end(told)

    async def close(self, owner: str, file: IO[bytes]) -> None:
        """Close a file that is used no more. One without a name gives its pages back with it: of a large one that takes
        tens of milliseconds. One in memory is closed at once.
        """
        try:
            if not isinstance(file, BytesIO):
                with suppress(Unavailable):  # the service stops, or too much of the owner's waits
                    await self.run(owner, file.close)
        finally:
            file.close()
