"""Cuts a file of contacts into blocks of rows, piece by piece: no more than a block of it is in memory (C12.7).

A block of JSON or NDJSON holds a line of JSON for each row, one of CSV an array of arrays of cells. What a row says is
read later: here it only begins and ends. A row that cannot be told apart is unreadable alone; a file is when its rows
cannot be found any more.
"""

import codecs
import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import IO, Any, Final, Protocol

import orjson

BLOCK: Final = 1_000  # rows
LARGEST_BLOCK: Final = 4 * 1024 * 1024  # bytes, when rows are long
LONGEST_ROW: Final = 1024 * 1024  # bytes of a line
MOST_COLUMNS: Final = 1_000
STEP: Final = 256 * 1024  # bytes or characters, read before others have their turn
MOST_BLANKS: Final = 10_000  # lines in a row without anything, read before others have their turn
_LONGEST_HEADER: Final = 64 * 1024  # characters

UNREADABLE: Final = "UNREADABLE"
COLUMNS: Final = "COLUMNS"
TOO_LONG: Final = "TOO_LONG"
"""What stands in a block of cells for a row that is none: it is no CSV, does not have the cells of the header, or is
longer than a row may be.
"""


class Unreadable(Exception):
    """The file cannot be read; the text says where and why, without anything of what it holds."""


@dataclass(frozen=True, slots=True)
class Block:
    """Up to a thousand rows; none at all after much of the file that holds no row."""

    count: int
    rows: bytes


NO_ROWS: Final = Block(0, b"")


class ContactFile(Protocol):
    """A file that is being read.

    `columns`: the header, of CSV. `members`: what stands beside the contacts, of JSON, known at the end.
    """

    columns: tuple[str, ...] | None
    members: dict[str, Any]

    def __iter__(self) -> Iterator[Block]: ...

    def close(self) -> None:
        """Leave the file itself to its owner."""


class LineFile:
    """NDJSON: one contact a line. Blank lines are no rows; a line that is too long leaves an empty one in its block."""

    def __init__(self, file: IO[bytes]) -> None:
        self.columns: tuple[str, ...] | None = None
        self.members: dict[str, Any] = {}
        self._file = file

    def __iter__(self) -> Iterator[Block]:
        block = Lines()
        first = True
        blanks = 0
        while line := self._file.readline(LONGEST_ROW + 1):
            if first:
                line, first = line.removeprefix(codecs.BOM_UTF8), False
            if len(line) > LONGEST_ROW and not line.endswith(b"\n"):
                while (rest := self._file.readline(LONGEST_ROW)) and not rest.endswith(b"\n"):
                    yield NO_ROWS
                line = b"\n"
            elif not line.strip():
                blanks += 1
                if blanks % MOST_BLANKS == 0:
                    yield NO_ROWS
                continue
            if block.add(line.strip()):
                yield block.taken()
        if block.count:
            yield block.taken()

    def close(self) -> None:
        """Nothing is held."""


