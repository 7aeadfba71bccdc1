"""Gathers what executions decide by, for a whole turn at once (C9.6, C9.8): contacts, earlier sends, counts."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from recado.domain.contacts.contact import Contact
from recado.domain.dispatch.quiet_hours import QuietHours
from recado.domain.journeys.decide import ContactConsent, Facts, KnownContact, reads_contact
from recado.domain.journeys.execution import SkipReason
from recado.domain.journeys.graph import StepChannel, StepSignal
from recado.domain.journeys.sends import QuietWindow, SendFacts, counts_after
from recado.domain.journeys.signal_conditions import ANSWERED_ON, EarlierSend, SendState
from recado.domain.journeys.steps import EmailSend, SendStep, SignalCondition, WebhookStep
from recado.domain.journeys.webhook_calls import LastCall
from recado.services.journeys.standing import Standing
from recado.storage.access.organizations import Organization, OrganizationDirectory
from recado.storage.core.statements.rows import Executor
from recado.storage.email import suppressions
from recado.storage.journeys import execution_facts, step_calls
from recado.storage.journeys.execution_facts import ContactKey, EventQuestion, PassedSend, ReplyQuestion


async def read_people(executor: Executor, standing: Sequence[Standing], *, held: bool = False) -> None:
    """Tell each of its contact: the whole of it where its step reads that, else what it consented to.

    `held`: they stay as they are until the commit, and those are told nothing whose contact somebody is changing.
    """
    for reading, read in (True, execution_facts.contacts_of), (False, execution_facts.consents_of):
        asking = [each for each in standing if reads_contact(each.step) is reading]
        keys = list(dict.fromkeys([each.contact_key for each in asking]))
        found: Mapping[ContactKey, tuple[KnownContact, bool]] = await read(executor, keys, held=held) if keys else {}
        for each in asking:
            each.contact, each.registered = found.get(each.contact_key, _NOBODY)


_NOBODY: Final = (None, False)


async def goals_reached(executor: Executor, standing: Sequence[Standing]) -> set[str]:
    """The executions whose contact has done since their begin what is the goal of their journey (C9.12)."""
    asking = [(each, goal) for each in standing if (goal := each.journey.plan.goal) is not None]
    if not asking:
        return set()
    questions = [EventQuestion(each.contact_key, goal, each.execution.started_at) for each, goal in asking]
    return {asking[place][0].execution.id for place in await execution_facts.first_events(executor, questions)}


class RoundFacts:
    """What was read for the steps at which the executions of a turn stand now."""

    def __init__(
        self,
        silences: Mapping[str, Sequence[QuietWindow]],
        counts: Mapping[str, int],
        earlier: Mapping[str, EarlierSend],
        calls: Mapping[str, tuple[LastCall | None, bool]],
        *,
        suppressed: Collection[str] = (),
        otherwise: EarlierSend | None = None,
    ) -> None:
        """By execution; `silences`: by organization. `calls`: the last one, and whether another may be made.

        `suppressed`: those whose e-mail goes to nobody; `otherwise`: how the earlier sends stand that are not among
        `earlier`.
        """
        self._suppressed = suppressed
        self._otherwise = otherwise
        self._silences = silences
        self._counts = counts
        self._earlier = earlier
        self._calls = calls

    def of(self, standing: Standing, *, pending: int = 0) -> Facts:
        """Of one. `pending`: messages to its contact that count, and that this turn is about to make."""
        execution, journey, step = standing.execution, standing.journey, standing.step
        send, earlier, last_call, webhook_callable = None, None, None, None
        if isinstance(step, SendStep):
            silences = list(self._silences.get(execution.organization_id, ()))
            if journey.plan.silence is not None:
                silences.append(QuietWindow(journey.plan.silence, journey.zone))
            cap = journey.plan.cap
            recent = 0 if cap is None else self._counts.get(execution.id, 0) + pending
            obstacle = SkipReason.EMAIL_SUPPRESSED if execution.id in self._suppressed else None
            send = SendFacts(silences, None if cap is None else cap.mensagens, recent, obstacle)
        elif isinstance(step, SignalCondition):
            earlier = self._earlier.get(execution.id, self._otherwise)
        elif isinstance(step, WebhookStep):
            last_call, webhook_callable = self._calls[execution.id]
        return Facts(
            execution_id=execution.id,
            arrived_at=execution.arrived_at,
            zone=journey.zone,
            contact=standing.contact,
            registered=standing.registered,
            entry=execution.entrada,
            test=execution.teste,
            hurried=execution.hurried,
            send=send,
            earlier=earlier,
            last_call=last_call,
            webhook_callable=webhook_callable,
        )


JUST_SENT: Final = RoundFacts({}, {}, {}, {}, otherwise=EarlierSend(SendState.QUEUED, None))
"""What is known, without a look, where each has just sent what its step may ask about."""


async def round_facts(
    executor: Executor, organizations: OrganizationDirectory, standing: Sequence[Standing], now: datetime
) -> RoundFacts:
    """Read what these executions need where they stand."""
    unread = [each for each in standing if isinstance(each.contact, ContactConsent) and reads_contact(each.step)]
    if unread:
        await read_people(executor, unread)
    sends = [each for each in standing if isinstance(each.step, SendStep) and not each.execution.teste]
    suppressed = await _suppressed(executor, [each for each in standing if isinstance(each.step, SendStep)])
    silences = {}
    for organization_id in {each.execution.organization_id for each in sends}:
        silences[organization_id] = quiet_windows(await organizations.get(organization_id))
    capped = [
        (each.execution.id, each.contact_key, counts_after(cap.dias, now))
        for each in sends
        if (cap := each.journey.plan.cap) is not None
    ]
    counts = await execution_facts.capped(executor, [(key, after) for _, key, after in capped])
    return RoundFacts(
        silences,
        {execution_id: count for (execution_id, _, _), count in zip(capped, counts, strict=True)},
        await _earlier_sends(executor, standing),
        await _calls(executor, standing),
        suppressed=suppressed,
    )


def quiet_windows(organization: Organization | None) -> list[QuietWindow]:
    """The quiet hours of an organization, if it has some."""
    if organization is None or organization.quiet_start is None or organization.quiet_end is None:
        return []
    hours = QuietHours(organization.quiet_start, organization.quiet_end)
    return [QuietWindow(hours, ZoneInfo(organization.time_zone))]


async def _suppressed(executor: Executor, sends: Sequence[Standing]) -> set[str]:
    """The executions that are to send an e-mail to an address which gets none (C10.5)."""
    asking = [
        (each.execution, each.contact.email)
        for each in sends
        if isinstance(each.step, SendStep)
        and isinstance(each.step.content, EmailSend)
        and isinstance(each.contact, Contact)
        and each.contact.email
    ]
    addresses = [(execution.organization_id, execution.env, email) for execution, email in asking]
    found = await suppressions.suppressed_of(executor, addresses) if addresses else set()
    return {asking[place][0].id for place in found}


async def _earlier_sends(executor: Executor, standing: Sequence[Standing]) -> dict[str, EarlierSend]:
    """What conditions on signals look at."""
    asking = [(each, each.step) for each in standing if isinstance(each.step, SignalCondition)]
    keys = [(each.execution.organization_id, each.execution.id, step.about) for each, step in asking]
    passed = await execution_facts.passed_sends(executor, keys)
    found = [
        (each, step, send)
        for (each, step), key in zip(asking, keys, strict=True)
        if (send := passed.get(key) or _left_out_now(each, step)) is not None
    ]
    seen = await _signals(executor, found)
    return {
        each.execution.id: EarlierSend(send.state, send.since, seen[place])
        for place, (each, _, send) in enumerate(found)
    }


def _left_out_now(standing: Standing, condition: SignalCondition) -> PassedSend | None:
    """The send as this very turn passed it, which no row tells yet: left out, as facts are read before its messages."""
    return next(
        (PassedSend(SendState.SKIPPED, step.at) for step in standing.passed if step.step_id == condition.about), None
    )


async def _calls(executor: Executor, standing: Sequence[Standing]) -> dict[str, tuple[LastCall | None, bool]]:
    """What webhook steps decide by."""
    asking = [(each.execution, each.step) for each in standing if isinstance(each.step, WebhookStep)]
    keys = [(it.organization_id, it.env, it.id, step.id, step.webhook_id) for it, step in asking]
    found = await step_calls.facts_of(executor, keys)
    return {execution.id: facts for (execution, _), facts in zip(asking, found, strict=True)}


async def _signals(
    executor: Executor, found: Sequence[tuple[Standing, SignalCondition, PassedSend]]
) -> list[dict[StepSignal, datetime]]:
    """The signal that each condition waits for, if it was given, and when first."""
    seen: list[dict[StepSignal, datetime]] = [{} for _ in found]
    clicks: dict[int, str] = {}
    replies: dict[int, ReplyQuestion] = {}
    events: dict[int, EventQuestion] = {}
    for place, (standing, step, send) in enumerate(found):
        if send.since is None:
            continue
        match step.signal:
            case StepSignal.ENTREGUE:
                arrived = [at for at in (send.delivered_at, send.read_at) if at is not None]
                if arrived:
                    seen[place][step.signal] = min(arrived)
            case StepSignal.LIDO if send.read_at is not None:
                seen[place][step.signal] = send.read_at
            case StepSignal.CLICOU if send.message_id is not None:
                clicks[place] = send.message_id
            case StepSignal.RESPONDEU if send.channel is not None:
                # Whoever answers an SMS answers a route that all share; of a number it is that one (C9.6).
                sender_id = send.sender_id if send.channel == StepChannel.CHATAPP else None
                channels = ANSWERED_ON.get(send.channel, ())
                replies[place] = ReplyQuestion(standing.contact_key, send.since, sender_id, channels)
            case StepSignal.CONVERTEU if step.event is not None:
                events[place] = EventQuestion(standing.contact_key, step.event, send.since)
    clicked = await execution_facts.first_clicks(executor, list(clicks.values()))
    for place, message_id in clicks.items():
        if message_id in clicked:
            seen[place][StepSignal.CLICOU] = clicked[message_id]
    for asked, answers, signal in (
        (list(replies), await execution_facts.first_replies(executor, list(replies.values())), StepSignal.RESPONDEU),
        (list(events), await execution_facts.first_events(executor, list(events.values())), StepSignal.CONVERTEU),
    ):
        for n, at in answers.items():
            seen[asked[n]][signal] = at
    return seen
