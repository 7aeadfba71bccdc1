"""The numbers of a step follow from what is counted of it (C9.10)."""

from recado.domain.journeys.execution import TrailResult
from recado.domain.journeys.graph import StepKind
from recado.domain.journeys.step_numbers import StepCount, StepNumbers, counted_result


def result(result: str, kind: StepKind = StepKind.ENVIAR, *, ended: bool = False) -> str:
    return counted_result(kind, result, ended=ended)


def test_who_came_has_passed_the_step_or_stands_there_or_ended_there() -> None:
    numbers = StepNumbers(
        {
            StepCount.ENTERED: 20,
            StepCount.LEFT: 2,
            result(TrailResult.SENT): 7,
            result(TrailResult.SKIPPED): 4,
            result(TrailResult.ERROR, ended=True): 1,
        }
    )
    assert (numbers.entered, numbers.passed, numbers.skipped, numbers.errors, numbers.waiting) == (20, 7, 4, 1, 6)


def test_a_branch_may_have_the_name_of_a_result() -> None:
    split = StepKind.DIVIDIR
    numbers = StepNumbers(
        {
            StepCount.ENTERED: 9,
            result("erro", split): 5,
            result("pulado", split): 3,
            result(TrailResult.ERROR, split, ended=True): 1,
        }
    )
    assert (numbers.branch("erro"), numbers.branch("pulado"), numbers.branch("other")) == (5, 3, 0)
    assert (numbers.passed, numbers.skipped, numbers.errors, numbers.waiting) == (8, 0, 1, 0)


def test_a_step_that_nobody_came_to_has_zeros() -> None:
    numbers = StepNumbers({})
    assert (numbers.entered, numbers.passed, numbers.waiting) == (0, 0, 0)
    assert set(numbers.messages().values()) == {0}
    assert list(numbers.messages()) == [
        "enviadas", "entregues", "lidas", "clicadas", "respondidas", "falhas", "conversoes",
    ]  # fmt: skip
