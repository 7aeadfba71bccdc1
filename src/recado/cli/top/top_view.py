"""What a person looks at, and what their keys do to it: the order, the filter, the selected number, a question.

It knows no terminal. A key has a name (`up`, `enter`) or is the character itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal

from recado.cli.top.live_numbers import ORDERS, LiveNumbers, NumberOrder, NumberRow

_LONGEST_FILTER: Final = 100  # characters

Verb = Literal["pause", "resume"]


@dataclass(frozen=True, slots=True)
class NumberMove:
    """A number is to be paused or resumed, and the person has said yes."""

    number_id: str
    verb: Verb


class TopMode(Enum):
    """What keys are for."""

    LOOKING = "looking"
    FILTERING = "filtering"
    ASKED = "asked"
    HELP = "help"


LEAVE: Final = "leave"

Pressed = NumberMove | Literal["leave"] | None


class TopView:
    """`page`: how many rows are in view. `message`: what is told of the last thing that was done."""

    def __init__(self, numbers: LiveNumbers, *, order: NumberOrder = ORDERS[0], words: str = "") -> None:
        self.mode = TopMode.LOOKING
        self.order = order
        self.reverse = False
        self.words = words
        self.message = ""
        self.question: NumberMove | None = None
        self.page = 1
        self._numbers = numbers
        self._former_words = ""
        self._selected: str | None = None
        self._at = 0  # where the selected one was seen last
        self._first = 0

    @property
    def rows(self) -> Sequence[NumberRow]:
        """All that the filter lets through."""
        return self._numbers.shown(self.order, reverse=self.reverse, words=self.words)

    @property
    def selected(self) -> NumberRow | None:
        """It stays selected wherever it moves to; when it is there no more, the one in its place is."""
        rows = self.rows
        if not rows:
            return None
        at = self._index(rows)
        self._selected, self._at = rows[at].id, at
        return rows[at]

    def in_view(self, page: int) -> Sequence[NumberRow]:
        """The rows to show where there is room for so many: the selected one is among them."""
        self.page = max(1, page)
        if self.selected is None:
            return ()
        first = min(self._first, max(0, len(self.rows) - self.page))
        self._first = min(max(first, self._at - self.page + 1), self._at)
        return self.rows[self._first : self._first + self.page]

    @property
    def first(self) -> int:
        """How many rows are above those in view."""
        return self._first

    def press(self, key: str) -> Pressed:
        """Do what the key means; what is left to do for whoever calls the service."""
        match self.mode:
            case TopMode.FILTERING:
                self._type(key)
            case TopMode.ASKED:
                return self._answer(key)
            case TopMode.HELP:
                self.mode = TopMode.LOOKING
            case TopMode.LOOKING:
                self.message = ""
                if key == "q":
                    return LEAVE
                action = _KEYS.get(key)
                if action is not None:
                    action(self)
        return None

    def _index(self, rows: Sequence[NumberRow]) -> int:
        if self._at < len(rows) and rows[self._at].id == self._selected:
            return self._at
        for at, row in enumerate(rows):
            if row.id == self._selected:
                return at
        return min(self._at, len(rows) - 1)

    def _type(self, key: str) -> None:
        match key:
            case "enter":
                self.mode = TopMode.LOOKING
            case "escape":
                self.words, self.mode = self._former_words, TopMode.LOOKING
            case "backspace":
                self.words = self.words[:-1]
            case "up" | "down" | "page_up" | "page_down":
                _KEYS[key](self)
            case _ if len(key) == 1 and key.isprintable():
                self.words = (self.words + key)[:_LONGEST_FILTER]

    def _answer(self, key: str) -> Pressed:
        question, self.question, self.mode = self.question, None, TopMode.LOOKING
        if key in ("y", "Y"):
            return question
        self.message = "nothing was changed"
        return None

    def move(self, by: int) -> None:
        """Select another one, so many rows further."""
        rows = self.rows
        if rows:
            self._at = min(max(0, self._index(rows) + by), len(rows) - 1)
            self._selected = rows[self._at].id

    def sort(self, by: int) -> None:
        """Another order, the next or the one before; the first row is selected."""
        self.order = ORDERS[(ORDERS.index(self.order) + by) % len(ORDERS)]
        self.reverse = False
        self.to_first()

    def turn(self) -> None:
        """The other way round."""
        self.reverse = not self.reverse
        self.to_first()

    def to_first(self) -> None:
        """Select the first row."""
        self._selected, self._at = None, 0

    def to_last(self) -> None:
        """Select the last row."""
        self.move(len(self.rows))

    def ask(self, verb: Verb) -> None:
        """Ask whether the selected number is to be paused, or resumed."""
        row = self.selected
        if row is not None:
            self.question, self.mode = NumberMove(row.id, verb), TopMode.ASKED

    def begin_filter(self) -> None:
        """What is typed from now on is the filter."""
        self._former_words, self.mode = self.words, TopMode.FILTERING

    def show_help(self) -> None:
        """Until the next key."""
        self.mode = TopMode.HELP


_KEYS: Final[dict[str, Callable[[TopView], None]]] = {
    "up": lambda view: view.move(-1),
    "k": lambda view: view.move(-1),
    "down": lambda view: view.move(1),
    "j": lambda view: view.move(1),
    "page_up": lambda view: view.move(-view.page),
    "page_down": lambda view: view.move(view.page),
    "home": TopView.to_first,
    "end": TopView.to_last,
    "s": lambda view: view.sort(1),
    "S": lambda view: view.sort(-1),
    "r": TopView.turn,
    "/": TopView.begin_filter,
    "p": lambda view: view.ask("pause"),
    "u": lambda view: view.ask("resume"),
    "h": TopView.show_help,
    "?": TopView.show_help,
}

HELP: Final = (
    ("↑ ↓ k j", "select a number; page up, page down, home, end"),
    ("s S", f"sort by the next, the one before: {', '.join(order.name for order in ORDERS)}"),
    ("r", "the other way round"),
    ("/", "filter: words of ids, phones, states, reasons, error codes; enter keeps it, escape does not"),
    ("p", "pause the selected number: everything stays queued"),
    ("u", "resume it"),
    ("q", "leave"),
)
