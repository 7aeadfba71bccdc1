"""The rules of journeys that are not about their graph."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.core.machine import IllegalMove
from recado.domain.journeys.journey import (
    JOURNEY_MACHINE,
    MAX_NAME,
    SHORTEST_STEM,
    JourneyEvent,
    JourneyStatus,
    copy_name,
)


def test_an_archived_journey_knows_no_event() -> None:
    for event in JourneyEvent:
        with pytest.raises(IllegalMove):
            JOURNEY_MACHINE.move(JourneyStatus.ARQUIVADA, event)


def test_only_a_draft_is_edited_and_each_other_one_is_archived() -> None:
    assert JOURNEY_MACHINE.sources(JourneyEvent.EDIT) == {JourneyStatus.RASCUNHO}
    assert JOURNEY_MACHINE.sources(JourneyEvent.ARCHIVE) == set(JourneyStatus) - {JourneyStatus.ARQUIVADA}


def test_only_one_that_runs_pauses_itself_and_only_one_that_does_not_is_activated() -> None:
    for event in (JourneyEvent.PAUSE, JourneyEvent.HINDERED):
        assert JOURNEY_MACHINE.move(JourneyStatus.ATIVA, event) is JourneyStatus.PAUSADA
    assert JOURNEY_MACHINE.sources(JourneyEvent.HINDERED) == {JourneyStatus.ATIVA}
    assert JOURNEY_MACHINE.sources(JourneyEvent.PAUSE) == {JourneyStatus.ATIVA, JourneyStatus.PAUSADA}
    assert JOURNEY_MACHINE.move(JourneyStatus.PAUSADA, JourneyEvent.PAUSE) is JourneyStatus.PAUSADA
    assert JOURNEY_MACHINE.sources(JourneyEvent.ACTIVATE) == {JourneyStatus.RASCUNHO, JourneyStatus.PAUSADA}
    assert {
        JOURNEY_MACHINE.move(each, JourneyEvent.ACTIVATE) for each in JOURNEY_MACHINE.sources(JourneyEvent.ACTIVATE)
    } == {JourneyStatus.ATIVA}


def test_copies_are_numbered_from_the_second_on() -> None:
    assert copy_name("Boas-vindas", ()) == "Boas-vindas (cópia)"
    assert copy_name("Boas-vindas", {"Boas-vindas (cópia)"}) == "Boas-vindas (cópia 2)"
    assert copy_name("Boas-vindas", {"Boas-vindas (cópia)", "Boas-vindas (cópia 3)"}) == "Boas-vindas (cópia 2)"
    assert copy_name("A (cópia)", {"A (cópia)"}) == "A (cópia) (cópia)"


@given(st.text(min_size=1, max_size=MAX_NAME).map(lambda name: name.strip() or "a"), st.integers(0, 12))
def test_each_copy_has_a_name_of_its_own_that_fits(name: str, copies: int) -> None:
    taken: set[str] = set()
    for _ in range(copies):
        taken.add(copy_name(name, taken))
    assert len(taken) == copies
    assert all(each.startswith(name[:SHORTEST_STEM].rstrip()) for each in taken)
    assert all(0 < len(each) <= MAX_NAME and each.strip() == each for each in taken)
