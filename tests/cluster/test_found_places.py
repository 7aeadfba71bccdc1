"""Where cells are, as a finder tells it: a stand-in for the finder, whose lines a test writes."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import structlog
from tests.waiting import until

from recado.cluster import found_places
from recado.cluster.found_places import FoundPlaces, NotJoined
from recado.engine.clock import SystemClock
from recado.storage.cells.cell_map import Cell

A, B = Cell("a", "CELL_A_URL", "https://a.example.com", None), Cell("b", "CELL_B_URL", "https://b.example.com", None)

FINDER = """
import os, select, sys, time
said, heard = sys.argv[1:]
print('{"loaded": true}', flush=True)
print('{"joined": true, "room": true}', flush=True)
at = 0
while True:
    if select.select([0], [], [], 0.02)[0]:
        line = os.read(0, 65536)
        if not line:
            break
        open(heard, "ab").write(line)
    lines = open(said).read().splitlines()
    for line in lines[at:]:
        if line == "END":
            open(said, "w").close()
            sys.exit(7)
        if line == "STILL":
            open(said, "w").close()
            os.kill(os.getpid(), 19)
        print(line, flush=True)
    at = len(lines)
"""


class Finder:
    """What the stand-in says, and heard."""

    def __init__(self, folder: Path, cells: Any) -> None:
        self._said, self._heard = folder / "said", folder / "heard"
        self._said.touch()
        program = [sys.executable, "-c", FINDER, str(self._said), str(self._heard)]
        self.places = FoundPlaces(cells, program, SystemClock())

    def says(self, **places: tuple[str | None, str | None]) -> None:
        with self._said.open("a") as said:
            said.write(json.dumps({"places": places}) + "\n")

    def says_ended(self, *cells: str, **not_ended: str) -> None:
        with self._said.open("a") as said:
            said.write(json.dumps({"places": {}, "ended": cells, "notEnded": not_ended}) + "\n")

    def ends(self) -> None:
        with self._said.open("a") as said:
            said.write("END\n")

    def stands_still(self) -> None:
        with self._said.open("a") as said:
            said.write("STILL\n")

    def heard(self) -> list[Any]:
        return [json.loads(line) for line in self._heard.read_text().splitlines()] if self._heard.exists() else []


@asynccontextmanager
async def finding(folder: Path, cells: Any) -> AsyncIterator[Finder]:
    finder = Finder(folder, cells)
    await finder.places.start()
    try:
        yield finder
    finally:
        await finder.places.stop()


def listed(*cells: Cell) -> Any:
    return SimpleNamespace(
        cells={each.name: SimpleNamespace(cell=each) for each in cells}, may_move=False, is_old=False, removed=set()
    )


def told(*cells: Cell, may_make: bool = True, end: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"cells": {each.name: each.database_from for each in cells}, "mayMake": may_make, "end": [*end]}


async def test_a_cell_is_where_the_finder_said_last_and_nowhere_before(tmp_path: Path) -> None:
    with structlog.testing.capture_logs() as logs:
        async with finding(tmp_path, listed(A, B)) as finder:
            places = finder.places
            await until(lambda: finder.heard() == [told(A, B)], "it hears of both")
            assert (places.url(A), places.url(B)) == (None, None)
            finder.says(a=("http://10.0.0.1:1", None), b=(None, "CELL_B_URL is not set"))
            await until(lambda: places.url(A) == "http://10.0.0.1:1", "a has a place")
            assert (places.url(B), places.placed) == (None, 1)
            finder.says(b=("http://10.0.0.2:1", None))
            finder.says(a=(None, "its service ended with status -9"))
            finder.says(a=("http://10.0.0.2:2", None))
            await until(lambda: places.url(A) == "http://10.0.0.2:2", "a has another place")
            assert places.url(B) == "http://10.0.0.2:1"
    said = [(each["event"], each["cell"], each.get("url") or each.get("reason")) for each in logs if "cell" in each]
    assert said == [
        ("cell_placed", "a", "http://10.0.0.1:1"),
        ("cell_without_place", "b", "CELL_B_URL is not set"),
        ("cell_placed", "b", "http://10.0.0.2:1"),
        ("cell_without_place", "a", "its service ended with status -9"),
        ("cell_moved", "a", "http://10.0.0.2:2"),
    ]


async def test_a_place_that_is_not_reached_is_none_until_it_is_said_again(tmp_path: Path) -> None:
    async with finding(tmp_path, listed(A)) as finder:
        finder.says(a=("http://10.0.0.1:1", None))
        await until(lambda: finder.places.url(A), "a has a place")
        finder.places.not_reached(A, "http://10.0.0.1:1")
        assert finder.places.url(A) is None
        finder.says(a=("http://10.0.0.1:1", None))
        await until(lambda: finder.places.url(A), "a has its place again")
        left: list[str] = []
        finder.places.tell_left(left.append)
        finder.says(a=(None, "its service starts"))
        finder.says(a=("http://10.0.0.2:1", None))
        await until(lambda: finder.places.url(A) == "http://10.0.0.2:1", "a is elsewhere")
        assert left == ["http://10.0.0.1:1"]
        finder.places.not_reached(A, "http://10.0.0.1:1")  # late, of who was on the way there
        assert finder.places.url(A) == "http://10.0.0.2:1"


async def test_places_hold_while_the_finder_is_gone_and_another_one_hears_of_cells_that_are_new(tmp_path: Path) -> None:
    cells = listed(A)
    async with finding(tmp_path, cells) as finder:
        finder.says(a=("http://10.0.0.1:1", None))
        await until(lambda: finder.places.url(A), "a has a place")
        cells.cells["b"] = SimpleNamespace(cell=B)
        await until(lambda: finder.heard()[-1:] == [told(A, B)], "it hears of the new one")
        before = len(finder.heard())
        finder.ends()
        await until(lambda: len(finder.heard()) > before, "another finder hears of both")
        assert finder.places.url(A) == "http://10.0.0.1:1"
        finder.says(b=("http://10.0.0.2:1", None))
        await until(lambda: finder.places.url(B), "b has a place")


async def test_a_cell_that_left_the_map_is_ended_and_every_finder_hears_so_until_it_is(tmp_path: Path) -> None:
    cells = listed(A, B)
    async with finding(tmp_path, cells) as finder:
        finder.says(a=("http://10.0.0.1:1", None), b=("http://10.0.0.2:1", None))
        await until(lambda: finder.places.placed == 2, "both have a place")
        del cells.cells["b"]
        cells.removed.add("b")
        await until(lambda: finder.heard()[-1] == told(A, end=("b",)), "it hears that b shall end")
        assert (finder.places.url(A), finder.places.placed) == ("http://10.0.0.1:1", 1)
        before = len(finder.heard())
        finder.ends()
        await until(lambda: len(finder.heard()) > before, "another finder hears")
        assert finder.heard()[-1] == told(A, end=("b",))
        finder.says_ended("b")
        await until(lambda: finder.heard()[-1] == told(A), "nothing is to end any more")
        cells.removed.clear()
        cells.cells["b"] = SimpleNamespace(cell=B)
        await until(lambda: finder.heard()[-1] == told(A, B), "b is back")
        del cells.cells["b"]
        cells.removed.add("b")
        await until(lambda: finder.heard()[-1] == told(A, end=("b",)), "and shall end once more")


async def test_what_keeps_a_cell_from_ending_is_logged_once_by_the_entry(tmp_path: Path) -> None:
    cells = listed(A)
    cells.removed.add("b")
    with structlog.testing.capture_logs() as logs:
        async with finding(tmp_path, cells) as finder:
            await until(lambda: finder.heard() == [told(A, end=("b",))], "it hears that b shall end")
            for kind in ("RpcError", "RpcError", "RayError"):
                finder.says_ended(b=kind)
            finder.says_ended("b")
            await until(lambda: finder.heard()[-1] == told(A), "b has ended")
    said = [(each["event"], each.get("error")) for each in logs if each.get("cell") == "b"]
    assert said == [("cell_not_ended", "RpcError"), ("cell_not_ended", "RayError"), ("cell_ended", None)]


async def test_by_an_old_map_no_cell_is_made_and_none_ended(tmp_path: Path) -> None:
    cells = listed(A, B)
    async with finding(tmp_path, cells) as finder:
        await until(lambda: finder.heard() == [told(A, B)], "it hears of both")
        cells.is_old = True
        await until(lambda: finder.heard()[-1] == told(A, B, may_make=False), "it makes none")


async def test_a_finder_that_stands_still_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found_places, "SILENT_FOR", 1.0)
    monkeypatch.setattr(found_places, "ENDS_WITHIN", 0.2)
    async with finding(tmp_path, listed(A)) as finder:
        await until(lambda: len(finder.heard()) == 1, "it hears of the cell")
        finder.stands_still()
        await until(lambda: len(finder.heard()) > 1, "another one hears of the cell")
        finder.says(a=("http://10.0.0.1:1", None))
        await until(lambda: finder.places.url(A), "a has a place")


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ('print(\'{"error": "no node of Ray is here (ConnectionError)"}\')', "no node of Ray is here"),
        ("raise SystemExit(1)", "Ray does not answer"),
    ],
)
async def test_a_machine_without_ray_is_told_so_at_the_start(program: str, said: str) -> None:
    places = FoundPlaces(listed(A), [sys.executable, "-c", program], SystemClock())
    with pytest.raises(NotJoined, match=said):
        await places.start()
    await places.stop()
