"""`recado contacts import`: hand a file to a running service, and follow it until every row is written (C12.7, C35)."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

from recado.cli.api_calls import USUAL_KEY, USUAL_URL, KeyFrom, Url, address_of, called, caller, key_in
from recado.cli.common import Json, print_json, print_table, run_async
from recado.cli.errors import CommandError
from recado.cli.progress import progress_bar
from recado.domain.contacts.contact_import import Country, ImportFormat, ImportMode, MatchBy
from recado.domain.core.counting import counted

_EXAMPLE: Final = "Example: RECADO_API_KEY=svc_live_… recado contacts import clients.csv --mode upsert --tag clients"
_MEDIA_TYPES: Final = {
    ImportFormat.JSON: "application/json",
    ImportFormat.NDJSON: "application/x-ndjson",
    ImportFormat.CSV: "text/csv",
}
_SUFFIXES: Final = {".json": ImportFormat.JSON, ".ndjson": ImportFormat.NDJSON, ".jsonl": ImportFormat.NDJSON,
                    ".csv": ImportFormat.CSV}  # fmt: skip
_PIECE: Final = 256 * 1024  # bytes
_LOOK_EVERY: Final = 0.25  # seconds
_SHOWN: Final = 20  # bad rows that people see


def mount(app: typer.Typer) -> None:
    """Add the group of commands."""
    group = typer.Typer(help="Work with contacts over the API.", epilog=_EXAMPLE, no_args_is_help=True)
    group.command("import", epilog=_EXAMPLE)(import_contacts)
    group.callback()(_group)  # or a group of one command would be that command
    app.add_typer(group, name="contacts")


def _group() -> None:
    """Work with contacts over the API."""


def import_contacts(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV, NDJSON or JSON, in UTF-8; at most 200,000 rows.")],
    file_format: Annotated[
        ImportFormat | None, typer.Option("--format", help="What the file is.", show_default="by its name")
    ] = None,
    mode: Annotated[ImportMode, typer.Option("--mode", help="What may be written.")] = ImportMode.UPSERT,
    match_by: Annotated[MatchBy, typer.Option("--match-by", help="What tells whose row it is.")] = MatchBy.PHONE,
    list_id: Annotated[
        str | None, typer.Option("--list", metavar="ID", help="Make every contact of the file a member.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Add to every contact; repeatable.")] = None,
    country: Annotated[
        Country | None, typer.Option("--default-country", help="Of phones without a country code.")
    ] = None,
    emit_events: Annotated[bool, typer.Option("--emit-events", help="Tell contact.created of each new one.")] = False,
    url: Url = USUAL_URL,
    key_from: KeyFrom = USUAL_KEY,
    as_json: Json = False,
) -> int:
    """Import contacts from a file, and wait until all rows are written.

    A JSON file holds its options itself. Exit status 1 when a row failed; the reason is printed.
    """
    key, address = key_in(key_from), address_of(url)
    if not file.is_file():
        raise CommandError(f"{file} is no file")
    found = file_format or _SUFFIXES.get(file.suffix.lower())
    if found is None:
        raise CommandError(f"the name {file.name} does not tell what the file is: say it with --format")
    options: dict[str, Any] = {"mode": mode.value, "matchBy": match_by.value, "emitEvents": str(emit_events).lower()}
    optional = {"listId": list_id, "tags": tag, "defaultCountry": country.value if country else None}
    options.update((name, value) for name, value in optional.items() if value)
    size = file.stat().st_size
    result = run_async(_run(address, key, file, size, found, options))
    if as_json:
        print_json(result)
    else:
        _tell(result)
    return 0 if result["status"] == "completed" and not result["failed"] else 1


async def _run(url: str, key: str, file: Path, size: int, file_format: ImportFormat, options: Mapping[str, Any]) -> Any:
    progress = progress_bar(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    async with caller(key) as session:
        with progress:
            sent = progress.add_task("sending bytes", total=size)
            result = await called(
                session, "POST", f"{url}/contacts/import", params=options,
                data=_pieces(file, lambda size: progress.advance(sent, size)),
                headers={"Content-Type": _MEDIA_TYPES[file_format]},
            )  # fmt: skip
            progress.remove_task(sent)
            written = progress.add_task("writing rows", total=result["total"])
            while result["status"] == "processing":
                progress.update(written, completed=result["processed"])
                await asyncio.sleep(_LOOK_EVERY)
                result = await called(session, "GET", f"{url}/contacts/imports/{result['id']}")
    return result


async def _pieces(file: Path, sent: Any) -> AsyncIterator[bytes]:
    with file.open("rb") as content:
        while piece := content.read(_PIECE):
            yield piece
            sent(len(piece))


def _tell(result: Any) -> None:
    print(
        f"{result['status']}: {counted(result['total'], 'row')}, {result['created']:,} created, "
        f"{result['updated']:,} updated, {result['unchanged']:,} unchanged, {result['failed']:,} failed, "
        f"{counted(result['consentIgnored'], 'consent')} ignored"
    )
    errors = result["errors"][:_SHOWN]
    if errors:
        rows = [[str(each["row"]), each.get("field", ""), each["code"], each["message"]] for each in errors]
        print_table(("row", "field", "code", "message"), rows, empty="")
        if result["format"] == "csv":
            print("the header is no row: a spreadsheet shows row 1 in its line 2")
    if len(result["errors"]) > len(errors):
        print(f"… and more: GET /contacts/imports/{result['id']} shows the first 1,000")
