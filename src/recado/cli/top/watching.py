"""Watching: the stream, the keys and the screen together, until the person leaves."""

import asyncio
import contextlib
import signal
import sys
from typing import Any, Final

import aiohttp
from rich.console import Console
from rich.live import Live

from recado.cli.api_calls import called, caller
from recado.cli.errors import CommandError
from recado.cli.top.followed import FollowedStream
from recado.cli.top.live_numbers import LiveNumbers, NumberOrder
from recado.cli.top.screen import TopHead, screen
from recado.cli.top.terminal_keys import keys_of
from recado.cli.top.top_view import LEAVE, NumberMove, TopView

TICK: Final = 1.0  # seconds between two screens when nothing happens
LIST_AGAIN: Final = 30.0  # seconds between two readings of the whole list, where the stream does not tell of all
_CALL: Final = aiohttp.ClientTimeout(total=40)


class Watching:
    """One person at one terminal."""

    def __init__(self, session: aiohttp.ClientSession, address: str, order: NumberOrder, words: str) -> None:
        self._session = session
        self._address = address
        self._numbers = LiveNumbers()
        self._view = TopView(self._numbers, order=order, words=words)
        self._stream = FollowedStream(session, f"{address}/v2/ops/stream", self._told)
        self._sums: dict[str, int] = {}
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._left = False

    async def run(self, console: Console) -> None:
        """Until the person leaves. Raises CommandError where the service refuses them."""
        loop = asyncio.get_running_loop()
        following = self._begin(self._stream.follow())
        self._begin(self._list())
        try:
            while self._stream.heard_at is None and not following.done():
                await self._woken()
            if following.done():
                await following
            loop.add_signal_handler(signal.SIGWINCH, self._wake.set)
            with (
                keys_of(sys.stdin.fileno(), self._pressed, self._leave),
                Live(console=console, screen=True, auto_refresh=False, redirect_stdout=False) as live,
            ):
                while not self._left:
                    live.update(self._screen(console), refresh=True)
                    await self._woken()
                    if following.done():
                        await following
        finally:
            loop.remove_signal_handler(signal.SIGWINCH)
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)

    def _begin(self, work: Any) -> "asyncio.Task[None]":
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        self._wake.set()

    async def _woken(self) -> None:
        """Something has happened, or a second has passed."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TICK):
                await self._wake.wait()
        self._wake.clear()

    def _screen(self, console: Console) -> Any:
        head = TopHead(self._address, self._sums, self._stream.silent(), self._stream.missing)
        return screen(self._view, self._numbers, head, console.size.width, console.size.height)

    def _told(self, kind: str, told: Any) -> None:
        if kind == "numbers":
            self._numbers.change(told["items"], told["gone"], whole=told["whole"])
        elif kind == "throughput":
            for sums in told["items"]:
                self._sums = sums
        self._wake.set()

    async def _list(self) -> None:
        """Read the whole list now and then while there are more than the stream tells of."""
        while True:
            more = self._sums.get("numbers", 0) > self._numbers.live
            with contextlib.suppress(CommandError):  # the stream tells what is the matter
                self._numbers.take_list(await all_numbers(self._session, self._address) if more else ())
            await asyncio.sleep(LIST_AGAIN if more else TICK)

    def _leave(self) -> None:
        self._left = True
        self._wake.set()

    def _pressed(self, key: str) -> None:
        match self._view.press(key):
            case NumberMove() as move:
                self._begin(self._move(move))
            case told if told == LEAVE:
                self._leave()
        self._wake.set()

    async def _move(self, move: NumberMove) -> None:
        self._view.message = f"{move.verb}: {move.number_id} …"
        self._wake.set()
        url = f"{self._address}/v2/ops/numbers/{move.number_id}/{move.verb}"
        try:
            self._numbers.put(await called(self._session, "POST", url, timeout=_CALL))
        except CommandError as error:
            self._view.message = f"{move.verb}: {error}"
        else:
            self._view.message = f"{move.number_id} is {move.verb}d"


async def all_numbers(session: aiohttp.ClientSession, address: str) -> Any:
    """The whole list. Raises CommandError."""
    return (await called(session, "GET", f"{address}/v2/ops/numbers", timeout=_CALL))["items"]


async def watch(address: str, key: str, console: Console, order: NumberOrder, words: str) -> None:
    """Watch until the person leaves. Raises CommandError."""
    async with caller(key) as session:
        await Watching(session, address, order, words).run(console)
