"""The problems of a journey as it is now, found in turns: the largest take tens of milliseconds (C9.14, C31)."""

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from recado.domain.journeys.graph import JourneyDefinition, step_of
from recado.domain.journeys.problems import problem_parts
from recado.engine.turns import turns
from recado.storage.core.rows import Executor
from recado.storage.journeys.journeys import Journey
from recado.storage.journeys.references import references_of

STEPS_OF_A_TURN: Final = 10

T = TypeVar("T")


async def definition_in_turns(journey: Journey) -> JourneyDefinition:
    """What a journey does."""
    return journey.definition(await _in_turns(map(step_of, journey.passos)))


async def problems_in_turns(executor: Executor, journey: Journey, definition: JourneyDefinition) -> list[str]:
    """What is wrong with it, by what there is of what it refers to."""
    references = await references_of(executor, journey.organization_id, journey.env, definition)
    parts = await _in_turns(problem_parts(definition, references))
    return list(dict.fromkeys(problem for part in parts for problem in part))


async def _in_turns(items: Iterable[T]) -> list[T]:
    """All of them. The first few take no turn: a usual journey is through with them."""
    found: list[T] = []
    rest: Iterator[T] = iter(items)
    for item in rest:
        found.append(item)
        if len(found) % STEPS_OF_A_TURN == 0:
            await turns.next()
    return found
