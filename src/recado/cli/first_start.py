"""What a first start made, told once: to a terminal, or into a file that its owner alone can read.

A service's standard output usually ends in a journal, which keeps secrets for years and shows them to others.
"""

import os
from pathlib import Path
from typing import TextIO

from recado.installation import Installation
from recado.storage.organizations import NewOrganization

SECRETS_FILE = "first-start.txt"


def tell_first_start(
    made: NewOrganization, owner_password: str | None, *, terminal: TextIO, data_dir: Path
) -> list[str]:
    """Return the lines to print to `terminal`; where it is none, the secrets go to a file that the lines name."""
    secrets = _secrets(made, owner_password)
    name = f"Made the organization {made.organization.name} ({made.organization.id})."
    if terminal.isatty():
        return [f"{name} These keys are shown only now:", *secrets]
    path = _keep(data_dir / SECRETS_FILE, secrets)
    return [f"{name} Its keys and its sign-in are in {path}: read it, then remove it."]


def first_start_of(installation: Installation, *, terminal: TextIO) -> list[str]:
    """The same of an opened installation; nothing when this start made nothing."""
    if installation.made is None:
        return []
    data_dir = installation.settings.data_dir
    return tell_first_start(installation.made, installation.owner_password, terminal=terminal, data_dir=data_dir)


def _secrets(made: NewOrganization, owner_password: str | None) -> list[str]:
    lines = [f"  {env} key   {token}" for env, (_, token) in sorted(made.keys.items(), reverse=True)]
    if made.owner is not None and owner_password is not None:
        lines.append(f"  sign-in    {made.owner[0].email} with the password {owner_password}")
    return lines


def _keep(path: Path, lines: list[str]) -> Path:
    """Write the file, with mode 0600 from its birth; one that is there is replaced, a link never followed."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return path.resolve()
