"""Routes between the screens of a flow (C19)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.flows.flow import entry_screen, has_cycle

NAMES = "ABCDEF"


@pytest.mark.parametrize(
    ("routes", "cycle"),
    [
        ({}, False),
        ({"A": ["B"], "B": []}, False),
        ({"A": ["B", "C"], "B": ["D"], "C": ["D"]}, False),
        ({"A": ["A"]}, True),
        ({"A": ["B"], "B": ["C"], "C": ["B"]}, True),
    ],
)
def test_a_way_back_to_a_screen_is_found(routes: dict[str, list[str]], cycle: bool) -> None:
    assert has_cycle(routes) is cycle


@given(st.dictionaries(st.sampled_from(NAMES), st.lists(st.sampled_from(NAMES))))
def test_it_is_there_exactly_when_some_screen_reaches_itself(routes: dict[str, list[str]]) -> None:
    def reached(screen: str) -> set[str]:
        found: set[str] = set()
        ahead = [*routes.get(screen, ())]
        while ahead:
            if (one := ahead.pop()) not in found:
                found.add(one)
                ahead += routes.get(one, ())
        return found

    assert has_cycle(routes) is any(name in reached(name) for name in NAMES)


@pytest.mark.parametrize(
    ("routes", "entry"),
    [({}, "A"), ({"B": ["A"]}, "B"), ({"A": ["B"]}, "A"), ({"C": ["A", "B"]}, "C")],
)
def test_a_flow_begins_with_the_first_screen_that_none_leads_to(routes: dict[str, list[str]], entry: str) -> None:
    assert entry_screen(("A", "B", "C"), routes) == entry
