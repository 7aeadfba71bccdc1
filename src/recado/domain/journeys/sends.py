"""Whether a send leaves now, later or not at all: silence, frequency cap, and what its message lacks (C9.8, C9.9)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from recado.domain.contacts.contact import Contact
from recado.domain.dispatch.quiet_hours import QuietHours, quiet_until
from recado.domain.journeys.execution import Awaited, SkipReason
from recado.domain.journeys.field_values import Entry
from recado.domain.journeys.outcomes import Await, SendMessage, SkipSend
from recado.domain.journeys.steps import EmailSend, SendStep
from recado.domain.journeys.variables import filled_content, variable_values


class QuietWindow(NamedTuple):
    """Quiet hours and the zone of their clock: the journey's (`silencio`), or the organization's."""

    hours: QuietHours
    zone: ZoneInfo


@dataclass(frozen=True, slots=True)
class SendFacts:
    """What is known where a send is due.

    `most`: messages of journeys that the contact may have in the days of the cap; None: there is no cap. `recent`: how
    many it has, counted as C9.8.2 says. `obstacle`: what makes the message impossible, by the state of its template,
    number, address or content.
    """

    silences: Sequence[QuietWindow] = ()
    most: int | None = None
    recent: int = 0
    obstacle: SkipReason | None = None


def decide_send(
    step: SendStep, facts: SendFacts, contact: Contact, entry: Entry, zone: ZoneInfo, now: datetime, *, test: bool
) -> SendMessage | SkipSend | Await:
    """Hold, skip or send. `test`: the execution of a test, which knows neither silence nor cap.

    Everything but the silence is looked at when it is over: what is true then counts.
    """
    if not test and (until := silent_until(facts.silences, now)) is not None:
        return Await(Awaited.SILENCE_END, until)
    capped = not test and facts.most is not None and facts.recent >= facts.most
    reason = _no_address(step, contact) or facts.obstacle or (SkipReason.FREQUENCY_CAP if capped else None)
    if reason is not None:
        return SkipSend(reason, step.next)
    values = variable_values(step, contact, entry, zone)
    if values is None:
        return SkipSend(SkipReason.VARIABLE_EMPTY, step.next)
    return SendMessage(filled_content(step.content, values), values, step.next)


def silent_until(silences: Sequence[QuietWindow], now: datetime) -> datetime | None:
    """The later end of those that hold `now`; None when none does. Then it is asked again: another may have begun."""
    return max((end for each in silences if (end := quiet_until(each.hours, each.zone, now)) is not None), default=None)


def counts_after(days: int, now: datetime) -> datetime:
    """Messages count against a cap of so many days of 24 hours that were made later than this."""
    return now - timedelta(days=days)


def _no_address(step: SendStep, contact: Contact) -> SkipReason | None:
    if isinstance(step.content, EmailSend):
        return None if contact.email else SkipReason.NO_EMAIL
    return None if contact.phone else SkipReason.NO_PHONE
