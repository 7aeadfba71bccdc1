"""The end of a program: in reverse, by one deadline, and nothing keeps another thing from its stop."""

import asyncio

from recado.engine.process.shutdown import Shutdown


async def test_everything_is_stopped_in_reverse_though_one_fails() -> None:
    stopped: list[str] = []
    shutdown = Shutdown()
    for name in "abc":

        async def stop(name: str = name) -> None:
            stopped.append(name)
            if name == "b":
                raise RuntimeError("no")

        shutdown.add(name, stop)
    assert await shutdown.run(10) == ([], ["b"])
    assert stopped == ["c", "b", "a"]
    assert await shutdown.run(10) == ([], [])
    assert stopped == ["c", "b", "a"]


async def test_what_does_not_end_is_cut_off_and_what_comes_after_it_is_begun_all_the_same() -> None:
    begun: list[str] = []
    shutdown = Shutdown()

    async def hang(name: str) -> None:
        begun.append(name)
        await asyncio.Event().wait()

    async def end() -> None:
        begun.append("quick")

    shutdown.add("database", lambda: hang("database"))
    shutdown.add("quick", end)
    shutdown.add("watch", lambda: hang("watch"), flushes=False)
    shutdown.add("actors", lambda: hang("actors"))
    assert await shutdown.run(0.01) == (["actors", "watch", "database"], ["actors", "database"])
    assert begun == ["actors", "watch", "quick", "database"]
