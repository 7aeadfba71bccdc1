"""Where the service of each cell is, as the finder tells it: the entry has the last answer at hand."""

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import orjson
import structlog

from recado.domain.core.clock import Clock
from recado.engine.periodic import Periodic
from recado.entry.places import CellList
from recado.storage.cells.cell_map import Cell

LOADS_WITHIN: Final = 60.0  # seconds, on a busy machine
JOINS_WITHIN: Final = 20.0  # seconds
LOOK_EVERY: Final = 1.0  # seconds
LONGEST_LINE: Final = 1024 * 1024  # bytes
ENDS_WITHIN: Final = 5.0  # seconds
SILENT_FOR: Final = 30.0  # seconds without a line, of which there is one each second: it stands still

_NOTHING: Final[dict[str, Any]] = {"cells": {}, "mayMake": False, "end": []}  # as a finder begins

log = structlog.get_logger(__name__)


class NotJoined(Exception):
    """There is no Ray to find cells with; the text says why."""


class FoundPlaces:
    """A service (`start`, `stop`). While the finder says nothing the last places hold."""

    def __init__(self, cells: CellList, finder: Sequence[str], clock: Clock) -> None:
        """`finder`: its program, with the arguments."""
        self._cells = cells
        self._finder = finder
        self._clock = clock
        self._process: Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._told: dict[str, Any] = _NOTHING  # what the finder was told
        self._ended: set[str] = set()  # of the removed cells, those that Ray has no more
        self._not_ended: dict[str, str] = {}  # of the removed cells, what Ray had against ending them last, for the log
        self._urls: dict[str, str] = {}  # those in use
        self._known: dict[str, str | None] = {}  # what was said last, for the log
        self._last: dict[str, str] = {}  # where it was last, likewise
        self._heard = 0.0  # monotonic seconds of the last line
        self._left: Callable[[str], None] = lambda _: None
        self._looks = Periodic("places of cells", LOOK_EVERY, self._look, clock, ceiling=30.0)

    async def start(self) -> None:
        """Raises `NotJoined`."""
        await self._begin()
        await self._looks.start()

    async def stop(self) -> None:
        await self._looks.stop()
        await self._end()

    def url(self, cell: Cell) -> str | None:
        return self._urls.get(cell.name)

    def not_reached(self, cell: Cell, url: str) -> None:
        """Not until it is said again: what was there may be elsewhere, and another one there."""
        if self._urls.get(cell.name) == url:  # else it is elsewhere already
            del self._urls[cell.name]

    def tell_left(self, told: Callable[[str], None]) -> None:
        self._left = told

    @property
    def placed(self) -> int:
        """How many cells have a place."""
        return len(self._urls)

    async def _look(self) -> None:
        process = self._process
        silent = self._clock.monotonic() - self._heard >= SILENT_FOR
        if process is None or process.returncode is not None or silent:
            if process is not None and process.returncode is None:
                log.warning("ray_away", reason="the finder says nothing")
            elif process is not None:
                log.warning("ray_away", status=process.returncode)
            try:
                await self._begin()
            except NotJoined as error:
                log.warning("ray_away", reason=str(error))
                raise
            log.info("ray_back")
        self._ended &= self._cells.removed
        wanted = self._wanted()
        if wanted != self._told:
            for name in self._known.keys() - wanted["cells"].keys():
                self._urls.pop(name, None)
                self._known.pop(name, None)
                self._last.pop(name, None)
            self._tell(wanted)

    def _wanted(self) -> dict[str, Any]:
        """Who knows by an old map only that a cell shall be does not make it: it may be removed since."""
        return {
            "cells": {name: cell.cell.database_from for name, cell in self._cells.cells.items()},
            "mayMake": not self._cells.is_old,
            "end": sorted(self._cells.removed - self._ended),
        }

    def _tell(self, wanted: dict[str, Any]) -> None:
        if self._process is None or self._process.stdin is None or self._process.returncode is not None:
            return
        self._process.stdin.write(orjson.dumps(wanted) + b"\n")
        self._told = wanted

    async def _begin(self) -> None:
        await self._end()
        process = await asyncio.create_subprocess_exec(
            *self._finder, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, limit=LONGEST_LINE, start_new_session=True,
            env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
        )  # fmt: skip
        self._process = process
        try:
            async with asyncio.timeout(LOADS_WITHIN):
                said = await self._line(process)
            if said is not None and "loaded" in said:
                async with asyncio.timeout(JOINS_WITHIN):
                    said = await self._line(process)
        except TimeoutError:
            said = None
        if said is None or "error" in said:
            await self._end()
            raise NotJoined("Ray does not answer" if said is None else said["error"])
        if not said.get("room"):
            log.warning("cluster_without_room")
        self._heard = self._clock.monotonic()
        self._told = _NOTHING
        self._tell(self._wanted())
        self._reading = asyncio.create_task(self._read(process), name="places of cells")

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(ENDS_WITHIN):
                await process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.cancel()
            await asyncio.wait([reading])

    async def _read(self, process: Process) -> None:
        while (said := await self._line(process)) is not None:
            self._heard = self._clock.monotonic()
            for name, (url, trouble) in said.get("places", {}).items():
                if name in self._told["cells"]:
                    self._note(name, url, trouble)
            for name in said.get("ended", ()):
                if name in self._told["end"]:
                    self._ended.add(name)
                    log.info("cell_ended", cell=name)
            not_ended = {name: kind for name, kind in said.get("notEnded", {}).items() if name in self._told["end"]}
            for name, kind in not_ended.items():
                if self._not_ended.get(name) != kind:
                    log.warning("cell_not_ended", cell=name, error=kind)
            self._not_ended = not_ended

    async def _line(self, process: Process) -> Any:
        assert process.stdout is not None  # noqa: S101 - a pipe
        line = await process.stdout.readline()
        return orjson.loads(line) if line.endswith(b"\n") else None

    def _note(self, name: str, url: str | None, trouble: str | None) -> None:
        if url is None:
            self._urls.pop(name, None)
        else:
            self._urls[name] = url
        if name in self._known and self._known[name] == url:
            return
        self._known[name] = url
        if url is None:
            log.warning("cell_without_place", cell=name, reason=trouble)
            return
        left, self._last[name] = self._last.get(name), url
        if left is None or left == url:
            log.info("cell_placed", cell=name, url=url)
        else:
            log.warning("cell_moved", cell=name, url=url, left=left)
            self._left(left)


def finder_program(address: str) -> list[str]:
    """What `FoundPlaces` runs. `address`: of Ray."""
    return [sys.executable, "-P", "-m", "recado.cluster.finder", address]
