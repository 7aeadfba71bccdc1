"""State machines as literal tables: (state, event) → state, and nothing else.

A missing pair raises and changes nothing. Storage repeats the guard in SQL with `sources`, and the diagrams of
`docs/states.md` are drawn from the same tables.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Generic, TypeVar

from recado.domain.core.errors import Problem

State = TypeVar("State", bound=StrEnum)
Event = TypeVar("Event", bound=StrEnum)


class IllegalMove(Problem):
    """409 `INVALID_STATE` with `meta.status`: the state of the record does not know this event."""

    def __init__(self, machine: str, state: StrEnum, event: StrEnum) -> None:
        super().__init__(
            "INVALID_STATE",
            f"The {machine} is {state.value}, which does not allow this.",
            meta={"status": state.value},
        )
        self.event = event


class Machine(Generic[State, Event]):
    """The states of one kind of record. `initial` tells how a record is born, and in which state."""

    __slots__ = ("_sources", "_table", "initial", "name")

    def __init__(
        self, name: str, table: Mapping[tuple[State, Event], State], *, initial: Mapping[str, State] | None = None
    ) -> None:
        self.name = name
        self.initial: Mapping[str, State] = dict(initial or {})
        self._table = dict(table)
        sources: dict[Event, set[State]] = {}
        for state, event in self._table:
            sources.setdefault(event, set()).add(state)
        self._sources = {event: frozenset(states) for event, states in sources.items()}

    def move(self, state: State, event: Event) -> State:
        """The state after `event`. Raises `IllegalMove` when the table has no such pair."""
        try:
            return self._table[state, event]
        except KeyError:
            raise IllegalMove(self.name, state, event) from None

    def sources(self, event: Event) -> frozenset[State]:
        """The states that know this event: the guard of the SQL update that records it."""
        return self._sources.get(event, frozenset())

    @property
    def states(self) -> tuple[State, ...]:
        """Every state, in the order in which the table first names it."""
        named = [
            *self.initial.values(),
            *(state for (source, _), target in self._table.items() for state in (source, target)),
        ]
        return tuple(dict.fromkeys(named))

    def transitions(self) -> Iterator[tuple[State, Event, State]]:
        """Every (from, event, to) in the order of the table."""
        return ((state, event, target) for (state, event), target in self._table.items())


def mermaid(machine: Machine[State, Event]) -> str:
    """The machine as a Mermaid state diagram, one arrow for each line of its table."""
    lines = ["stateDiagram-v2"]
    lines += [f"    [*] --> {state.value}: {label}" for label, state in machine.initial.items()]
    lines += [f"    {state.value} --> {target.value}: {event.value}" for state, event, target in machine.transitions()]
    left = {state for state, _, target in machine.transitions() if state is not target}
    lines += [f"    {state.value} --> [*]" for state in machine.states if state not in left]
    return "\n".join(lines)
