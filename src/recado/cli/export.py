"""`recado export`: all messages of a channel and a period, from a running service into a file (C18, C35)."""

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, time
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final

import aiohttp
import typer
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

from recado.cli.api_calls import USUAL_KEY, USUAL_URL, CallRefused, KeyFrom, Url, address_of, called, caller, key_in
from recado.cli.common import Json, print_json, run_async
from recado.cli.errors import CommandError
from recado.cli.export_file import ExportFile, ExportFormat, Exporting
from recado.cli.progress import progress_bar
from recado.domain.channels.exported import EXPORTED, MOST_ROWS, periods
from recado.domain.core.counting import counted
from recado.domain.core.timestamps import format_timestamp, parse_timestamp

_EXAMPLE: Final = "Example: RECADO_API_KEY=svc_live_… recado export sms sms.csv --from 2026-01-01 --to 2026-03-31"
_CHANNELS: Final = [each.channel for each in EXPORTED]
_SUFFIXES: Final = {".csv": ExportFormat.CSV, ".ndjson": ExportFormat.NDJSON, ".jsonl": ExportFormat.NDJSON}
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_TRIES: Final = 8  # of one page
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 30.0  # seconds
_LATER: Final = frozenset({429, 503})

Tell = Callable[[Exporting, datetime], None]
"""Told after each page: how far it is, and until when all is there, from the end."""


def mount(app: typer.Typer) -> None:
    """Add the command."""
    app.command("export", epilog=_EXAMPLE)(export)


def export(
    channel: Annotated[str, typer.Argument(metavar="CHANNEL", help=f"One of {', '.join(_CHANNELS)}.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write; one that exists is refused.")],
    start: Annotated[
        str, typer.Option("--from", metavar="TIME", help="The first moment: 2026-01-31T12:00:00Z, or a day (UTC).")
    ],
    end: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="The last moment, or day.", show_default="now")
    ] = None,
    file_format: Annotated[
        ExportFormat | None, typer.Option("--format", help="What the file becomes.", show_default="by its name")
    ] = None,
    rows: Annotated[int, typer.Option("--rows", min=1, max=MOST_ROWS, help="Of a page.")] = MOST_ROWS,
    anew: Annotated[bool, typer.Option("--anew", help="Throw away what an interrupted export left.")] = False,
    url: Url = USUAL_URL,
    key_from: KeyFrom = USUAL_KEY,
    as_json: Json = False,
) -> None:
    """Write all messages of a channel and a period into a file, newest first.

    What was interrupted goes on where it was when it is asked for again. A period of more than 31 days is read in
    parts. Phones are masked unless the key holds pii:full.
    """
    key, address = key_in(key_from), address_of(url)
    if channel not in _CHANNELS:
        raise CommandError(f"{channel!r} is no channel: it is one of {', '.join(_CHANNELS)}")
    found = file_format or _SUFFIXES.get(file.suffix.lower())
    if found is None:
        raise CommandError(f"the name {file.name} does not tell what the file is to be: say it with --format")
    first = _moment("--from", start, time.min)
    last = datetime.now(UTC) if end is None else _moment("--to", end, time.max)
    if first > last:
        raise CommandError("--from must not be later than --to")
    before = format_timestamp(last)
    asked = Exporting(
        caller=sha256(f"{address} {key}".encode()).hexdigest()[:16], channel=channel, file_format=found,
        start=format_timestamp(first), end=None if end is None else before, before=before,
    )  # fmt: skip
    with ExportFile(file, asked, anew=anew) as content, _shown(first, last) as tell:
        try:
            run_async(_run(content, f"{address}/v2/exports/{channel}", key, rows, tell))
        except CommandError as error:
            if not content.progress.rows:
                raise
            kept = counted(content.progress.rows, "row is kept", "rows are kept")
            raise CommandError(f"{error}; {kept}: the same command goes on") from None
        content.finish()
    done = content.progress
    if as_json:
        print_json({"file": str(file), "channel": channel, "format": found, "rows": done.rows, "bytes": done.size})
    else:
        print(f"wrote {file}: {counted(done.rows, 'row')}, {done.size / 2**20:.1f} MiB")


async def _run(content: ExportFile, url: str, key: str, rows: int, tell: Tell) -> None:
    start, patient = parse_timestamp(content.progress.start), False
    async with caller(key) as session:
        while (before := content.progress.before) is not None:
            following = periods(start, parse_timestamp(before))
            first, last = next(following)
            query = {"from": format_timestamp(first), "to": format_timestamp(last), "limit": str(rows)}
            if content.progress.cursor is not None:
                query["cursor"] = content.progress.cursor
            page, patient = await _page(session, url, query, patient=patient), True
            items, cursor = page["items"], page["nextCursor"]
            if cursor is None:
                _, earlier = next(following, (None, None))
                before = None if earlier is None else format_timestamp(earlier)
            content.add(items, before=before, cursor=cursor)
            tell(content.progress, first if cursor is None else parse_timestamp(items[-1]["createdAt"]))


async def _page(session: aiohttp.ClientSession, url: str, query: dict[str, str], *, patient: bool) -> Any:
    """One page. What may succeed later is tried again after a while; `patient`: also where nobody answers."""
    for number in range(_TRIES):
        last = number + 1 == _TRIES
        wait = None
        try:
            return await called(session, "GET", url, params=query)
        except CallRefused as refused:
            if refused.code == "INVALID_CURSOR":
                raise CommandError(
                    "the service has another RECADO_CURSOR_KEY by now: begin again with --anew"
                ) from None
            if last or refused.status not in _LATER:
                raise
            wait = refused.retry_after
        except CommandError:
            if last or not patient:
                raise
        await asyncio.sleep(min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0**number if wait is None else wait))
    raise AssertionError("the last try ends the loop")


def _moment(option: str, text: str, of_day: time) -> datetime:
    """A moment, or that of a day. CommandError for a text that is neither."""
    try:
        if _DAY.fullmatch(text):
            return datetime.combine(datetime.fromisoformat(text), of_day, UTC)
        return parse_timestamp(text)
    except ValueError:
        raise CommandError(
            f"{option} {text!r} is no moment: give one such as 2026-01-31T12:00:00Z, or 2026-01-31"
        ) from None


@contextmanager
def _shown(first: datetime, last: datetime) -> Iterator[Tell]:
    """A bar on standard error while the block runs: how much of the period is there."""
    bar = progress_bar(TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    task = bar.add_task("0 rows", total=(last - first).total_seconds())

    def tell(progress: Exporting, until: datetime) -> None:
        bar.update(task, completed=(last - until).total_seconds(), description=counted(progress.rows, "row"))

    with bar:
        yield tell
