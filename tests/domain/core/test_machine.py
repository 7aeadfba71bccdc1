"""State tables: what is not in the table cannot happen."""

from enum import StrEnum
from typing import Any

import pytest

from recado.domain.channels.chatapp import MACHINE as MESSAGE_MACHINE
from recado.domain.core.machine import IllegalMove, Machine, mermaid
from recado.domain.messages.message import MessageEvent, MessageStatus
from recado.domain.senders.number import NUMBER_MACHINE, NumberEvent
from recado.domain.templates.template import TEMPLATE_MACHINE, TemplateEvent

MACHINES: list[tuple[Machine[Any, Any], type[StrEnum]]] = [
    (MESSAGE_MACHINE, MessageEvent),
    (NUMBER_MACHINE, NumberEvent),
    (TEMPLATE_MACHINE, TemplateEvent),
]
OF_OTHER_CHANNELS = {  # than chat-app, whose machine is the one of messages here
    MessageStatus.UNDELIVERED,
    MessageStatus.BOUNCED,
    MessageStatus.COMPLAINED,
    MessageEvent.OVERDUE,
    MessageEvent.REPORT_BOUNCED,
    MessageEvent.REPORT_COMPLAINED,
    MessageEvent.LATE_COMPLAINED,
    MessageEvent.REVOKED,
}
each_machine = pytest.mark.parametrize(("machine", "events"), MACHINES, ids=lambda value: getattr(value, "name", ""))


class Light(StrEnum):
    RED = "red"
    GREEN = "green"
    OFF = "off"


class Switch(StrEnum):
    GO = "go"
    CUT = "cut"


LIGHT = Machine(
    "light",
    {
        (Light.RED, Switch.GO): Light.GREEN,
        (Light.GREEN, Switch.CUT): Light.OFF,
        (Light.RED, Switch.CUT): Light.OFF,
    },
    initial={"built": Light.RED},
)


def test_a_move_follows_the_table() -> None:
    assert LIGHT.move(Light.RED, Switch.GO) is Light.GREEN
    assert LIGHT.sources(Switch.CUT) == {Light.RED, Light.GREEN}
    assert LIGHT.states == (Light.RED, Light.GREEN, Light.OFF)


def test_a_machine_is_drawn_from_its_table() -> None:
    assert mermaid(LIGHT).splitlines() == [
        "stateDiagram-v2",
        "    [*] --> red: built",
        "    red --> green: go",
        "    green --> off: cut",
        "    red --> off: cut",
        "    off --> [*]",
    ]


@each_machine
def test_every_pair_outside_the_table_raises_and_leaves_everything_unchanged(
    machine: Machine[Any, Any], events: type[StrEnum]
) -> None:
    before = list(machine.transitions())
    legal = {(state, event) for state, event, _ in before}
    illegal = [(state, event) for state in type(before[0][0]) for event in events if (state, event) not in legal]
    assert illegal
    for state, event in illegal:
        with pytest.raises(IllegalMove) as caught:
            machine.move(state, event)
        assert (caught.value.status, caught.value.code) == (409, "INVALID_STATE")
        assert caught.value.meta == {"status": state.value}
    assert list(machine.transitions()) == before


@each_machine
def test_every_pair_of_the_table_moves_as_it_says(machine: Machine[Any, Any], events: type[StrEnum]) -> None:
    for state, event, target in machine.transitions():
        assert machine.move(state, event) is target
        assert state in machine.sources(event)


@each_machine
def test_every_state_is_reached_from_a_birth(machine: Machine[Any, Any], events: type[StrEnum]) -> None:
    reached = set(machine.initial.values())
    while new := {target for state, _, target in machine.transitions() if state in reached} - reached:
        reached |= new
    everything: type[StrEnum] = type(next(iter(reached)))
    assert reached == set(everything) - OF_OTHER_CHANNELS


@each_machine
def test_every_event_moves_something(machine: Machine[Any, Any], events: type[StrEnum]) -> None:
    assert {event for _, event, _ in machine.transitions()} == set(events) - OF_OTHER_CHANNELS
