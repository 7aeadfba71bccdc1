"""Which program a process is: an owner and its fronts are one, and what is installed meanwhile is another."""

import sys
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Final

OTHER_PROGRAM: Final = 78
"""The exit status of a front that is not the program which its owner is."""


def program_on_disk(package: Path = Path(__file__).parents[1], folders: Sequence[str] = sys.path) -> str:
    """A digest of the files of this package and of the versions of others: two processes with the same are one program.

    What is installed while an owner runs would be half of another.
    """
    digest = blake2b(digest_size=16)
    for path in sorted((*package.rglob("*.py"), *package.rglob("*.sql"))):
        digest.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes() + b"\0")
    for name in sorted({each.name for folder in folders if folder for each in Path(folder).glob("*.dist-info")}):
        digest.update(name.encode() + b"\0")
    return digest.hexdigest()