class TableFile:
    """CSV with a header row: `,` or `;`, quoted by `"`, with or without a byte order mark."""

    def __init__(self, file: IO[bytes]) -> None:
        self.members: dict[str, Any] = {}
        self._text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        try:
            header = self._text.readline(_LONGEST_HEADER)
        except UnicodeDecodeError:
            raise Unreadable("The file is not UTF-8.") from None
        if not header.endswith(("\n", "\r")) and len(header) >= _LONGEST_HEADER:
            raise Unreadable(f"The header has more than {_LONGEST_HEADER} characters.")
        delimiter = ";" if header.count(";") > header.count(",") else ","
        self._lines = _TableLines(self._text, delimiter)
        self._rows = csv.reader(chain((header,), self._lines), delimiter=delimiter, strict=True)
        self.columns: tuple[str, ...] | None = self._header()

    def _header(self) -> tuple[str, ...]:
        try:
            columns = tuple(name.strip() for name in next(self._rows, ()))
        except (csv.Error, UnicodeDecodeError):
            raise Unreadable("The header is no row of CSV in UTF-8.") from None
        if not any(columns):
            raise Unreadable("The file has no header row.")
        if "\0" in "".join(columns):
            raise Unreadable("The header contains U+0000.")
        if len(columns) > MOST_COLUMNS:
            raise Unreadable(f"The header has more than {MOST_COLUMNS} columns.")
        named = [name for name in columns if name]
        if len(set(named)) != len(named):
            raise Unreadable("The header names a column twice.")
        return columns

    def __iter__(self) -> Iterator[Block]:
        width = len(self.columns or ())
        rows: list[Any] = []
        size = blanks = taken = 0
        while True:
            if taken > STEP:
                yield NO_ROWS
                taken = 0
            self._lines.taken = 0
            try:
                row = next(self._rows, None)
            except csv.Error:
                rows.append(UNREADABLE)
            except _NoRow as found:
                rows.append(found.marker)
                while self._lines.skips():
                    yield NO_ROWS
            except UnicodeDecodeError:
                raise Unreadable("The file is not UTF-8.") from None
            else:
                if row is None:
                    break
                if not row:
                    blanks += 1
                    if blanks % MOST_BLANKS == 0:
                        yield NO_ROWS
                    continue
                rows.append(row if len(row) == width else COLUMNS)
                size += sum(map(len, row))
            taken += self._lines.taken
            if len(rows) >= BLOCK or size >= LARGEST_BLOCK:
                yield Block(len(rows), orjson.dumps(rows))
                rows, size = [], 0
        if rows:
            yield Block(len(rows), orjson.dumps(rows))

    def close(self) -> None:
        """Leave the file open to its owner."""
        self._text.detach()


class _NoRow(Exception):
    """What was read of the file is no row; `marker` stands for it."""

    def __init__(self, marker: str) -> None:
        super().__init__(marker)
        self.marker = marker


class _TableLines:
    """The lines of a table, for the reader of rows. `taken`: characters read since it was set to 0.

    A line is not given when the reader would make far too much of it: it makes a row in one go.
    """

    def __init__(self, text: io.TextIOWrapper, delimiter: str) -> None:
        self._text = text
        self._delimiter = delimiter
        self._inside = False
        self.taken = 0

    def __iter__(self) -> "_TableLines":
        return self

    def __next__(self) -> str:
        line = self._text.readline(LONGEST_ROW)
        if not line:
            raise StopIteration
        first = self.taken == 0
        self.taken += len(line)
        if len(line) == LONGEST_ROW and not line.endswith(("\n", "\r")):
            self._inside = True
            raise _NoRow(TOO_LONG)
        if self.taken > LONGEST_ROW:  # cells in quotes may hold the ends of lines: nobody knows where the next row is
            raise Unreadable(f"A row has more than {LONGEST_ROW:,} characters.")
        if first and line.count(self._delimiter) >= MOST_COLUMNS and '"' not in line:
            raise _NoRow(COLUMNS)
        return line

    def skips(self) -> bool:
        """Read on in a line that is too long; False when the next line is another one."""
        if self._inside:
            rest = self._text.readline(LONGEST_ROW)
            self._inside = bool(rest) and not rest.endswith(("\n", "\r"))
        return self._inside


class Lines:
    """A block of lines that fills."""

    def __init__(self) -> None:
        self.count = 0
        self._lines: list[bytes] = []
        self._size = 0

    def add(self, line: bytes) -> bool:
        """Whether the block is full now."""
        self._lines.append(line)
        self._size += len(line)
        self.count += 1
        return self.count >= BLOCK or self._size >= LARGEST_BLOCK

    def taken(self) -> Block:
        block = Block(self.count, b"\n".join(self._lines))
        self.count, self._lines, self._size = 0, [], 0
        return block


def lines_of(block: bytes) -> Sequence[bytes]:
    """The rows of a block of JSON or NDJSON."""
    return block.split(b"\n")
