"""Placeholders in e-mails: what a part uses, and what it becomes with values (C10.2.6).

A part is taken apart once; to render it is to put its pieces together.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from html import escape
from typing import Final, NamedTuple

from recado.domain.core.errors import Problem

MIB: Final = 1024 * 1024
MOST_VARIABLES: Final = 100
LONGEST_VALUE: Final = 10_000  # characters
LONGEST_NAME: Final = 64
MOST_OPENED: Final = 5_000  # times that `{{` stands in a part
NAME: Final = r"[A-Za-z][A-Za-z0-9_]{0,63}"

_LONGEST_CHARACTER: Final = 4  # bytes of UTF-8
_PLACEHOLDER = re.compile(r"\{\{ *(" + NAME + r") *\}\}")

Value = str | int | float | bool


class EmailPart(StrEnum):
    """The parts of an e-mail, by the names of their fields."""

    SUBJECT = "subject"
    HTML = "html"
    TEXT = "text"


MOST_OF: Final[Mapping[EmailPart, int]] = {EmailPart.SUBJECT: 255, EmailPart.HTML: MIB, EmailPart.TEXT: MIB // 4}
"""How much a part holds at most, rendered or not: characters of a subject, bytes of UTF-8 of the others."""


def is_too_long(part: EmailPart, text: str) -> bool:
    """Whether a part holds more than it may."""
    most = MOST_OF[part]
    if part is EmailPart.SUBJECT or len(text) > most:
        return len(text) > most
    return len(text) * _LONGEST_CHARACTER > most and _bytes_of(text) > most


def as_text(value: Value) -> str:
    """A value as a message shows it: numbers as JSON writes them, `true` or `false`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _on_one_line(text: str) -> str:
    return "".join(text.splitlines())


_WRITTEN: Final[Mapping[EmailPart, Callable[[str], str]]] = {
    EmailPart.SUBJECT: _on_one_line,
    EmailPart.HTML: escape,
    EmailPart.TEXT: lambda text: text,
}
"""How a value is written into a part."""


class Pieces:
    """A part taken apart: what stands between its placeholders, and their names, each in order."""

    __slots__ = ("_names", "_pieces", "_plain", "_plain_bytes", "_times", "names")

    def __init__(self, text: str) -> None:
        self._pieces = _PLACEHOLDER.split(text)
        self._names = self._pieces[1::2]
        self._plain = sum(map(len, self._pieces[::2]))
        self._plain_bytes = len("".join(self._pieces[::2]).encode(errors="replace"))
        self._times = Counter(self._names)
        self.names = tuple(self._times)

    def length(self, values: Mapping[str, str]) -> int:
        """How many characters it becomes, known before anything is put together."""
        return self._plain + sum(times * len(values[name]) for name, times in self._times.items())

    def size(self, values: Mapping[str, str]) -> int:
        """As `length`, in bytes of UTF-8."""
        sizes = (times * len(values[name].encode(errors="replace")) for name, times in self._times.items())
        return self._plain_bytes + sum(sizes)

    def times(self, name: str) -> int:
        """How often it uses a name."""
        return self._times[name]

    def filled(self, values: Mapping[str, str]) -> str:
        """With a value for each of its names."""
        pieces = self._pieces.copy()
        pieces[1::2] = map(values.__getitem__, self._names)
        return "".join(pieces)


def names_in(text: str) -> tuple[str, ...]:
    """The names that a text uses, each once, in the order in which they come."""
    return tuple(dict.fromkeys(_PLACEHOLDER.findall(text)))


@dataclass(frozen=True, slots=True)
class Rendered:
    """An e-mail with values. `missing`: names that it uses and that were not given, in the order of the variables."""

    subject: str
    html: str
    text: str | None
    missing: tuple[str, ...]


class EmailSize(NamedTuple):
    """The subject of an e-mail with values, and the bytes of its body."""

    subject: str
    body_bytes: int


class _Sizes:
    """How many bytes a part becomes for each of many, whose values are but a few; what all have is counted once."""

    __slots__ = ("_each", "_usual", "_write", "part")

    def __init__(self, part: EmailPart, pieces: Pieces, texts: Mapping[str, str]) -> None:
        self.part = part
        self._write = _WRITTEN[part]
        written = {name: self._write(texts[name]) for name in pieces.names}
        self._usual = pieces.size(written)
        self._each = {name: (pieces.times(name), _bytes_of(text)) for name, text in written.items()}

    def of(self, own: Mapping[str, str]) -> int:
        """With these values in the place of those that all have."""
        size = self._usual
        for name, text in own.items():
            if (known := self._each.get(name)) is not None:
                times, usual = known
                size += times * (_bytes_of(self._write(text)) - usual)
        return size


