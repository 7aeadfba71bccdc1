"""`recado reencrypt`: writes encrypted values again with the newest key (C30.1); works while the server runs."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from recado.actors.jobs.encrypted_places import PLACES
from recado.cli.common import DataDir, Json, print_json, read_settings, run_async
from recado.cli.errors import CommandError
from recado.cli.opening import opened
from recado.cli.progress import progress_bar
from recado.config.settings import Settings
from recado.domain.core.counting import counted
from recado.installation import Installation
from recado.storage.contacts import contact_imports
from recado.storage.core import audit
from recado.storage.core.upkeep import reencryption
from recado.storage.core.upkeep.reencryption import Place

EXAMPLE = "Example: RECADO_ENCRYPTION_KEYS=k2:BASE64,k1:BASE64 recado reencrypt"


@dataclass(slots=True)
class ReencryptionOutcome:
    """`left`: rows that an older key still opens alone; `damaged`: those among them that no key opens."""

    written: int = 0
    left: int = 0
    damaged: int = 0


def mount(app: typer.Typer) -> None:
    """Add the command."""
    app.command("reencrypt", epilog=EXAMPLE)(reencrypt)


def reencrypt(data_dir: DataDir = None, as_json: Json = False) -> None:
    """Write stored secrets and documents again with the first of RECADO_ENCRYPTION_KEYS.

    Interrupted, it goes on where it stopped. When it reports that nothing is left, the other keys may be removed.
    """
    outcome = run_async(_reencrypt(read_settings(data_dir)))
    if as_json:
        print_json({"written": outcome.written, "left": outcome.left, "damaged": outcome.damaged})
    else:
        print(f"{outcome.written} written again, {outcome.left} left")
    if outcome.damaged:
        values = counted(outcome.damaged, "value")
        raise CommandError(f"{values} cannot be decrypted: restore the key or a backup; the audit says where")
    if outcome.left:
        raise CommandError("older keys are still in use: restart every server with the new keys, then run this again")


async def _reencrypt(settings: Settings) -> ReencryptionOutcome:
    outcome = ReencryptionOutcome()
    async with opened(settings) as installation:
        database, keys = installation.database, installation.key_ring
        stale = {place: await reencryption.count(database, place, keys) for place in PLACES}
        with _progress(sum(stale.values())) as (progress, task):
            for place in (place for place, rows in stale.items() if rows):
                async for block in reencryption.rewrite(database, place, keys):
                    outcome.written += block.written
                    outcome.damaged += len(block.damaged)
                    await _tell(installation, place, block.damaged)
                    progress.advance(task, block.written + len(block.damaged))
        outcome.left = sum([await reencryption.count(database, place, keys) for place in PLACES])
        outcome.left += await contact_imports.blocks_under_other_keys(database, keys)
    return outcome


async def _tell(installation: Installation, place: Place, damaged: tuple[tuple[str, str], ...]) -> None:
    for organization_id, record_id in damaged:
        await audit.write(
            installation.database,
            installation.ids,
            audit.SYSTEM,
            "record.tampered",
            organization_id=organization_id,
            env=None,
            target_id=record_id,
            details={"field": place.field},
        )


@contextlib.contextmanager
def _progress(total: int) -> Iterator[tuple[Progress, TaskID]]:
    """A bar on standard error, for people only."""
    shown = (TextColumn("reencrypting"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with progress_bar(*shown) as progress:
        yield progress, progress.add_task("", total=total)
