"""What an execution does next in the step where it stands: one pure function, from step, facts and time to a value.

Nothing is remembered between two calls: the same facts lead to the same decision, after a crash too. Whoever waits
asks again when the moment has come, or when a fact has changed; whoever goes on arrives at the next step now.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar
from zoneinfo import ZoneInfo

from recado.domain.contacts.consent import ConsentStatus
from recado.domain.contacts.contact import Contact
from recado.domain.dispatch.retry import retry_delay
from recado.domain.journeys.execution import Awaited, EndReason, TrailResult
from recado.domain.journeys.field_conditions import field_holds
from recado.domain.journeys.field_values import OF_ENTRY, Entry, field_value
from recado.domain.journeys.outcomes import Advance, Await, Decision, EndExecution, RetryStep
from recado.domain.journeys.sends import SendFacts, decide_send
from recado.domain.journeys.signal_conditions import EarlierSend, decide_signal
from recado.domain.journeys.splits import branch_of
from recado.domain.journeys.steps import (
    EndStep,
    FieldCondition,
    SendStep,
    SignalCondition,
    Split,
    Step,
    WaitForStep,
    WaitUntilStep,
    WebhookStep,
)
from recado.domain.journeys.waits import wait_end
from recado.domain.journeys.webhook_calls import LastCall, decide_webhook

F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class ContactConsent:
    """All that most steps ask of a contact that there is."""

    opt_in_status: ConsentStatus


KnownContact = Contact | ContactConsent


@dataclass(slots=True, kw_only=True)
class Facts:
    """What is known of an execution and of what its step asks for; the rest keeps its default.

    Not frozen only because a frozen one takes twice as long to make, for each step; nothing changes one.

    `arrived_at`: when it came to the step. `zone`: the journey's (`fusoHorario`). `contact`: None when it was deleted;
    the whole of it where the step reads it (`reads_contact`).
    `registered`: the opt-out registry holds the contact's phone or address. `test`: it is one, and `hurried`: one that
    leaves waits out (`pularEsperas`).
    For a send, `send`; for a signal condition, `earlier` (None: never passed); for a webhook step `last_call`, and
    whether the subscription can be called. What the step needs and nobody has read raises LookupError: nothing is sent
    for want of a fact.
    """

    execution_id: str
    arrived_at: datetime
    zone: ZoneInfo
    contact: KnownContact | None
    registered: bool
    entry: Entry = field(default_factory=dict)
    test: bool = False
    hurried: bool = False
    send: SendFacts | None = None
    earlier: EarlierSend | None = None
    last_call: LastCall | None = None
    webhook_callable: bool | None = None


def decide(step: Step, facts: Facts, now: datetime) -> Decision:
    """What the execution does now."""
    contact = facts.contact
    left = left_because(contact, registered=facts.registered)
    if left is not None or contact is None:
        return EndExecution(left or EndReason.CONTACT_DELETED)
    match step:
        case SendStep():
            return decide_send(step, _read(facts.send), _whole(contact), facts.entry, facts.zone, now, test=facts.test)
        case WaitForStep() | WaitUntilStep():
            until = wait_end(step, facts.zone, facts.arrived_at, hurried=facts.hurried)
            return Advance(step.next, TrailResult.WAITED) if now >= until else Await(Awaited.TIME, until)
        case SignalCondition():
            return decide_signal(step, facts.earlier, now, hurried=facts.hurried)
        case FieldCondition():
            held = field_value(step.field, contact if isinstance(contact, Contact) else None, facts.entry)
            if field_holds(held, step.operator, step.value, facts.zone):
                return Advance(step.yes, TrailResult.YES)
            return Advance(step.no, TrailResult.NO)
        case Split():
            branch = branch_of(step, facts.execution_id)
            return Advance(branch.next, branch.name)
        case WebhookStep():
            return decide_webhook(step, facts.last_call, now, callable_now=_read(facts.webhook_callable))
        case EndStep():
            return EndExecution(EndReason.FINISHED)


def reads_contact(step: Step) -> bool:
    """Whether a step looks at more of the contact than its consent."""
    return isinstance(step, SendStep) or (isinstance(step, FieldCondition) and not step.field.startswith(OF_ENTRY))


def left_because(contact: KnownContact | None, *, registered: bool) -> EndReason | None:
    """Why its contact goes no further, whatever the step: it is gone, or has refused; None when it does go on."""
    if contact is None:
        return EndReason.CONTACT_DELETED
    return EndReason.OPTED_OUT if registered or contact.opt_in_status is ConsentStatus.DENIED else None


def _whole(contact: KnownContact) -> Contact:
    if not isinstance(contact, Contact):
        raise LookupError("the step reads its contact, of which only the consent was read")
    return contact


def _read(fact: F | None) -> F:
    if fact is None:
        raise LookupError("the step needs a fact that was not read")
    return fact


def after_internal_failure(failures: int, now: datetime) -> RetryStep | EndExecution:
    """What follows when the step failed for a cause of our own, `failures` (≥ 1) times in a row (C9.12)."""
    delay = retry_delay(failures)
    if delay is None:
        return EndExecution(EndReason.INTERNAL_FAILURE)
    return RetryStep(now + timedelta(seconds=delay), failures)
