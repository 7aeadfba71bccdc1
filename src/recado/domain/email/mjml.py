"""What is wrong with MJML, found before it is compiled.

Its compiler drops what it does not know, tells of few faults where they are, and calls itself for each element inside
another: what is deep must not reach it.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

MOST_ELEMENTS: Final = 2_000  # of MJML; HTML inside of them does not count
MOST_ATTRIBUTES: Final = 8_192  # characters of one that holds others, which may repeat them, and in mj-attributes
DEEPEST: Final = 100
MOST_FAULTS: Final = 20
_LONGEST_TOLD: Final = 64  # characters of a name
_NO_ELEMENT: Final = "no element begins here: the sign alone is written `&lt;`, and values stand in quotes"

_TOKEN = re.compile(
    r"""<!--.*?-->
    | <(?P<close>/?)(?P<name>[A-Za-z][A-Za-z0-9:_-]*)
      (?P<attributes>(?:\s++[A-Za-z_:][\w:.-]*+(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'))?+)*+)\s*+(?P<alone>/?)>
    | <""",
    re.DOTALL | re.VERBOSE,
)
_DEFAULTS: Final = "mj-attributes"
_VOID: Final = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr")
)
_OF_A_COLUMN: Final = (
    "mj-accordion", "mj-button", "mj-carousel", "mj-divider", "mj-image", "mj-navbar", "mj-raw", "mj-social",
    "mj-spacer", "mj-table", "mj-text",
)  # fmt: skip
_HTML: Final = frozenset(
    (
        "mj-accordion-text", "mj-accordion-title", "mj-button", "mj-navbar-link", "mj-raw", "mj-social-element",
        "mj-table", "mj-text",
    )
)  # fmt: skip
_PLAIN: Final = frozenset(("mj-preview", "mj-style", "mj-title"))
"""What holds text, and no element."""
_HOLDS: Final[Mapping[str, tuple[str, ...]]] = {
    "": ("mjml",),
    "mjml": ("mj-head", "mj-body"),
    "mj-head": ("mj-attributes", "mj-breakpoint", "mj-font", "mj-preview", "mj-raw", "mj-style", "mj-title"),
    "mj-attributes": (
        "mj-all", "mj-class", "mj-section", "mj-wrapper", "mj-group", "mj-column", "mj-hero", "mj-accordion-element",
        "mj-accordion-text", "mj-accordion-title", "mj-carousel-image", "mj-navbar-link", "mj-social-element",
        *_OF_A_COLUMN,
    ),
    "mj-body": ("mj-section", "mj-wrapper", "mj-hero", "mj-raw"),
    "mj-wrapper": ("mj-section", "mj-hero", "mj-raw"),
    "mj-section": ("mj-column", "mj-group", "mj-raw"),
    "mj-group": ("mj-column", "mj-raw"),
    "mj-column": _OF_A_COLUMN,
    "mj-hero": _OF_A_COLUMN,
    "mj-accordion": ("mj-accordion-element",),
    "mj-accordion-element": ("mj-accordion-title", "mj-accordion-text"),
    "mj-carousel": ("mj-carousel-image",),
    "mj-navbar": ("mj-navbar-link",),
    "mj-social": ("mj-social-element",),
    **dict.fromkeys(("mj-all", "mj-breakpoint", "mj-carousel-image", "mj-class", "mj-divider"), ()),
    **dict.fromkeys(("mj-font", "mj-image", "mj-spacer"), ()),
}  # fmt: skip
"""What holds elements and no text; what stands in mj-attributes says the defaults of those."""
_KNOWN: Final = frozenset(_HOLDS) | _HTML | _PLAIN


@dataclass(frozen=True, slots=True)
class MjmlFault:
    """`line` and `column` count from 1, in characters."""

    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"Line {self.line}, column {self.column}: {self.message}"


def faults_of(source: str) -> list[MjmlFault]:
    """What is wrong, in order, a few of many; empty where it may be compiled."""
    found = []
    for place, message in _Reader(source).faults():
        found.append(fault_at(source, place, message))
        if len(found) == MOST_FAULTS:
            break
    return found


def fault_at(source: str, place: int, message: str) -> MjmlFault:
    """`place`: in characters from the start."""
    line_start = source.rfind("\n", 0, place) + 1
    return MjmlFault(source.count("\n", 0, place) + 1, place - line_start + 1, message)


class _Reader:
    """Goes through the elements once. What follows a fault that leaves unclear what is open is not looked at."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._open: list[tuple[str, int]] = []  # elements, and where each begins
        self._elements = 0
        self._within_defaults = 0  # how many of them are mj-attributes
        self._defaults = 0  # characters of attributes inside those

    def faults(self) -> Iterator[tuple[int, str]]:
        """Where, and what."""
        end = 0
        for token in _TOKEN.finditer(self._source):
            yield from self._between(end, token.start())
            end = token.end()
            if token["name"] is not None:
                yield from self._misplaced(token)
                lost = self._enter(token)
                if lost is not None:
                    yield token.start(), lost
                    return
            elif token.group() == "<":
                yield token.start(), _NO_ELEMENT
                return
            elif "--" in token.group()[4:-3]:
                yield token.start(), "a comment holds `--`"
        yield from self._between(end, len(self._source))
        if self._open:
            name, place = self._open[-1]
            yield place, f"`{name[:_LONGEST_TOLD]}` has no end"
        elif not self._elements:
            yield 0, "there is no `mjml`"

    @property
    def _inside(self) -> str:
        return self._open[-1][0] if self._open else ""

    def _between(self, start: int, end: int) -> Iterator[tuple[int, str]]:
        if self._inside not in _HOLDS:
            return
        text = self._source[start:end]
        if text.strip():
            where = f"inside `{self._inside}`" if self._open else "outside of `mjml`"
            yield start + len(text) - len(text.lstrip()), f"text does not stand {where}"

    def _misplaced(self, token: re.Match[str]) -> Iterator[tuple[int, str]]:
        """An element where the compiler would drop it, or what it holds."""
        name, around = token["name"][:_LONGEST_TOLD], self._inside
        if token["close"] or (around in _HOLDS and name in _HOLDS[around]):
            return
        if name == "mj-include":
            yield token.start(), "`mj-include` reads nothing here: write what it would include"
        elif name not in _KNOWN and (around in _HOLDS or name.startswith("mj")):
            yield token.start(), f"`{name}` is no element of MJML"
        elif around in _PLAIN:
            yield token.start(), f"`{around}` holds text only"
        elif name in _KNOWN:
            where = f"inside `{around}`" if around else "outside of `mjml`"
            yield token.start(), f"`{name}` does not stand {where}"

    def _enter(self, token: re.Match[str]) -> str | None:
        """What is open after a token; a fault where that cannot be told, or where there is too much."""
        name = token["name"]
        if token["close"]:
            if self._inside != name:
                told = name[:_LONGEST_TOLD]
                return f"`{told}` ends here, but `{self._inside}` is open" if self._open else f"`{told}` was not begun"
            self._open.pop()
            self._within_defaults -= name == _DEFAULTS
            return None
        if not self._open and self._elements:
            return "there is more than one `mjml`"
        self._elements += name.startswith("mj")
        if self._elements > MOST_ELEMENTS:
            return f"there are more than {MOST_ELEMENTS:,} elements"
        attributes = len(token["attributes"])
        if _HOLDS.get(name) and attributes > MOST_ATTRIBUTES:
            return f"`{name}` has more than {MOST_ATTRIBUTES:,} characters of attributes"
        if self._within_defaults:
            self._defaults += attributes
            if self._defaults > MOST_ATTRIBUTES:
                return f"`mj-attributes` holds more than {MOST_ATTRIBUTES:,} characters of attributes"
        if not token["alone"] and name not in _VOID:
            self._open.append((name, token.start()))
            self._within_defaults += name == _DEFAULTS
        return f"elements stand more than {DEEPEST} deep in each other" if len(self._open) > DEEPEST else None
