"""The installation, opened for the time of one command, and the organization that the command is for."""

import contextlib
import secrets
import sys
from collections.abc import AsyncIterator

from recado import first_start
from recado.cli.errors import CommandError
from recado.config.settings import Settings
from recado.engine.clock import SystemClock
from recado.installation import Installation
from recado.storage.access import organizations
from recado.storage.access.organizations import Organization
from recado.storage.embedded.backup import unfinished
from recado.storage.embedded.service_folder import holds_database


def require_installation(settings: Settings) -> None:
    """Raise CommandError when the data folder of the embedded database holds no installation (C35).

    A mistyped `--data-dir` would make another one, and what the command does would be done there. A given database is
    never made, and a restore that was interrupted has a sentence of its own when it is opened.
    """
    data_dir = settings.data_dir
    if settings.embedded and not holds_database(data_dir) and unfinished(data_dir) is None:
        raise CommandError(f"{data_dir} holds no installation: name its folder with --data-dir")


@contextlib.asynccontextmanager
async def opened(settings: Settings, *, may_make: bool = False) -> AsyncIterator[Installation]:
    """Open the installation for one command.

    `may_make`: also in an empty data folder; what a first start made is told on standard error.
    """
    if not may_make:
        require_installation(settings)
    installation = Installation(settings, clock=SystemClock(), random_bytes=secrets.token_bytes)
    await installation.start()
    try:
        _tell_made(installation)
        yield installation
    finally:
        await installation.stop()


def _tell_made(installation: Installation) -> None:
    if installation.made is None:
        return
    data_dir, terminal = installation.settings.data_dir, sys.stderr.isatty()
    told = first_start.told(installation.made, installation.owner_password, terminal=terminal, data_dir=data_dir)
    print("\n".join(told), file=sys.stderr, flush=True)
    if terminal:
        first_start.forget(data_dir)


async def chosen_organization(installation: Installation, wanted: str | None) -> Organization:
    """Return the organization of that id or name; without one, the oldest.

    Raises CommandError when there is none, and for one that is moved to another cell: what is made of it now may stay
    behind.
    """
    known = await organizations.all_organizations(installation.database)
    if not known:
        raise CommandError("there is no organization yet: make one with 'recado org create --name NAME'")
    found = known[:1] if wanted is None else [each for each in known if wanted in (each.id, each.name)]
    if len(found) != 1:
        raise CommandError(
            f"{f'{len(found)} organizations are' if found else 'no organization is'} called {wanted!r}: "
            "'recado org list' shows their ids"
        )
    if found[0].moving:
        raise CommandError(
            f"{found[0].id} is being moved to another cell: wait until the move has ended, or was undone"
        )
    return found[0]
