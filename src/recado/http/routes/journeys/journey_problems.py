"""The problems of a journey as it is now, found in turns: the largest take tens of milliseconds (C9.14, C31)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from recado.domain.journeys.graph import JourneyDefinition, step_of
from recado.domain.journeys.problems import JourneyReferences, problem_parts
from recado.engine.turns import turns
from recado.storage.core.rows import Executor
from recado.storage.journeys.journeys import Journey
from recado.storage.journeys.references import references_of
from recado.storage.journeys.uses import hold_used

STEPS_OF_A_TURN: Final = 10

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Examined:
    """What a journey does, what there was of what it refers to, and what is wrong with it by that."""

    definition: JourneyDefinition
    references: JourneyReferences
    problems: list[str]


async def examined(executor: Executor, journey: Journey) -> Examined:
    """The journey as of now."""
    definition = journey.definition(await _in_turns(map(step_of, journey.passos)))
    return await _with_problems(
        definition, await references_of(executor, journey.organization_id, journey.env, definition)
    )


async def held(connection: Executor, journey: Journey, before: Examined) -> Examined:
    """The same at a moment when nobody deletes what it uses any more, until this transaction ends.

    Only a change of what it refers to, since it was examined, makes that dearer than to read it.
    """
    await hold_used(connection, journey)
    references = await references_of(connection, journey.organization_id, journey.env, before.definition)
    return before if references == before.references else await _with_problems(before.definition, references)


async def _with_problems(definition: JourneyDefinition, references: JourneyReferences) -> Examined:
    parts = await _in_turns(problem_parts(definition, references))
    return Examined(definition, references, list(dict.fromkeys(problem for part in parts for problem in part)))


async def _in_turns(items: Iterable[T]) -> list[T]:
    """All of them. The first few take no turn: a usual journey is through with them."""
    found: list[T] = []
    rest: Iterator[T] = iter(items)
    for item in rest:
        found.append(item)
        if len(found) % STEPS_OF_A_TURN == 0:
            await turns.next()
    return found
