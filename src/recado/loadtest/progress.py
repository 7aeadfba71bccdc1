"""The live view of a load test, on standard error."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable

from rich.console import Console
from rich.live import Live
from rich.table import Table

from recado.loadtest.generator import Generator
from recado.loadtest.percentiles import percentiles

_REFRESH = 0.25  # seconds
_WINDOW = 5_000  # latest latencies that the percentiles are of


@contextlib.asynccontextmanager
async def shown(render: Callable[[], Table]) -> AsyncIterator[None]:
    """Show what `render` gives, four times a second, while the context lasts."""
    console = Console(stderr=True)
    with Live(render(), console=console, auto_refresh=False, transient=True) as live:

        async def refresh() -> None:
            while True:
                await asyncio.sleep(_REFRESH)
                live.update(render(), refresh=console.is_terminal)

        task = asyncio.create_task(refresh())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


class SendingView:
    """The view while requests are sent."""

    def __init__(self, generator: Generator, seconds: float) -> None:
        self._generator = generator
        self._seconds = seconds
        self._start = self._seen_at = time.perf_counter()
        self._seen = 0
        self._rate = 0.0

    def __call__(self) -> Table:
        now = time.perf_counter()
        outcomes = self._generator.outcomes
        accepted = len(outcomes.latencies)
        if now - self._seen_at >= 1:
            self._rate = (accepted - self._seen) / (now - self._seen_at)
            self._seen, self._seen_at = accepted, now
        latest = percentiles(outcomes.latencies[-_WINDOW:])
        view = Table.grid(padding=(0, 2))
        view.add_row("sending", f"{min(now - self._start, self._seconds):.0f} of {self._seconds:.0f} s")
        view.add_row("accepted", f"{accepted:,}   {self._rate:,.0f}/s   {self._generator.in_flight} in flight")
        if latest:
            view.add_row("latency", f"p50 {latest['p50'] * 1e3:.1f} ms   p99 {latest['p99'] * 1e3:.1f} ms")
        for code, count in outcomes.refusals.most_common():
            view.add_row("refused", f"{count:,}   {code}")
        if outcomes.unanswered:
            view.add_row("unanswered", f"{outcomes.unanswered:,}")
        return view


class SettlingView:
    """The view while the accepted messages leave."""

    def __init__(self) -> None:
        self.remaining = "counting"
        self._start = time.perf_counter()

    def __call__(self) -> Table:
        view = Table.grid(padding=(0, 2))
        view.add_row("leaving", f"{self.remaining} left to go", f"{time.perf_counter() - self._start:.0f} s")
        return view
