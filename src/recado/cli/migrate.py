"""`recado migrate`: brings the database to the schema of this program."""

import secrets

import typer

from recado.cli.common import DataDir, Json, print_json, read_settings, run_async
from recado.cli.opening import require_installation
from recado.config.settings import Settings
from recado.engine.clock import SystemClock
from recado.installation import Installation


def mount(app: typer.Typer) -> None:
    """Add the command."""
    app.command("migrate", epilog="Example: RECADO_DATABASE_URL=postgresql://recado@db/recado recado migrate")(migrate)


def migrate(data_dir: DataDir = None, as_json: Json = False) -> None:
    """Apply the pending migrations. With the embedded database every start does it by itself."""
    applied = run_async(_migrate(read_settings(data_dir)))
    if as_json:
        print_json({"applied": applied})
    elif applied:
        print("\n".join(f"applied {name}" for name in applied))
    else:
        print("nothing to apply: the database is up to date")


async def _migrate(settings: Settings) -> list[str]:
    require_installation(settings)
    installation = Installation(settings, clock=SystemClock(), random_bytes=secrets.token_bytes)
    try:
        await installation.start(migrate_given=True)
        return installation.applied
    finally:
        await installation.stop()
