"""The file that an export becomes, page by page, and the note from which one that was interrupted goes on (C18).

Rows go to FILE.part. After each page FILE.resume says how much of it holds, and where the next page begins; when all is
there, FILE.part becomes FILE. Whatever ends the command in between, no row is missing and none comes twice.
"""

import csv
import fcntl
import io
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Self

import orjson

from recado.cli.errors import CommandError
from recado.domain.channels.exported import COLUMNS

_VERSION: Final = 1
_OWN: Final = 0o600  # rows tell of people

Row = Mapping[str, Any]


class ExportFormat(StrEnum):
    """What a file is."""

    NDJSON = "ndjson"
    CSV = "csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporting:
    """What was asked for, and how far it is. `start`, `end`: as the service takes them; no end: when it began.

    `caller`: tells one service and key from others, so that rows of two organizations never come into one file.
    `before`: the end of the period that is being read, None when all is done; `cursor`: of its next page, None for the
    first. `rows` and `size`, in bytes: what the file holds.
    """

    caller: str
    channel: str
    file_format: ExportFormat
    start: str
    end: str | None
    before: str | None
    cursor: str | None = None
    rows: int = 0
    size: int = 0

    def asks_as(self, other: "Exporting") -> bool:
        """Whether both were asked for in the same way."""
        return self._asked == other._asked

    @property
    def _asked(self) -> tuple[Any, ...]:
        return self.caller, self.channel, self.file_format, self.start, self.end


class ExportFile:
    """Open while the block runs. `progress`: how far it is, with what an earlier command has left."""

    def __init__(self, file: Path, asked: Exporting, *, anew: bool = False) -> None:
        """`anew`: what an earlier command left is thrown away."""
        self.progress = asked
        self._file = file
        self._part = file.with_name(f"{file.name}.part")
        self._note = file.with_name(f"{file.name}.resume")
        self._anew = anew
        self._lines: Callable[[Sequence[Row]], bytes] = _LINES[asked.file_format]
        self._content: io.BufferedRandom

    def __enter__(self) -> Self:
        """CommandError where the file is there already, another command writes it, or what is left is not of this."""
        if self._file.exists():
            raise CommandError(f"{self._file} is there already: name another file, or remove it")
        try:
            self._content = os.fdopen(os.open(self._part, os.O_RDWR | os.O_CREAT, _OWN), "r+b")
        except FileNotFoundError:
            raise CommandError(f"there is no folder {self._part.parent}: make it, or name another file") from None
        try:
            self._take()
        except BaseException:
            self._content.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._content.close()

    def add(self, rows: Sequence[Row], *, before: str | None, cursor: str | None) -> None:
        """Write the rows of a page, and note where the next one begins; when this returns they are on the disk."""
        content = self._lines(rows)
        if self.progress.file_format is ExportFormat.CSV and not self.progress.size:
            content = _cells([COLUMNS]) + content
        self._content.write(content)
        self._content.flush()
        os.fsync(self._content.fileno())
        self.progress = replace(
            self.progress, before=before, cursor=cursor, rows=self.progress.rows + len(rows),
            size=self.progress.size + len(content),
        )  # fmt: skip
        self._write_note()

    def finish(self) -> None:
        """All is there: the part becomes the file."""
        self._part.rename(self._file)
        self._note.unlink(missing_ok=True)

    def _take(self) -> None:
        """Go on with what is left, or begin."""
        try:
            fcntl.flock(self._content, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise CommandError(f"another command writes {self._file}: let it end, or name another file") from None
        left = None if self._anew else self._left()
        if left is not None and left.rows:
            if not left.asks_as(self.progress):
                raise CommandError(
                    f"{self._part} holds another export, or one with another key: ask as it was asked for, or begin "
                    "this one with --anew"
                )
            if os.fstat(self._content.fileno()).st_size < left.size:
                raise CommandError(f"{self._part} is shorter than {self._note} says: begin again with --anew")
            self.progress = left
        self._content.truncate(self.progress.size)
        self._content.seek(self.progress.size)
        self._write_note()

    def _left(self) -> Exporting | None:
        with suppress(FileNotFoundError):
            try:
                noted = orjson.loads(self._note.read_bytes())
                if noted.pop("version") != _VERSION:
                    raise ValueError
                return Exporting(**{**noted, "file_format": ExportFormat(noted["file_format"])})
            except (ValueError, TypeError, KeyError, AttributeError):
                raise CommandError(f"{self._note} cannot be read: begin again with --anew") from None
        return None

    def _write_note(self) -> None:
        whole = self._note.with_name(f"{self._note.name}.new")
        descriptor = os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWN)
        with os.fdopen(descriptor, "wb") as note:
            note.write(orjson.dumps({"version": _VERSION, **asdict(self.progress)}))
        whole.replace(self._note)


def _json_lines(rows: Sequence[Row]) -> bytes:
    return b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)


def _csv_lines(rows: Sequence[Row]) -> bytes:
    return _cells([[_cell(row.get(column)) for column in COLUMNS] for row in rows])


def _cells(rows: Sequence[Sequence[str]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def _cell(value: Any) -> str:
    """A text as it is, an object (`metadata`) as JSON, and nothing for what a row does not have."""
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


_LINES: Final = {ExportFormat.NDJSON: _json_lines, ExportFormat.CSV: _csv_lines}
