"""`recado cells`: databases with a service each, the map of who is in which, and the move of one organization."""

import asyncio
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import asyncpg
import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from recado.cli.api_calls import address_of
from recado.cli.cells.databases import MAP, members_of, must_be_lost, opened_map, session_of
from recado.cli.cells.looks import CellLook, look_at_all
from recado.cli.cells.placed import RELOCATE_EPILOG, RESTART_EPILOG, relocate, restart
from recado.cli.cells.remove import EPILOG as REMOVE_EPILOG
from recado.cli.cells.remove import remove
from recado.cli.cells.serve import EPILOG, Listen, serve_entry
from recado.cli.common import Json, print_json, print_table, read_settings, run_async
from recado.cli.ending import until_told
from recado.cli.errors import CommandError
from recado.cli.progress import progress_bar
from recado.config.errors import SettingsError
from recado.domain.core.counting import counted
from recado.engine.clock import SystemClock
from recado.storage.cells import holding
from recado.storage.cells.cell_map import Cell, CellMap, CellMember, CellPlace
from recado.storage.cells.holding import CACHED, BegunMove, HeldOrganization, Session
from recado.storage.cells.moved_files import copy_files, remove_files
from recado.storage.core.crypto import KeyRing
from recado.storage.dispatch.ownership import living_owner

_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_APART = 1.0  # second that the clocks of two databases may be apart

Organization = Annotated[str, typer.Argument(metavar="ORGANIZATION", help="Its id: 'recado cells list' shows it.")]


def mount(app: typer.Typer) -> None:
    """Add the group of commands."""
    group = typer.Typer(
        help="Divide organizations among several databases, each with a service of its own.\n\n"
        f"{MAP} holds the address of the database with the map.",
        epilog="Example: recado cells move org_1Vbc… --to b",
        no_args_is_help=True,
    )
    group.command(
        "add",
        epilog="Example: recado cells add b --database-from CELL_B_URL --url https://b.example.com --media s3:media",
    )(add)
    group.command("list", epilog="Example: recado cells list")(list_all)
    group.command("move", epilog="Example: recado cells move org_1Vbc… --to b")(move)
    group.command("remove", epilog=REMOVE_EPILOG)(remove)
    group.command("restart", epilog=RESTART_EPILOG)(restart)
    group.command("relocate", epilog=RELOCATE_EPILOG)(relocate)
    group.command("serve", epilog=EPILOG)(serve)
    app.add_typer(group, name="cells")