class EmailParts:
    """A template, to be rendered as often as one likes.

    `examples`: by the name of each declared variable, in order, what stands for it where no value is given.
    """

    __slots__ = ("_examples", "_parts", "_used")

    def __init__(self, parts: Mapping[EmailPart, str | None], examples: Mapping[str, str | None]) -> None:
        self._parts = {part: Pieces(text) for part, text in parts.items() if text is not None}
        self._examples = dict(examples)
        self._used = frozenset(name for pieces in self._parts.values() for name in pieces.names)

    @property
    def parts(self) -> Mapping[EmailPart, Pieces]:
        """Each part that it has, taken apart."""
        return self._parts

    @property
    def used(self) -> frozenset[str]:
        """The names that its parts use."""
        return self._used

    def with_subject(self, subject: str) -> "EmailParts":
        """With another subject; what that uses and nobody declared is empty without a value."""
        pieces = Pieces(subject)
        other = EmailParts({}, {**dict.fromkeys(pieces.names), **self._examples})
        other._parts = {**self._parts, EmailPart.SUBJECT: pieces}
        other._used = frozenset(name for each in other._parts.values() for name in each.names)
        return other

    def measure(self, values: Mapping[str, Value]) -> EmailSize:
        """What it becomes, and how large, without the work of putting it together. Raises as `render`."""
        texts = self.texts(values)
        sizes = {}
        for part, pieces in self._parts.items():
            if part is not EmailPart.SUBJECT:
                sizes[part] = pieces.size({name: _WRITTEN[part](texts[name]) for name in pieces.names})
                if sizes[part] > MOST_OF[part]:
                    raise _too_long(part)
        return EmailSize(self._filled(EmailPart.SUBJECT, self._parts[EmailPart.SUBJECT], texts), sum(sizes.values()))

    def measuring(self, shared: Mapping[str, Value]) -> Callable[[Mapping[str, Value]], EmailSize]:
        """`measure` for many e-mails, which share these values; each is measured by the values of its own alone."""
        texts = self.texts(shared)
        sizes = [_Sizes(part, pieces, texts) for part, pieces in self._parts.items() if part is not EmailPart.SUBJECT]
        subject = self._parts[EmailPart.SUBJECT]
        write = _WRITTEN[EmailPart.SUBJECT]
        written = {name: write(texts[name]) for name in subject.names}

        def measure(own: Mapping[str, Value]) -> EmailSize:
            given = {name: as_text(value) for name, value in own.items() if name in self._used}
            found = [(each.part, each.of(given)) for each in sizes]
            for part, size in found:
                if size > MOST_OF[part]:
                    raise _too_long(part)
            told = written | {name: write(text) for name, text in given.items() if name in written}
            return EmailSize(_put_together(EmailPart.SUBJECT, subject, told), sum(size for _, size in found))

        return measure

    def render(self, values: Mapping[str, Value]) -> Rendered:
        """Values that no part uses do nothing. Raises `Problem` TEXT_TOO_LONG, before anything grows."""
        texts = self.texts(values)
        rendered = {part: self._filled(part, pieces, texts) for part, pieces in self._parts.items()}
        return Rendered(
            rendered[EmailPart.SUBJECT],
            rendered[EmailPart.HTML],
            rendered.get(EmailPart.TEXT),
            tuple(name for name in self._examples if name in self._used and name not in values),
        )

    def texts(self, values: Mapping[str, Value]) -> dict[str, str]:
        """What stands for each variable, as it was given."""
        texts = {name: "" if example is None else example for name, example in self._examples.items()}
        return texts | {name: as_text(value) for name, value in values.items() if name in self._used}

    def _filled(self, part: EmailPart, pieces: Pieces, texts: Mapping[str, str]) -> str:
        write = _WRITTEN[part]
        return _put_together(part, pieces, {name: write(texts[name]) for name in pieces.names})


def _put_together(part: EmailPart, pieces: Pieces, written: Mapping[str, str]) -> str:
    if pieces.length(written) > MOST_OF[part]:
        raise _too_long(part)
    filled = pieces.filled(written)
    if is_too_long(part, filled):
        raise _too_long(part)
    return filled


def _bytes_of(text: str) -> int:
    return len(text.encode(errors="replace"))


def undeclared(used: Mapping[EmailPart, Iterable[str]], declared: Iterable[str]) -> list[tuple[EmailPart, str]]:
    """The names that parts use and nobody declared, each with the first part that uses it."""
    known = set(declared)
    found: dict[str, EmailPart] = {}
    for part, names in used.items():
        for name in names:
            if name not in known:
                found.setdefault(name, part)
    return [(part, name) for name, part in found.items()]


def _too_long(part: EmailPart) -> Problem:
    most = "255 characters" if part is EmailPart.SUBJECT else f"{MOST_OF[part] // 1024:,} KiB"
    return Problem("TEXT_TOO_LONG", f"With these variables the {part} is longer than {most}.")
