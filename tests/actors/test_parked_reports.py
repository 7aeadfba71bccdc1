"""Reports that wait for their message: one that can never be applied holds up no other, and ends (C29.5)."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.actors.line import Line, live_number

from recado.channels.events import Status, event_to_json
from recado.domain.errors import Unavailable
from recado.engine.clock import SystemClock, VirtualClock
from recado.storage.postgres import Database

PARK = """
insert into parked_reports (organization_id, number_id, event, retry_at, give_up_at) values ($1, $2, $3, $4, $5)
"""


class Parked:
    """Reports on messages of a live number, none of which is known."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.now: datetime = line.clock.now()

    async def park(self, event: dict[str, Any], *, gives_up_in: float = 300) -> None:
        due = self.now - timedelta(seconds=1)
        give_up_at = self.now + timedelta(seconds=gives_up_in)
        number = self.line.number
        await self.line.db.execute(PARK, number.organization_id, number.id, event, due, give_up_at)

    def report(self, name: str) -> dict[str, Any]:
        return event_to_json(Status("delivered", self.now, name, account=self.line.number.phone_number_id))

    async def retry(self) -> None:
        await self.line.receipts.retry_parked()

    async def waiting(self) -> dict[str | None, float]:
        """Seconds that each still waits, by what it is about."""
        rows = await self.line.db.fetch("select event ->> 'providerMessageId', retry_at from parked_reports")
        return {row[0]: (row[1] - self.now).total_seconds() for row in rows}


@pytest.fixture
async def parked(database: Database) -> Parked:
    return Parked(Line(database, await live_number(database), VirtualClock(SystemClock().now())))


async def test_a_report_that_fails_alone_is_put_off_and_the_others_are_tried(parked: Parked) -> None:
    await parked.park({"kind": "of another time"})
    for name in ("a", "b"):
        await parked.park(parked.report(name))
    with capture_logs() as logs:
        await parked.retry()
    waiting = await parked.waiting()
    assert waiting.pop(None) == 60
    assert set(waiting) == {"a", "b"}
    assert all(seconds > 0 for seconds in waiting.values())
    assert [(entry["event"], entry["error"]) for entry in logs] == [("report_put_off", "MalformedCallback")]


async def test_a_report_that_still_fails_when_its_time_is_over_goes(parked: Parked) -> None:
    await parked.park({"kind": "of another time"}, gives_up_in=0)
    await parked.park(parked.report("a"), gives_up_in=0)
    await parked.retry()
    assert await parked.waiting() == {}


async def test_while_the_database_is_away_no_report_is_put_off(parked: Parked, monkeypatch: pytest.MonkeyPatch) -> None:
    await parked.park(parked.report("a"))

    async def away(*_: Any) -> None:
        raise Unavailable("away")

    with monkeypatch.context() as patched:
        patched.setattr(parked.line.db, "fetchval", away)
        patched.setattr("recado.storage.receipts.take_parked", away)
        with pytest.raises(Unavailable):
            await parked.retry()
    assert await parked.waiting() == {"a": -1}
