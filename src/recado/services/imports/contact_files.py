"""Cuts a file of contacts into blocks of rows, piece by piece: no more than a block of it is in memory (C12.7).

A block of JSON or NDJSON holds a line of JSON for each row, one of CSV an array of arrays of cells. What a row says is
read later: here it only begins and ends. A row that cannot be told apart is unreadable alone; a file is when its rows
cannot be found any more.
"""

import codecs
import csv
import io
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, Final, Protocol

import orjson

from recado.domain.core.errors import FieldError

BLOCK: Final = 1_000  # rows
LARGEST_BLOCK: Final = 4 * 1024 * 1024  # bytes, when rows are long
LONGEST_ROW: Final = 1024 * 1024  # bytes of a line
MOST_COLUMNS: Final = 1_000
STEP: Final = 256 * 1024  # bytes or characters, read before others have their turn
MOST_BLANKS: Final = 10_000  # lines in a row without anything, read before others have their turn
_LONGEST_HEADER: Final = 64 * 1024  # characters
_PIECE: Final = 256 * 1024  # bytes read at once
_NO_SPACE: Final = re.compile(r"[^ \t\n\r]").search
_MOST_MEMBERS: Final = 1_000  # beside the contacts, read before others have their turn
_MOST_SCANNED: Final = 200  # contacts, read in one turn
_MOST_NAMED: Final = 60  # of those beside the contacts
_LONGEST_NAME: Final = 200
_LONG: Final = 64 * 1024  # characters of a value, after which they have it, too

UNREADABLE: Final = "UNREADABLE"
COLUMNS: Final = "COLUMNS"
TOO_LONG: Final = "TOO_LONG"
"""What stands in a block of cells for a row that is none: it is no CSV, does not have the cells of the header, or is
longer than a row may be.
"""


class Unreadable(Exception):
    """The file cannot be read; the text says where and why, without anything of what it holds.

    `error`: what is wrong with the one member of a document that is to blame.
    """

    def __init__(self, text: str, error: FieldError | None = None) -> None:
        super().__init__(text)
        self.errors = () if error is None else (error,)


@dataclass(frozen=True, slots=True)
class RowBlock:
    """Up to a thousand rows; none at all after much of the file that holds no row."""

    count: int
    rows: bytes


NO_ROWS: Final = RowBlock(0, b"")


class ContactFile(Protocol):
    """A file that is being read.

    `columns`: the header, of CSV. `members`: what stands beside the contacts, of JSON, known at the end.
    """

    columns: tuple[str, ...] | None
    members: dict[str, Any]

    def __iter__(self) -> Iterator[RowBlock]: ...

    def close(self) -> None:
        """Leave the file itself to its owner."""


class LineFile:
    """NDJSON: one contact a line. Blank lines are no rows; a line that is too long leaves an empty one in its block."""

    def __init__(self, file: IO[bytes]) -> None:
        self.columns: tuple[str, ...] | None = None
        self.members: dict[str, Any] = {}
        self._file = file

    def __iter__(self) -> Iterator[RowBlock]:
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