def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the cell is called: a to z, 0 to 9, '-'.")],
    database_from: Annotated[
        str,
        typer.Option(
            "--database-from", metavar="VARIABLE", help="The environment variable with the address of its database."
        ),
    ],
    url: Annotated[str, typer.Option("--url", metavar="URL", help="The address of its service.")],
    media: Annotated[
        str | None,
        typer.Option(
            "--media",
            metavar="PLACE",
            help="Its folder of media as this machine sees it, or its bucket as s3:NAME.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Add a cell to the map, with the organizations that it has; or change what the map has of it."""
    if not _NAME.fullmatch(name):
        raise CommandError("a cell's name begins with a letter, and has at most 31 of a to z, 0 to 9 and '-'")
    if not _VARIABLE.fullmatch(database_from):
        raise CommandError("--database-from is the name of an environment variable, such as CELL_B_URL")
    if media is not None and not media.startswith("s3:"):
        media = str(Path(media).resolve())
    cell = Cell(name, database_from, address_of(url), media)
    found = run_async(_add(cell))
    if as_json:
        print_json({"name": name, "organizations": len(found)})
        return
    print(f"{name}  {cell.url}  {counted(len(found), 'organization')}")


def list_all(as_json: Json = False) -> None:
    """List the cells, and in which of them each organization is; what is new in a cell joins the map.

    Of a cell that is away it shows what the map has.
    """
    shown = run_async(_list())
    for look in shown.looks:
        if look.away:
            print(f"recado: {look.why}: {look.cell.name} is shown as the map has it", file=sys.stderr)
    for organization_id, served_by, cell in shown.twice:
        print(
            f"recado: {cell} has {organization_id}, too, which {served_by} serves: stop the service of the one that"
            " shall not, before anything is sent twice",
            file=sys.stderr,
        )
    if as_json:
        print_json(
            {
                "cells": [
                    {
                        "name": look.cell.name,
                        "url": look.cell.url,
                        "organizations": shown.organizations(look),
                        "away": look.away,
                    }
                    for look in shown.looks
                ],
                "organizations": [
                    {
                        "id": place.organization_id,
                        "name": shown.names.get(place.organization_id),
                        "cell": place.cell,
                        "movingTo": place.moving_to,
                    }
                    for place in shown.places
                ],
            }
        )
        return
    print_table(
        ("cell", "address", "organizations", ""),
        [
            (look.cell.name, look.cell.url, str(shown.organizations(look)), "away" if look.away else "")
            for look in shown.looks
        ],
        empty="no cell yet: 'recado cells add --help' shows how",
    )
    if shown.places:
        print()
        print_table(
            ("organization", "name", "cell", "moving to"),
            [
                (place.organization_id, shown.names.get(place.organization_id, ""), place.cell, place.moving_to or "")
                for place in shown.places
            ],
            empty="",
        )


def move(
    organization_id: Organization,
    to: Annotated[
        str | None, typer.Option("--to", metavar="NAME", help="The cell that shall have it.", show_default=False)
    ] = None,
    undo: Annotated[
        bool, typer.Option("--undo", help="Put it back into the cell that it was about to leave, and let it go on.")
    ] = False,
    target_lost: Annotated[
        bool,
        typer.Option(
            "--target-lost",
            help="With --undo: the database that it was on its way to is gone for good. If that had it already, what it"
            " did since is lost, and messages that it sent may be sent once more.",
        ),
    ] = False,
    confirmed: Annotated[
        str | None,
        typer.Option(
            "--confirm",
            metavar="NAME",
            help="With --target-lost: the name of that cell, instead of typing it.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Move one organization with everything that it has to another cell.

    Nothing of it leaves meanwhile; its callers get 503. Interrupted, the same command goes on; --undo takes it back.
    """
    if (to is None) is not undo:
        raise CommandError("say --to NAME, or --undo")
    if target_lost and not undo:
        raise CommandError("--target-lost belongs to --undo")
    lost = (_typed(organization_id) if confirmed is None else confirmed) if target_lost else None
    settings = read_settings()
    if settings.encryption_keys is None:
        raise SettingsError(["RECADO_ENCRYPTION_KEYS is missing: give the keys that both cells have"])
    keys = KeyRing.parse(settings.encryption_keys.get_secret_value())
    try:
        moved = run_async(until_told(_told_of_a_loss(_Mover(organization_id, keys), to, lost)))
    except (KeyboardInterrupt, typer.Exit):  # Ctrl-C, SIGTERM
        print(
            "recado: interrupted. Where 'recado cells list' shows it as moving, it stands still: the same command goes"
            " on, and --undo takes it back before the other cell has it",
            file=sys.stderr,
        )
        raise
    if as_json:
        print_json({"organization": organization_id, "cell": moved.cell, "rows": moved.rows, "seconds": moved.seconds})
    elif undo:
        print(f"{organization_id} is in {moved.cell} as before")
    else:
        rows = counted(moved.rows, "row")
        print(f"{organization_id} is in {moved.cell}: {rows}; it stood still for {moved.seconds:.1f} s")


def _typed(organization_id: str) -> str:
    if not sys.stdin.isatty():
        raise CommandError(
            "--target-lost gives up what the other cell did: say --confirm NAME, too, with the name of that cell"
        )
    asked = f"What {organization_id} did in the cell that it was on its way to is given up. Type that cell's name"
    return str(typer.prompt(asked, err=True))


def serve(listen: Listen = None) -> None:
    """Serve one address for all cells: each request goes on to the cell of its organization."""
    serve_entry(MAP, listen)


@dataclass(frozen=True, slots=True)
class _Shown:
    looks: list[CellLook]
    places: list[CellPlace]

    def organizations(self, look: CellLook) -> int:
        """How many a cell has."""
        return len([each for each in self.places if each.cell == look.cell.name] if look.found is None else look.found)

    @property
    def names(self) -> dict[str, str]:
        return {each.id: each.name for look in self.looks for each in look.found or ()}

    @property
    def twice(self) -> list[tuple[str, str, str]]:
        """Organizations that the map has in one cell and that another one serves, as a lost one that came back."""
        served = {place.organization_id: place.cell for place in self.places if place.moving_to is None}
        return [
            (each.id, served[each.id], look.cell.name)
            for look in self.looks
            for each in look.found or ()
            if not each.moving and served.get(each.id, look.cell.name) != look.cell.name
        ]


@dataclass(frozen=True, slots=True)
class _Moved:
    """`rows`: that were moved by this command; `seconds`: for which the organization stood still."""

    cell: str
    rows: int = 0
    seconds: float = 0.0


async def _add(cell: Cell) -> list[CellMember]:
    async with session_of(cell) as session, opened_map() as cell_map:
        found = await members_of(cell, session)
        elsewhere = {place.organization_id for place in await cell_map.places() if place.cell != cell.name}
        twice = [each.id for each in found if each.id in elsewhere and not each.moving]
        if twice:
            raise CommandError(f"{twice[0]} is in another cell of the map, too: one organization has one cell")
        await cell_map.add(cell)
        await cell_map.know(cell, found)
        return found


async def _list() -> _Shown:
    async with opened_map() as cell_map:
        looks = await look_at_all(cell_map)
        return _Shown(looks, await cell_map.places())


async def _told_of_a_loss(mover: "_Mover", to: str | None, lost: str | None) -> _Moved:
    try:
        with _shown() as told:
            return await (mover.undo(told, lost) if to is None else mover.move(to, told))
    except asyncpg.ForeignKeyViolationError as error:
        if error.schema_name != "recado_cells":
            raise
        raise CommandError("the map has that cell no more: 'recado cells list' shows which there are") from None


class _Mover:
    def __init__(self, organization_id: str, keys: KeyRing) -> None:
        self._id = organization_id
        self._keys = keys
        self._clock = SystemClock()

    async def move(self, to: str, told: "_Told") -> _Moved:
        async with opened_map() as cell_map:
            cells = {cell.name: cell for cell in await cell_map.cells()}
            place = await self._place(cell_map)
            if to not in cells:
                raise CommandError(f"there is no cell {to!r}: 'recado cells list' shows them")
            if to == place.cell and place.left_cell is None:
                raise CommandError(f"it is in {to} already")
            if place.left_cell is not None and to != place.cell:
                raise CommandError(f"{place.left_cell} has remains of it: give the move to {place.cell} again first")
            source, target = cells[place.left_cell or place.cell], cells[to]
            async with session_of(source) as leaves, session_of(target) as takes:
                await self._alone(leaves)
                organization = HeldOrganization(leaves, self._id, clock=self._clock, told=told)
                begun = await organization.begun()
                if begun is not None and begun.to_cell != to:
                    raise CommandError(f"it is on the way to {begun.to_cell}: name that cell, or say --undo")
                rows = 0
                if place.left_cell is None and (begun is None or not await holding.is_here(takes, self._id)):
                    rows = await self._bring(organization, begun, cell_map, (source, leaves), (target, takes), told)
                    begun = await organization.begun()
                seconds = 0.0 if begun is None else await holding.seconds_since(leaves, begun.begun_at)
                # From here on the other cell serves it; what is left here is forgotten.
                await cell_map.settle(self._id, to, left=source.name)
                if begun is not None:
                    rows += await organization.end(takes)
                if (folders := _folders(source, target)) is not None:
                    await asyncio.to_thread(remove_files, folders[0], self._id)
                await cell_map.settle(self._id, to)
                return _Moved(to, rows, seconds)

    async def undo(self, told: "_Told", lost: str | None) -> _Moved:
        """`lost`: the cell that it was on its way to, whose database is gone for good, as the operator says."""
        async with opened_map() as cell_map:
            cells = {cell.name: cell for cell in await cell_map.cells()}
            place = await self._place(cell_map)
            if lost is not None and place.left_cell is not None:
                raise CommandError(
                    f"{place.cell} serves it already, as the map says: where that is lost, give it up first with"
                    f" 'recado cells remove {place.cell} --lost'"
                )
            async with session_of(cells[place.cell]) as source:
                await self._alone(source)
                organization = HeldOrganization(source, self._id, clock=self._clock, told=told)
                begun = await organization.begun()
                to = place.moving_to if begun is None else begun.to_cell
                if lost is not None and to is not None and lost != to:
                    raise CommandError(f"it is on the way to {to}, and not to {lost!r}: nothing was done")
                if begun is None:
                    await cell_map.moving(self._id, None)  # killed before it began
                    raise CommandError(f"no move of it is under way: it is in {place.cell}")
                if begun.held_at is None:  # nothing of it can be there yet, so that one may be away
                    await organization.put_back(None, begun)
                    await cell_map.moving(self._id, None)
                    return _Moved(place.cell)
                if lost is not None:
                    if begun.to_cell in cells:
                        await must_be_lost(cells[begun.to_cell])
                    await organization.put_back(None, begun)
                elif begun.to_cell not in cells:
                    raise CommandError(
                        f"the map has no cell {begun.to_cell!r} any more: add it again, or say --target-lost where its"
                        " database is gone for good"
                    )
                else:
                    async with session_of(cells[begun.to_cell]) as target:
                        await members_of(cells[begun.to_cell], target)  # it has the tables
                        await organization.put_back(target, begun)
                await cell_map.moving(self._id, None)
                return _Moved(place.cell)

    async def _place(self, cell_map: CellMap) -> CellPlace:
        place, away = await cell_map.place(self._id), list[str]()
        if place is None:  # made since the map was looked at
            away = [look.cell.name for look in await look_at_all(cell_map) if look.away]
            place = await cell_map.place(self._id)
        if place is not None:
            return place
        if away:
            raise CommandError(f"no cell that answers has an organization {self._id!r}, and {', '.join(away)} is away")
        raise CommandError(f"no cell has an organization {self._id!r}: 'recado cells list' shows all")

    async def _alone(self, source: Session) -> None:
        if not await holding.try_lock(source, self._id):
            raise CommandError("another command moves it at this moment: wait until that one has ended")

    async def _bring(
        self,
        organization: HeldOrganization,
        begun: BegunMove | None,
        cell_map: CellMap,
        source: tuple[Cell, Session],
        target: tuple[Cell, Session],
        told: "_Told",
    ) -> int:
        """Bring everything into the other cell; answers how many rows."""
        await self._suits(source[1], target[1], begun)
        folders = _folders(source[0], target[0])
        if folders is None and begun is None and not _one_place(source[0], target[0]):
            await self._has_no_files(source[1])
        if folders is not None:  # most of it before anything stands still
            await asyncio.to_thread(copy_files, *folders, self._id, lambda files: None)
        if begun is None:
            if await organization.unequal_wallets():
                raise CommandError("a wallet of it is not the sum of its entries: find out why first (docs/cells.md)")
            await cell_map.moving(self._id, target[0].name)
            await organization.begin(target[0].name)
        else:
            await cell_map.moving(self._id, begun.to_cell)
        if begun is None or begun.held_at is None:
            served = await living_owner(source[1]) is not None
            await organization.rest(cached=CACHED if served else 0.0)
        await organization.take()
        if folders is not None:
            told("copying files", 0)
            await asyncio.to_thread(copy_files, *folders, self._id, lambda files: None)
        begun = await organization.begun()
        assert begun is not None  # noqa: S101 - it was begun above
        sums = await organization.put(target[1], begun)
        return sum(each.rows for each in sums.values())

    async def _suits(self, source: Session, target: Session, begun: BegunMove | None) -> None:
        if await holding.versions(source) != await holding.versions(target):
            raise CommandError(
                "the two databases are not of one version: run 'recado migrate' on both with the same Recado"
            )
        if (apart := await holding.apart(source, target)) > _APART:
            raise CommandError(
                f"the clocks of the two databases are {apart:.1f} s apart: let both follow a time server"
            )
        if begun is None and not await holding.is_here(source, self._id):
            raise CommandError(
                "the cell that the map names has no such organization: 'recado cells list' sets it right"
            )
        if begun is None and await holding.is_here(target, self._id):
            raise CommandError("the other cell has an organization of that id already: one organization has one cell")
        for session in (source, target):
            if not await holding.opens(session, self._id, self._keys):
                raise CommandError(
                    "RECADO_ENCRYPTION_KEYS does not open what both cells have: all cells need the same keys"
                )

    async def _has_no_files(self, source: Session) -> None:
        if await holding.has_files(source, self._id):
            raise CommandError(
                "it has media, and the map does not say where both cells keep theirs: give each its --media with"
                " 'recado cells add'"
            )


def _one_place(source: Cell, target: Cell) -> bool:
    """Whether the map says that both keep media in the same place. Two cells of which it says nothing may not."""
    return source.media is not None and source.media == target.media


def _folders(source: Cell, target: Cell) -> tuple[Path, Path] | None:
    """The folders of media between which files are copied; None: nothing is to copy, or nobody said from where."""
    places = [place for place in (source.media, target.media) if place is not None and not place.startswith("s3:")]
    if len(places) < 2 or places[0] == places[1]:
        return None
    folders = Path(places[0]), Path(places[1])
    for folder in folders:
        if not folder.is_dir():
            raise CommandError(f"{folder} is not there: run this where both folders of media can be reached")
    return folders


class _Told:
    """Shows what is done, and how many rows."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None)

    def __call__(self, what: str, rows: int) -> None:
        self._progress.update(self._task, description=what, advance=rows)


@contextmanager
def _shown() -> Iterator[_Told]:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TextColumn("{task.completed:,.0f} rows"),
        TimeElapsedColumn(),
    )
    with progress_bar(*columns) as progress:
        yield _Told(progress)
