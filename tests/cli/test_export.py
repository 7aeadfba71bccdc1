"""`recado export` beside a service that plays along, refuses, breaks off and goes away (C18.5)."""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import web

from recado.cli import export
from recado.cli.errors import CommandError
from recado.cli.export_file import ExportFile, ExportFormat, Exporting
from recado.domain.core.timestamps import format_timestamp, parse_timestamp

START, END = "2026-01-01T00:00:00.000Z", "2026-03-10T00:00:00.000Z"
PER_PAGE = 2
Trouble = Callable[[web.Request], web.StreamResponse]


@dataclass
class Scripted:
    """An API with a message every ten days. `troubles`: what the next requests get instead of their page."""

    url: str = ""
    asked: list[dict[str, str]] = field(default_factory=list)
    troubles: list[Trouble | None] = field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        """Newest first."""
        first, moments = parse_timestamp(START), []
        while first <= parse_timestamp(END):
            moments.append(format_timestamp(first))
            first += timedelta(days=10)
        return moments[::-1]

    async def page(self, request: web.Request) -> web.StreamResponse:
        query = dict(request.query)
        self.asked.append(query)
        trouble = self.troubles.pop(0) if self.troubles else None
        if trouble is not None:
            return trouble(request)
        first, last = query["from"], query["to"]
        assert parse_timestamp(last) - parse_timestamp(first) <= timedelta(days=31)
        rows = [at for at in self.ids if first <= at <= last and at < query.get("cursor", "~")]
        following = rows[PER_PAGE - 1] if len(rows) > PER_PAGE else None
        items = [{"id": at, "createdAt": at} for at in rows[:PER_PAGE]]
        return web.json_response({"items": items, "nextCursor": following})


@pytest.fixture
async def service() -> AsyncIterator[Scripted]:
    scripted = Scripted()
    application = web.Application()
    application.router.add_get("/v2/exports/sms", scripted.page)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    scripted.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v2/exports/sms"
    try:
        yield scripted
    finally:
        await runner.cleanup()


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "_FIRST_PAUSE", 0.0)


async def run(url: str, file: Path) -> list[str]:
    """One command; the ids in the file when it is through."""
    asked = Exporting(caller="me", channel="sms", file_format=ExportFormat.NDJSON, start=START, end=END, before=END)
    told: list[datetime] = []
    with ExportFile(file, asked) as content:
        await export._run(content, url, "a key", PER_PAGE, lambda progress, until: told.append(until))
        content.finish()
    assert told == sorted(told, reverse=True)
    return [json.loads(line)["id"] for line in file.read_text("utf-8").splitlines()]


def refused(status: int, code: str, **headers: str) -> Trouble:
    return lambda request: web.json_response({"code": code, "detail": "No."}, status=status, headers=headers)


def broken_off(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.write(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"items": [')
    request.transport.close()
    return web.Response()


async def test_a_long_period_is_read_in_parts_and_each_row_comes_once(service: Scripted, tmp_path: Path) -> None:
    assert await run(service.url, tmp_path / "rows.ndjson") == service.ids
    periods = {(query["from"], query["to"]) for query in service.asked}
    assert len(periods) == 3
    assert {query["limit"] for query in service.asked} == {str(PER_PAGE)}


@pytest.mark.parametrize("trouble", [
    refused(429, "RATE_LIMITED", **{"Retry-After": "0"}), refused(503, "SERVICE_UNAVAILABLE"), broken_off,
])  # fmt: skip
async def test_a_page_that_may_come_later_is_asked_for_again(
    service: Scripted, tmp_path: Path, trouble: Trouble
) -> None:
    service.troubles = [None, trouble, trouble, None, trouble]
    assert await run(service.url, tmp_path / "rows.ndjson") == service.ids
    assert service.asked[1] == service.asked[2] == service.asked[3]


async def test_a_service_that_refuses_on_and_on_is_asked_eight_times(service: Scripted, tmp_path: Path) -> None:
    service.troubles = [refused(503, "SERVICE_UNAVAILABLE")] * 100
    with pytest.raises(CommandError, match="refused with 503"):
        await run(service.url, tmp_path / "rows.ndjson")
    assert len(service.asked) == 8


@pytest.mark.parametrize(("status", "code"), [(401, "UNAUTHORIZED"), (403, "SCOPE_REQUIRED"), (422, "PERIOD_TOO_LONG")])
async def test_what_stays_refused_is_told_at_once(service: Scripted, tmp_path: Path, status: int, code: str) -> None:
    service.troubles = [refused(status, code)]
    with pytest.raises(CommandError, match=f"refused with {status} {code}: No."):
        await run(service.url, tmp_path / "rows.ndjson")
    assert len(service.asked) == 1


async def test_a_command_that_was_interrupted_goes_on_at_the_page_where_it_was(
    service: Scripted, tmp_path: Path
) -> None:
    file, number, found = tmp_path / "rows.ndjson", 0, []
    while not found:  # each command gets two pages
        service.troubles = [None, None, refused(401, "UNAUTHORIZED")]
        try:
            found = await run(service.url, file)
        except CommandError:
            number += 1
    assert found == service.ids
    assert number == 2
    pages = [json.dumps(query) for query in service.asked]
    assert len(pages) - len(set(pages)) == number  # those that were refused


async def test_a_service_that_does_not_know_its_cursor_any_more_is_told(service: Scripted, tmp_path: Path) -> None:
    service.troubles = [None, refused(400, "INVALID_CURSOR")]
    with pytest.raises(CommandError, match="begin again with --anew"):
        await run(service.url, tmp_path / "rows.ndjson")


async def test_nobody_is_waited_for_who_never_answered(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"nothing answers at 127\.0\.0\.1:1"):
        await run("http://127.0.0.1:1/v2/exports/sms", tmp_path / "rows.ndjson")
