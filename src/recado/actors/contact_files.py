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
MOST_BLANKS: Final = 10_000  # lines in a row without anything, read before others have their turn
_LONGEST_HEADER: Final = 64 * 1024  # characters

UNREADABLE: Final = "UNREADABLE"
COLUMNS: Final = "COLUMNS"
"""What stands in a block of cells for a row that is none: it is no CSV, or has more or fewer cells than the header."""


class Unreadable(Exception):
    """The file cannot be read; the text says where and why, without anything of what it holds."""


@dataclass(frozen=True, slots=True)
class Block:
    """Up to a thousand rows; none at all after much of the file that holds no row."""

    count: int
    rows: bytes


NO_ROWS: Final = Block(0, b"")


class ContactFile(Protocol):
    """A file that is being read. `columns`: the header, of CSV. `options`: of JSON, known at the end."""

    columns: tuple[str, ...] | None
    options: Any

    def __iter__(self) -> Iterator[Block]: ...

    def close(self) -> None:
        """Leave the file itself to whoever owns it."""


class LineFile:
    """NDJSON: one contact a line. Blank lines are no rows; a line that is too long leaves an empty one in its block."""

    def __init__(self, file: IO[bytes]) -> None:
        self.columns: tuple[str, ...] | None = None
        self.options: Any = None
        self._file = file

    def __iter__(self) -> Iterator[Block]:
        block = Lines()
        first = True
        blanks = 0
        while line := self._file.readline(LONGEST_ROW + 1):
            if first:
                line, first = line.removeprefix(codecs.BOM_UTF8), False
            if len(line) > LONGEST_ROW and not line.endswith(b"\n"):
                self._skip_line()
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

    def _skip_line(self) -> None:
        while (line := self._file.readline(LONGEST_ROW)) and not line.endswith(b"\n"):
            pass


class TableFile:
    """CSV with a header row: `,` or `;`, quoted by `"`, with or without a byte order mark."""

    def __init__(self, file: IO[bytes]) -> None:
        self.options: Any = None
        self._text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        try:
            header = self._text.readline(_LONGEST_HEADER)
        except UnicodeDecodeError:
            raise Unreadable("The file is not UTF-8.") from None
        if not header.endswith(("\n", "\r")) and len(header) >= _LONGEST_HEADER:
            raise Unreadable(f"The header has more than {_LONGEST_HEADER} characters.")
        delimiter = ";" if header.count(";") > header.count(",") else ","
        self._rows = csv.reader(chain((header,), self._text), delimiter=delimiter, strict=True)
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
        size = blanks = 0
        while True:
            try:
                row = next(self._rows, None)
            except csv.Error:
                rows.append(UNREADABLE)
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
            if len(rows) >= BLOCK or size >= LARGEST_BLOCK:
                yield Block(len(rows), orjson.dumps(rows))
                rows, size = [], 0
        if rows:
            yield Block(len(rows), orjson.dumps(rows))

    def close(self) -> None:
        """Leave the file open to whoever owns it."""
        self._text.detach()


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
