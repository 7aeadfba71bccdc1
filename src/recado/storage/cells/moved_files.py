"""The binaries of an organization that is moved, between two folders of media (C30.4).

Each is named by random digits, and never changed.
"""

import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path

_PARTIAL = ".partial"


def copy_files(source: Path, target: Path, organization_id: str, told: Callable[[int], None]) -> int:
    """Copy what the other folder has not; answers how many files the organization has. `told`: of each that is copied.

    A file has its name when all of it is on the disk, so a copy that was interrupted goes on. Raises OSError.
    """
    found = 0
    owner = target.stat()
    for file in sorted(path for path in (source / organization_id).rglob("*") if path.is_file()):
        found += 1
        place = target / file.relative_to(source)
        if place.exists() and place.stat().st_size == file.stat().st_size:
            continue
        for folder in reversed([each for each in place.parents if each.is_relative_to(target) and not each.exists()]):
            folder.mkdir(mode=0o700)
            os.chown(folder, owner.st_uid, owner.st_gid)
        partial = target / _PARTIAL / secrets.token_hex(16)
        if not partial.parent.exists():
            partial.parent.mkdir(mode=0o700)
            os.chown(partial.parent, owner.st_uid, owner.st_gid)
        shutil.copy2(file, partial)
        with partial.open("rb") as written:
            os.fsync(written.fileno())
        os.chown(partial, owner.st_uid, owner.st_gid)
        partial.replace(place)
        told(1)
    return found


def remove_files(folder: Path, organization_id: str) -> None:
    """Remove what a folder has of an organization."""
    shutil.rmtree(folder / organization_id, ignore_errors=True)
