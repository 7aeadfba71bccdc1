"""Reads `{"contacts": […], "options": {…}}` piece by piece: a document of 50 MiB is never in memory as a whole (C12.7).

The standard library's scanner finds where a value ends; what a row says is parsed later, strictly, with its block.
"""

import codecs
import itertools
import json
import re
from collections.abc import Iterator
from typing import IO, Any, Final

from recado.services.imports.contact_files import LONGEST_ROW, NO_ROWS, Block, Lines, Unreadable

_PIECE: Final = 256 * 1024  # bytes read at once
_NO_SPACE: Final = re.compile(r"[^ \t\n\r]").search
_MOST_MEMBERS: Final = 1_000  # beside the contacts, read before others have their turn
_MOST_SCANNED: Final = 200  # contacts, read in one turn
_MOST_NAMED: Final = 60  # of those beside the contacts
_LONGEST_NAME: Final = 200
_LONG: Final = 64 * 1024  # characters of a value, after which they have it, too


class DocumentFile:
    """A JSON object with the member `contacts`.

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

    def __iter__(self) -> Iterator[Block]:
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
            raise Unreadable("The document has no contacts.")

    def close(self) -> None:
        """Nothing is held."""

    def _members(self) -> Iterator[Block]:
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

    def _contacts(self) -> Iterator[Block]:
        if self._next() != "[":
            raise Unreadable("contacts is no array.")
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
