"""The numbers as the service told of them last: what changes is put in place, and they are sorted and filtered here.

The stream tells of the first thousand alone (C34.1). Where there are more, the whole list is read now and then: a
number that the stream does not tell of is shown as the list had it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeVar

from recado.domain.dispatch.breaker import BreakerState
from recado.domain.messages.message import WaitReason
from recado.domain.ops.trouble import Trouble, trouble_of
from recado.domain.senders.number import NumberStatus, QualityRating

State = Mapping[str, Any]
"""The live state of a number, as the API renders it (C34.2)."""

_Value = TypeVar("_Value", bound=StrEnum)
_Other = TypeVar("_Other")


@dataclass(frozen=True, slots=True)
class NumberRow:
    """One number. `due`: messages that are due and have not left; `words`: where a filter looks, in lower case."""

    id: str
    state: State
    trouble: Trouble
    due: int
    words: str

    @property
    def held_by(self) -> str | None:
        """The reason for which it waits."""
        holding = self.state.get("holding")
        return None if holding is None else str(holding["reason"])


@dataclass(frozen=True, slots=True)
class NumberOrder:
    """A way to sort: by `rank`, the greatest first unless `rising`. Numbers of one rank go by their id."""

    name: str
    rank: Callable[[NumberRow], Any]
    rising: bool = False


def _sent(row: NumberRow) -> tuple[int, int]:
    return row.state["rate"]["sentLastSecond"], row.state["rate"]["sentLastMinute"]


ORDERS: Final = (
    NumberOrder("trouble", lambda row: (row.trouble, row.due)),
    NumberOrder("queue", lambda row: row.due),
    NumberOrder("age", lambda row: row.state["oldestAgeSeconds"]),
    NumberOrder("sent", _sent),
    NumberOrder("errors", lambda row: row.state["errorRate5m"]),
    NumberOrder("number", lambda row: row.id, rising=True),
)


class LiveNumbers:
    """All that is known. What is shown is sorted again only after something has changed."""

    def __init__(self) -> None:
        self._live: dict[str, NumberRow] = {}
        self._listed: dict[str, NumberRow] = {}
        self._shown: tuple[Any, list[NumberRow]] = (None, [])
        self._version = 0

    def __len__(self) -> int:
        return len(self._live.keys() | self._listed.keys())

    @property
    def live(self) -> int:
        """Of how many the stream tells."""
        return len(self._live)

    def is_live(self, number_id: str) -> bool:
        """Whether the stream tells of it."""
        return number_id in self._live

    def get(self, number_id: str) -> NumberRow | None:
        """The number, None where it is not known."""
        return self._live.get(number_id) or self._listed.get(number_id)

    def change(self, items: Iterable[State], gone: Iterable[str] = (), *, whole: bool = False) -> None:
        """Take in what the stream told. `whole`: nothing else is."""
        if whole:
            self._live = {}
        for state in items:
            row = row_of(state)
            self._live[row.id] = row
        for number_id in gone:
            self._live.pop(number_id, None)
        self._version += 1

    def take_list(self, items: Iterable[State]) -> None:
        """Take in the whole list, in place of an earlier one."""
        self._listed = {row.id: row for row in map(row_of, items)}
        self._version += 1

    def put(self, state: State) -> None:
        """Take in one number that was asked for."""
        row = row_of(state)
        (self._live if row.id in self._live else self._listed)[row.id] = row
        self._version += 1

    def shown(self, order: NumberOrder, *, reverse: bool = False, words: str = "") -> Sequence[NumberRow]:
        """Those that have all of the words, in this order."""
        asked = (self._version, order.name, reverse, words)
        if self._shown[0] != asked:
            self._shown = (
                asked,
                arranged({**self._listed, **self._live}.values(), order, reverse=reverse, words=words),
            )
        return self._shown[1]


def arranged(
    rows: Iterable[NumberRow], order: NumberOrder, *, reverse: bool = False, words: str = ""
) -> list[NumberRow]:
    """The rows that have all of the words, whatever their case, in this order."""
    wanted = words.lower().split()
    found = [row for row in rows if all(word in row.words for word in wanted)]
    found.sort(key=lambda row: row.id)
    found.sort(key=order.rank, reverse=order.rising == reverse)
    return found


def row_of(state: State) -> NumberRow:
    """A number from its state. Values that a newer service may have are no trouble that this program knows."""
    queue, holding, breaker = state["queue"], state.get("holding"), state["breaker"]
    due = queue["critical"] + queue["normal"] + queue["bulk"]
    reason = None if holding is None else holding["reason"]
    trouble = trouble_of(
        waiting=due,
        reason=_known(WaitReason, reason, None),
        breaker=_known(BreakerState, breaker, BreakerState.CLOSED),
        failing=state["actor"]["state"] == "backing_off",
        status=_known(NumberStatus, state["status"], NumberStatus.CONNECTED),
        quality=_known(QualityRating, state["qualityRating"], QualityRating.GREEN),
        error_rate=state["errorRate5m"],
        uncertain=state["uncertain"],
    )
    said = (
        state["numberId"], state["displayPhone"], state["status"], state["qualityRating"], state["organizationId"],
        state["env"], reason or "", "" if breaker == BreakerState.CLOSED else f"circuit {breaker}",
        *state["lastErrors"],
    )  # fmt: skip
    return NumberRow(state["numberId"], state, trouble, due, " ".join(said).lower())


def _known(kind: type[_Value], text: Any, other: _Other) -> _Value | _Other:
    try:
        return kind(text)
    except ValueError:
        return other