class DocumentFile:
    """JSON: an object with the member `contacts`, of which 50 MiB are never in memory as a whole.

    The standard library's scanner finds where a value ends; what a row says is parsed later, strictly, with its block.
    `members`: its other ones, known at the end: `options` with its value, and the names of some that nobody knows.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.columns: tuple[str, ...] | None = None
        self.members: dict[str, Any] = {}
        self._listed = False
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        # Numbers stay texts: here only their ends matter.
        self._scan = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str).raw_decode
        self._parse = json.JSONDecoder().raw_decode
        self._text = ""
        self._at = 0
        self._ended = False

    def __iter__(self) -> Iterator[RowBlock]:
        if self._next() != "{":
            raise Unreadable("The body is no JSON object.")
        self._at += 1
        if self._next() == "}":
            self._at += 1
        else:
            yield from self._members()
        if self._next():
            raise Unreadable("Something stands behind the JSON object.")
        if not self._listed:
            raise Unreadable("The document has no contacts.", FieldError("/contacts", "REQUIRED", "is required"))

    def close(self) -> None:
        """Nothing is held."""

    def _members(self) -> Iterator[RowBlock]:
        for number in itertools.count(1):
            if number % _MOST_MEMBERS == 0:
                yield NO_ROWS
            if self._next() != '"':
                raise self._malformed()
            name = self._value(self._parse)
            if self._next() != ":":
                raise self._malformed()
            self._at += 1
            self._next()
            if name == "contacts":
                if self._listed:
                    raise Unreadable("The document names contacts twice.")
                yield from self._contacts()
            else:
                start = self._at
                value = self._value(self._parse)
                if name == "options":
                    self.members[name] = value
                elif len(self.members) < _MOST_NAMED:
                    # Half of a surrogate pair cannot be named to anybody.
                    self.members.setdefault(name[:_LONGEST_NAME].encode(errors="replace").decode(), None)
                if self._at - start > _LONG:
                    yield NO_ROWS
            if not self._goes_on("}"):
                return

    def _contacts(self) -> Iterator[RowBlock]:
        if self._next() != "[":
            raise Unreadable("contacts is no array.", FieldError("/contacts", "WRONG_TYPE", "must be an array"))
        self._listed = True
        self._at += 1
        if self._next() == "]":
            self._at += 1
            return
        block = Lines()
        while True:
            self._next()
            start = self._at
            # A slice of the text as it is: whatever is wrong inside is the row's own fault.
            self._value(self._scan)
            row = self._text[start : self._at].replace("\n", " ").replace("\r", " ")
            if block.add(row.encode()):
                yield block.taken()
            elif len(row) > _LONG or block.count % _MOST_SCANNED == 0:
                yield NO_ROWS
            if not self._goes_on("]"):
                break
        if block.count:
            yield block.taken()

    def _goes_on(self, end: str) -> bool:
        """Whether a comma comes next, and not the `end` of the container."""
        found = self._next()
        if found not in (",", end) or not found:
            raise self._malformed()
        self._at += 1
        return found == ","

    def _next(self) -> str:
        """The next character that is no space, which stays to be read; empty at the end."""
        while True:
            text = self._text
            found = _NO_SPACE(text, self._at)
            if found is not None:
                self._at = found.start()
                if self._at > _PIECE:  # what was read is dropped, now and then
                    self._text, self._at = text[self._at :], 0
                return found.group()
            self._text, self._at = "", 0
            if not self._more():
                return ""

    def _value(self, scan: Any) -> Any:
        """Read one value; what is cut off by the end of the piece is tried again with more of the text.

        Not with any amount of it, because a value is read in one go: nobody else has a turn meanwhile.
        """
        while True:
            try:
                value, end = scan(self._text, self._at)
            except RecursionError:
                raise Unreadable("The document is nested too deeply.") from None
            except ValueError:
                left = len(self._text) - self._at
                if left > LONGEST_ROW + _PIECE:
                    raise Unreadable("The body is not valid JSON, or a value in it is longer than 1 MiB.") from None
                if not self._more():
                    raise self._malformed() from None
                continue
            # A number at the end of the piece may go on: 1 as 12, as 1.5, or as 1e-5.
            if end + 2 < len(self._text) or not self._more():
                self._at = end
                return value

    def _more(self) -> bool:
        if self._ended:
            return False
        piece = self._file.read(max(_PIECE, len(self._text) - self._at))
        self._ended = not piece
        try:
            text = self._decoder.decode(piece, final=self._ended)
        except UnicodeDecodeError:
            raise Unreadable("The file is not UTF-8.") from None
        self._text += text
        return bool(text) or not self._ended

    def _malformed(self) -> Unreadable:
        return Unreadable("The body is not valid JSON.")


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
        self._rows = csv.reader(itertools.chain((header,), self._lines), delimiter=delimiter, strict=True)
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

    def __iter__(self) -> Iterator[RowBlock]:
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
                yield RowBlock(len(rows), orjson.dumps(rows))
                rows, size = [], 0
        if rows:
            yield RowBlock(len(rows), orjson.dumps(rows))

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

    def taken(self) -> RowBlock:
        block = RowBlock(self.count, b"\n".join(self._lines))
        self.count, self._lines, self._size = 0, [], 0
        return block


def lines_of(block: bytes) -> Sequence[bytes]:
    """The rows of a block of JSON or NDJSON."""
    return block.split(b"\n")
