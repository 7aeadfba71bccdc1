"""The rules of journeys that are not about their graph."""

from hypothesis import given
from hypothesis import strategies as st

from recado.domain.journeys.journey import MAX_NAME, SHORTEST_STEM, copy_name


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
