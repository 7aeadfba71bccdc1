"""The problems of a journey as it is now, found in turns: the largest take tens of milliseconds (C9.14, C31)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from recado.domain.core.errors import FieldError, Problem
from recado.domain.journeys.graph import JourneyDefinition, step_of
from recado.domain.journeys.problems import JourneyFault, JourneyReferences, problem_parts
from recado.engine.turns import turns
from recado.storage.core.statements.rows import Executor
from recado.storage.journeys.journeys import Journey
from recado.storage.journeys.references import references_of
from recado.storage.journeys.uses import hold_used

STEPS_OF_A_TURN: Final = 10

# Where a problem of the whole journey stands; others are of its steps.
_PARTS: Final = {
    JourneyFault.SEM_INICIO: "/inicio",
    JourneyFault.GATILHO_INCOMPLETO: "/gatilho",
    JourneyFault.GATILHO_INEXISTENTE: "/gatilho",
    JourneyFault.SILENCIO_INVALIDO: "/silencio",
}

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
    return await _problems_in(
        definition, await references_of(executor, journey.organization_id, journey.env, definition)
    )


async def held(connection: Executor, journey: Journey, before: Examined) -> Examined:
    """The same at a moment when nobody deletes what it uses any more, until this transaction ends.

    Only a change of what it refers to, since it was examined, makes that dearer than to read it.
    """
    await hold_used(connection, journey)
    references = await references_of(connection, journey.organization_id, journey.env, before.definition)
    return before if references == before.references else await _problems_in(before.definition, references)


def with_problems(found: list[str], journey: Journey) -> Problem:
    """422 with all problems, each at the step that it is about."""
    places = {step.get("id"): place for place, step in reversed(list(enumerate(journey.passos)))}
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    detail = f"The journey has problems: {found[0].partition(': ')[0]}{more}; `meta.problemas` lists them."
    errors = [_field_error(problem, places) for problem in found]
    return Problem("JORNADA_COM_PROBLEMAS", detail, errors=errors, meta={"problemas": found})


def _field_error(problem: str, places: Mapping[str, int]) -> FieldError:
    """The problem at what it concerns; `places`: of the steps, by id."""
    code, _, step = problem.partition(": ")[0].removesuffix("]").partition("[")
    if step in places:
        return FieldError(f"/passos/{places[step]}", code, problem)
    return FieldError(_PARTS.get(JourneyFault(code), "/passos"), code, problem)


async def _problems_in(definition: JourneyDefinition, references: JourneyReferences) -> Examined:
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
