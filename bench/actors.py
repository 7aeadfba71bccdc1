"""The actor runtime beside pykka's threads and beside the least that asyncio does: a task that reads a queue."""

import asyncio
import gc
import random
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pykka

from bench.harness import ROOT, Figure, Say, rss
from recado.engine.actor import Actor
from recado.engine.clock import SystemClock
from recado.engine.registry import Registry
from recado.engine.runtime import Runtime
from recado.engine.supervisor import Supervisor

TELLS = 200_000
ASKS = 50_000
THREAD_ASKS = 10_000
KINDS = {"ours": 10_000, "queue": 10_000, "thread": 1_000}  # how many to make
ROUNDS = 3
SETTLED = 1.0  # seconds


class Counter(Actor):
    """Ours."""

    def __init__(self) -> None:
        super().__init__()
        self.handled = 0

    async def handle(self, message: object) -> int:
        self.handled += 1
        return self.handled


class ThreadCounter(pykka.ThreadingActor):
    """pykka's own."""

    def __init__(self) -> None:
        super().__init__()
        self.handled = 0

    def on_receive(self, message: object) -> int:
        self.handled += 1
        return self.handled


class QueueCounter:
    """The least: no supervisor, no registry, no bound, no life cycle."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[tuple[object, asyncio.Future[int] | None]] = asyncio.Queue()
        self.handled = 0
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while True:
            _, answer = await self.queue.get()
            self.handled += 1
            if answer is not None:
                answer.set_result(self.handled)

    def tell(self, message: object) -> None:
        self.queue.put_nowait((message, None))

    def ask(self, message: object) -> "asyncio.Future[int]":
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.queue.put_nowait((message, answer))
        return answer


async def run(say: Say) -> list[Figure]:
    """Tell: a burst, until the last one is handled. Ask: one after the other."""
    say("actors")
    root = Supervisor("bench", runtime=Runtime(SystemClock(), random.Random(1)))
    await root.start()
    registry: Registry[str] = Registry(root, mailbox_limit=TELLS + 1)
    ours, queue, thread = registry.get_or_spawn("one", lambda key: Counter()), QueueCounter(), ThreadCounter.start()

    async def ask_thread() -> object:
        return thread.ask(0)

    told = [
        await _tells(actor.tell, ask) for actor, ask in ((ours, lambda: ours.ask(0)), (queue, lambda: queue.ask(0)))
    ]
    told.append(await _tells(thread.tell, ask_thread))
    asked = [await _asks(lambda: ours.ask(0), ASKS), await _asks(lambda: queue.ask(0), ASKS)]
    asked.append(await _asks(ask_thread, THREAD_ASKS))
    queue.task.cancel()
    thread.stop()
    await root.stop()
    sizes = [await _alone(kind) for kind in KINDS]
    return [
        *_figures("tell", told, "/s"),
        *_figures("ask, one at a time", asked, "/s"),
        *_figures("memory of an actor", sizes, "bytes"),
    ]


def _figures(name: str, values: list[float], unit: str) -> list[Figure]:
    ours, queue, thread = values
    return [
        Figure(f"actors: {name}", f"{ours:,.0f} {unit}", f"{queue:,.0f} {unit}, task and queue", ours / queue),
        Figure("– beside pykka's threads", f"{ours:,.0f} {unit}", f"{thread:,.0f} {unit}", ours / thread),
    ]


async def _tells(tell: Callable[[object], None], ask: Callable[[], Awaitable[object]]) -> float:
    best = 0.0
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for number in range(TELLS):
            tell(number)
        await ask()
        best = max(best, TELLS / (time.perf_counter() - began))
    return best


async def _asks(ask: Callable[[], Awaitable[object]], count: int) -> float:
    best = 0.0
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(count):
            await ask()
        best = max(best, count / (time.perf_counter() - began))
    return best


async def _alone(kind: str) -> float:
    """The bytes of an actor, in a process that has done nothing else."""
    command = (sys.executable, "-m", "bench.actors", kind)
    child = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    output, _ = await child.communicate()
    return float(output)


async def _bytes(kind: str) -> float:
    """Each has handled a message, and waits for the next."""
    root = Supervisor("bench", runtime=Runtime(SystemClock(), random.Random(1)))
    await root.start()
    registry: Registry[str] = Registry(root)
    make: Callable[[int], Any] = {
        "ours": lambda key: registry.get_or_spawn(str(key), lambda _: Counter()),
        "queue": lambda _: QueueCounter(),
        "thread": lambda _: ThreadCounter.start(),
    }[kind]
    count = KINDS[kind]
    gc.collect()
    before = rss()
    made = [make(number) for number in range(count)]
    for actor in made:
        actor.tell(0)
    await asyncio.sleep(SETTLED)
    gc.collect()
    used = rss() - before
    for actor in made:
        if isinstance(actor, QueueCounter):
            actor.task.cancel()
    pykka.ActorRegistry.stop_all()
    await root.stop()
    return used / count


if __name__ == "__main__":
    print(asyncio.run(_bytes(sys.argv[1])))
