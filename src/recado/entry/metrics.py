"""What Prometheus scrapes of the entry (C34.1). Labels name cells, ways and limits: none says whose something is."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from recado.engine.process.loop_watch import BOUNDS as LAG_BOUNDS
from recado.engine.process.loop_watch import LoopWatch
from recado.entry.asked_cell import AskedCell
from recado.entry.figures import ANSWER, REQUEST, EntryBound, EntryFigures
from recado.entry.forwarding import Forwarder
from recado.entry.places import CellList, CellPlaces
from recado.http.api.request_figures import BOUNDS, CLASSES
from recado.http.routes.ops.exposition import Exposition, Family, Labels, counter, gauge, histogram

PATIENCE: Final = 5.0  # seconds that a scrape waits for cells; Prometheus itself waits for ten, by default
DATABASE: Final = "database"
SERVICE: Final = "service"


class EntryMetrics:
    """Collects what was counted, and asks each cell whether it is there: while no requests come nobody else does."""

    def __init__(
        self,
        figures: EntryFigures,
        cells: CellList,
        places: CellPlaces,
        forwarder: Forwarder,
        loop: LoopWatch,
        *,
        refused: Callable[[], int],
        connections: Callable[[], int],
    ) -> None:
        """`refused`, `connections`: how many found no place, and how many there are."""
        self._figures = figures
        self._cells = cells
        self._places = places
        self._forwarder = forwarder
        self._loop = loop
        self._refused = refused
        self._connections = connections
        self._exposition = Exposition()

    async def text(self) -> bytes:
        """In the format of Prometheus."""
        away = await self._away()
        return await self._exposition.text([*self._requests(), *self._of_cells(away), *self._rest()])

    async def _away(self) -> Mapping[Labels, float]:
        """By cell and part, whether it is away; one that does not say so in time is."""
        asked = [
            (cell.cell.name, part, asyncio.ensure_future(there))
            for cell in self._cells.cells.values()
            for part, there in (
                (DATABASE, cell.is_back()),
                (SERVICE, self._forwarder.is_there(self._places.url(cell.cell))),
            )
        ]
        if asked:
            _, late = await asyncio.wait([task for _, _, task in asked], timeout=PATIENCE)
            for task in late:
                task.cancel()
        return {(name, part): int(not (task.done() and task.result())) for name, part, task in asked}

    def _requests(self) -> Iterator[Family]:
        figures = self._figures
        answers: dict[Labels, float] = {
            (*key, status): count
            for key, each in figures.requests.items()
            for status, count in zip(CLASSES, each.statuses, strict=True)
            if count
        }
        yield counter("recado_entry_requests", "Answers to requests", ("way", "cell", "status"), answers)
        yield histogram(
            "recado_entry_request_seconds", "How long until an answer began", ("way", "cell"), BOUNDS,
            ((key, each.counts, each.seconds) for key, each in figures.requests.items()),
        )  # fmt: skip
        broken: dict[Labels, float] = dict(figures.broken.items())
        yield counter("recado_entry_broken_off", "Requests that ended early, by whom", ("ended", "cell"), broken)
        refused: dict[Labels, float] = {(name,): count for name, count in figures.refused.items()}
        refused[EntryBound.CONNECTIONS.value,] = self._refused()
        yield counter("recado_entry_refused", "Refusals, by the limit that was reached", ("limit",), refused)
        for name, text, counts in (
            ("recado_entry_body_bytes", "Bytes of bodies passed on", figures.bytes),
            ("recado_entry_body_pieces", "In how many pieces", figures.pieces),
        ):
            yield counter(name, text, ("body",), {(whose,): counts[whose] for whose in (REQUEST, ANSWER)})

    def _of_cells(self, away: Mapping[Labels, float]) -> Iterator[Family]:
        cells: list[AskedCell] = list(self._cells.cells.values())
        yield gauge("recado_entry_cells", "Cells of the map", (), {(): len(cells)})
        yield gauge("recado_entry_cell_away", "Whether it does not answer", ("cell", "part"), away)
        yield gauge("recado_entry_map_away", "Whether the map was not read lately", (), {(): int(self._cells.is_old)})
        lookups: dict[Labels, float] = {}
        under_way: dict[Labels, float] = {}
        for each in cells:
            lookups[each.cell.name, "answered"] = each.answered
            lookups[each.cell.name, "failed"] = each.failed
            under_way[each.cell.name,] = self._forwarder.under_way(self._places.url(each.cell))
        labels = ("cell", "outcome")
        yield counter("recado_entry_lookups", "Whose something is, asked of the cell's database", labels, lookups)
        yield gauge("recado_entry_requests_under_way", "Requests under way to the cell", ("cell",), under_way)

    def _rest(self) -> Iterator[Family]:
        yield gauge("recado_entry_connections", "Connections of callers", (), {(): self._connections()})
        yield histogram(
            "recado_event_loop_lag_seconds", "How late the event loop runs what is due", (), LAG_BOUNDS,
            [((), self._loop.counts, self._loop.seconds)],
        )  # fmt: skip
