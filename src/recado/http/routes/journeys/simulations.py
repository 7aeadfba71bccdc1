"""The dry run of a journey (C9.17): whom it would take along, what is assumed of them, and what would come of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from recado.domain.access.scopes import PII
from recado.domain.core.errors import FieldError, field_refused, validation_error
from recado.domain.core.ids import CONTACT, LIST, SEGMENT, lowest_id
from recado.domain.core.references import reference_not_found
from recado.domain.journeys.graph import TriggerKind, VariableSource
from recado.domain.journeys.runnable import RunnableJourney, runnable
from recado.domain.journeys.simulation.assumptions import Assumptions, Rate, exceeds, has_rates, ways
from recado.domain.journeys.simulation.walk import Trail, TrailLine
from recado.domain.journeys.steps import ChatappSend, RcsSend, SmsSend
from recado.domain.messages.placeholders import filled, measures
from recado.domain.templates.template_content import body_text
from recado.http.api.call import Call
from recado.http.api.route import Idempotency, Route
from recado.http.bodies.field_errors import pointer
from recado.http.routes.core.resource import Resource
from recado.http.routes.journeys.executions import check_data
from recado.http.routes.journeys.journey_problems import examined, with_problems
from recado.http.routes.journeys.simulation_models import (
    JourneySimulation,
    SimulatedAudience,
    SimulationOut,
    message_view,
    simulated_view,
    way_view,
)
from recado.http.wire.reply import Reply
from recado.services.journeys.simulations import JourneySimulations, WantedRun
from recado.storage.audience import lists, segments
from recado.storage.batches.audiences import Audience
from recado.storage.contacts import contacts
from recado.storage.journeys.journeys import Journey

CONTACTS: Final = "contacts:read"
MASKED: Final = frozenset({"phone"})  # fields of contacts
MOST_MESSAGES: Final = 200  # that are shown in all
LONGEST_SHOWN: Final = 4_096  # characters of each
FARTHEST: Final = timedelta(days=366)  # that its begin lies ahead
LATE: Final = timedelta(hours=1)  # that it may be over by: clocks differ


@dataclass(frozen=True, slots=True)
class SimulationOperations:
    """The handler. `call.resource` is the journey."""

    journeys: Resource[Journey]
    simulations: JourneySimulations

    async def simulate(self, call: Call) -> Reply:
        """What is asked is looked at first, then the journey, and then those whom it would take along."""
        body: JourneySimulation = call.body
        journey: Journey = call.resource
        check_data(body.dados)
        start = body.inicio or call.now
        if not call.now - LATE <= start <= call.now + FARTHEST:
            raise validation_error([FieldError("/inicio", "OUT_OF_RANGE", "must be within the next year")])
        given = body.publico or SimulatedAudience()
        named = await self._named(journey, given, call.now)
        call.check_revision(journey.revision)
        seen = await examined(self.journeys.database, journey)
        if seen.problems:
            raise with_problems(seen.problems, journey)
        assumptions = _assumptions(body, runnable(seen.definition))
        people = named or await self._of_trigger(journey, call.now)
        wanted = WantedRun(
            start=start,
            assumptions=assumptions,
            people=people,
            shown=body.amostra if isinstance(people, Audience) else len(people),
            entry=body.dados or {},
            seed=body.semente,
        )
        found = await self.simulations.run(journey, wanted)
        view = simulated_view(found, seen.definition.passos, billed=self.simulations.billed, start=start)
        kinds = {step.id: step.tipo.value for step in seen.definition.passos}
        steps = {step.id: (step.texto or "", _hidden(step.variaveis, call)) for step in seen.definition.passos}
        messages = await self._messages(journey, found.trails, steps)
        view["amostra"] = [way_view(trail, kinds, messages) for trail in found.trails]
        return Reply(200, {"versao": journey.versao, "semente": body.semente, **view})

    async def _named(self, journey: Journey, given: SimulatedAudience, now: datetime) -> Audience | list[str] | None:
        """Whom the body names; None: the trigger says. Raises `Problem`."""
        named = [name for name in ("contact_id", "contact_ids", "segment_id", "list_id") if getattr(given, name)]
        if len(named) > 1:
            detail = "Give one of `contactId`, `contactIds`, `segmentId` and `listId`."
            raise field_refused("AUDIENCE_INVALID", "/publico", detail)
        if given.contact_id is not None:
            return await self._known(journey, {given.contact_id: "publico.contactId"})
        if given.contact_ids is not None:
            places = {each: f"publico.contactIds.{place}" for place, each in reversed([*enumerate(given.contact_ids)])}
            return await self._known(journey, places)
        return await self._audience(journey, given.list_id, given.segment_id, now) if named else None

    async def _of_trigger(self, journey: Journey, now: datetime) -> Audience:
        """Whom the trigger names. Raises `Problem`."""
        trigger = journey.definition().gatilho
        list_id = trigger.list_id if trigger.tipo is TriggerKind.LISTA else None
        segment_id = trigger.segment_id if trigger.tipo is TriggerKind.SEGMENTO else None
        return await self._audience(journey, list_id, segment_id, now)

    async def _audience(self, journey: Journey, list_id: str | None, segment_id: str | None, now: datetime) -> Audience:
        before_id, where = lowest_id(CONTACT, now), (journey.organization_id, journey.env)
        if list_id is not None:
            if await lists.get(self.journeys.database, *where, list_id) is None:
                raise reference_not_found("publico.listId", LIST, list_id, journey.env)
            return Audience(before_id=before_id, list_id=list_id)
        if segment_id is not None:
            segment = await segments.get(self.journeys.database, *where, segment_id)
            if segment is None:
                raise reference_not_found("publico.segmentId", SEGMENT, segment_id, journey.env)
            return Audience(before_id=before_id, tree=segment.tree)
        detail = "The trigger of the journey names nobody: say in `publico` who would enter."
        raise field_refused("AUDIENCE_INVALID", "/publico", detail)

    async def _known(self, journey: Journey, places: Mapping[str, str]) -> list[str]:
        """These contacts; `places`: the field that names each."""
        where = (journey.organization_id, journey.env)
        known = {each.id for each in await contacts.by_ids(self.journeys.database, *where, list(places))}
        for contact_id, place in places.items():
            if contact_id not in known:
                raise reference_not_found(place, CONTACT, contact_id, journey.env)
        return list(places)

    async def _messages(
        self, journey: Journey, trails: Sequence[Trail], steps: Mapping[str, tuple[str, Mapping[str, str]]]
    ) -> dict[int, dict[str, Any]]:
        """By line, the message that a contact would get there; of the first ones.

        `steps`: the text of each, and the placeholders that stay.
        """
        sent = [line for trail in trails for line in trail.lines if line.send is not None]
        found = {}
        for line in sent[:MOST_MESSAGES]:
            shown = await self._message(journey, line, *steps[line.step_id])
            if shown is not None:
                found[id(line)] = shown
        return found

    async def _message(
        self, journey: Journey, line: TrailLine, text: str, hidden: Mapping[str, str]
    ) -> dict[str, Any] | None:
        assert line.send is not None and line.offer is not None  # noqa: S101, PT018 - of a line that sends
        content, template_id = line.send.content, None
        if isinstance(content, ChatappSend):
            template_id = content.template_id
            templates = self.journeys.dependencies.directories.templates
            template = await templates.get((journey.organization_id, journey.env, template_id))
            text = "" if template is None else body_text(template.components)
        elif not isinstance(content, SmsSend | RcsSend):
            return None
        text = _shown(text, {**line.send.values, **hidden})
        return message_view(line, line.offer, text, template_id=template_id, billed=self.simulations.billed)


def _shown(text: str, values: Mapping[str, str]) -> str:
    """The text of a message, or the beginning of a very long one. A placeholder without a value stays."""
    found = measures(text)
    values = {name: values.get(name, f"{{{{{name}}}}}") for name in found.times}
    if found.filled_length(values) > LONGEST_SHOWN:
        each = LONGEST_SHOWN // found.times.total() + 1
        values = {name: value[:each] for name, value in values.items()}
    return filled(text, values)[:LONGEST_SHOWN]


def _hidden(variables: Mapping[str, VariableSource], call: Call) -> dict[str, str]:
    """The placeholders that stay as they are: what would stand in them is not for this caller (C2.5)."""
    kept = set(variables)
    if call.can(CONTACTS):
        kept = set() if call.can(PII) else {name for name, each in variables.items() if each.campo in MASKED}
    return {name: f"{{{{{name}}}}}" for name in kept}


def _assumptions(body: JourneySimulation, plan: RunnableJourney) -> Assumptions:
    """What a body assumes; 422 where it names no step, no way out of one, or rates that nothing has."""
    rates = {} if body.taxas is None else body.taxas.given()
    given = body.passos or {}
    wrong: list[FieldError] = []
    for step_id, said in given.items():
        step, place = plan.steps.get(step_id), pointer(("passos", step_id), {"passos": given})
        if step is None:
            wrong.append(FieldError(place, "NOT_ALLOWED", "must be the id of a step of the journey"))
            continue
        if said.taxas is not None and not has_rates(step):
            wrong.append(FieldError(f"{place}/taxas", "NOT_ALLOWED", "must be of a step that sends or calls"))
        if said.ramo is not None and said.ramo not in ways(step):
            among = ", ".join(ways(step))
            message = f"must be one of {among}" if among else "must be of a step with several ways out"
            wrong.append(FieldError(f"{place}/ramo", "NOT_ALLOWED", message))
    assumptions = Assumptions(
        rates,
        {step_id: said.taxas.given() for step_id, said in given.items() if said.taxas is not None},
        {step_id: said.ramo for step_id, said in given.items() if said.ramo is not None},
    )
    if not wrong:
        wrong = _exceeding(assumptions, rates)
    if wrong:
        raise validation_error(wrong)
    return assumptions


def _exceeding(assumptions: Assumptions, rates: Mapping[Rate, float]) -> list[FieldError]:
    places = {"": "/taxas"} if rates else {}
    places |= {step_id: f"/passos/{step_id}/taxas" for step_id in assumptions.of_steps}
    message = (
        "must have `entregue`, `falha` and `indeterminado` that are 1 at most together; `entregue` is 1 by default"
    )
    return [
        FieldError(place, "OUT_OF_RANGE", message)
        for step_id, place in places.items()
        if exceeds(assumptions.rates_of(step_id))
    ]


def simulation_routes(journeys: Resource[Journey], simulations: JourneySimulations) -> tuple[Route, ...]:
    """The one operation. It keeps nothing: a repeat under an `Idempotency-Key` is another run, with the same answer."""
    operations = SimulationOperations(journeys, simulations)
    return (
        journeys.route(
            "POST /v2/journeys/{id}/simulate", "simulateJourney", "Try a journey without any effect",
            operations.simulate, scope=journeys.group.reads, rate_class="bulk", body=JourneySimulation,
            responses={200: SimulationOut}, versioned=False, matches=True, idempotency=Idempotency.NONE,
            errors=(
                "JORNADA_COM_PROBLEMAS", "METADATA_INVALID", "REFERENCE_NOT_FOUND", "AUDIENCE_INVALID",
            ),
            description=(
                "On virtual time, under the given assumptions: nobody is sent to, nothing is stored or billed. "
                "Entries before, other journeys and what others send meanwhile are left out. What contacts hold stands "
                "in the texts of messages for a credential with `contacts:read`."
            ),
        ),
    )  # fmt: skip
