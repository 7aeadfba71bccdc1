"""What a first start made: kept in a file before it is committed, and told once that is done.

Whatever ends the process, the file is there, and the next start names it. It tells a terminal, which makes the file
needless; a service's standard output usually ends in a journal, which keeps secrets for years and shows them to others.
"""

import os
from pathlib import Path

from recado.config.errors import SettingsError
from recado.storage.access.organizations import NewOrganization
from recado.storage.core import whole_file

SECRETS_FILE = "first-start.txt"


def keep(data_dir: Path, made: NewOrganization, owner_password: str | None) -> None:
    """Write the file, mode 0600, and wait for the disk; what a start left that was not committed is replaced.

    Raises SettingsError when that fails: an OSError in a transaction would be taken for the database's.
    """
    path = data_dir / SECRETS_FILE
    lines = [_heading(made.organization.id), *_secrets(made, owner_password)]
    try:
        whole_file.replace(path, "\n".join(lines) + "\n")
        _wait_for_disk(data_dir)
    except OSError as error:
        told = f"{path} cannot be written ({error.strerror}): make room, or let this user write it"
        raise SettingsError([told]) from error


def told(made: NewOrganization, owner_password: str | None, *, terminal: bool, data_dir: Path) -> list[str]:
    """The lines to print after the commit: the secrets for a terminal, else the path of their file."""
    name = f"Made the organization {made.organization.name} ({made.organization.id})."
    if terminal:
        return [f"{name} These keys are shown only now:", *_secrets(made, owner_password)]
    return [f"{name} Its keys and its sign-in are in {_path(data_dir)}: read it, then remove it."]


def left(data_dir: Path, organization_ids: list[str]) -> list[str]:
    """The line to print of a file of an earlier start that nobody removed; none where that start did not commit."""
    text = whole_file.read(data_dir / SECRETS_FILE)
    if text is None or text.partition("\n")[0] not in map(_heading, organization_ids):
        return []
    return [f"The keys and the sign-in of the first start are in {_path(data_dir)}: read it, then remove it."]


def forget(data_dir: Path) -> None:
    """Remove the file: a terminal has shown what is in it."""
    (data_dir / SECRETS_FILE).unlink(missing_ok=True)


def _wait_for_disk(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _path(data_dir: Path) -> Path:
    return data_dir.resolve() / SECRETS_FILE


def _heading(organization_id: str) -> str:
    return f"organization {organization_id}"


def _secrets(made: NewOrganization, owner_password: str | None) -> list[str]:
    lines = [f"  {env} key   {token}" for env, (_, token) in sorted(made.keys.items(), reverse=True)]
    if made.owner is not None and owner_password is not None:
        lines.append(f"  sign-in    {made.owner[0].email} with the password {owner_password}")
    return lines
