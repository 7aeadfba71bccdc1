"""Gathers the contacts of a dry run into kinds: those whom no step would tell apart by what it comes to (C9.17).

What a step looks at may differ in each contact, as a name does; what it comes to rarely does. So each contact is asked
for that, and those with the same answers are one kind, however many there are.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from recado.domain.billing.prices import region_of
from recado.domain.channels.rcs import is_rich
from recado.domain.contacts.contact import Contact
from recado.domain.core.errors import Problem
from recado.domain.journeys.field_conditions import field_holds
from recado.domain.journeys.field_values import OF_ENTRY, Entry, contact_value
from recado.domain.journeys.runnable import RunnableJourney
from recado.domain.journeys.steps import ContactVariable, EmailSend, FieldCondition, RcsSend, SendStep, SmsSend
from recado.domain.journeys.variables import variable_values
from recado.domain.messages.placeholders import filled
from recado.services.messages.sms_content import SmsForm
from recado.storage.journeys.simulation_facts import FoundKind

MOST_KINDS: Final = 50_000
MOST_BYTES: Final = 96 * 1024 * 1024
"""What the kinds of a run may take together, about: one contact of each, with what its journey looks at."""

ANSWER_BYTES: Final = 8  # that an answer takes in a kind
SEND_BYTES: Final = 70  # that what each send offers it takes

MOST_IDS: Final = 20  # that are kept of each of the first kinds
MANY: Final = 100  # kinds; of those that are found later one id each is kept

Answer = Callable[[Contact], Hashable]


@dataclass(frozen=True, slots=True)
class KindAnswers:
    """By step, what it comes to. `places`: of the steps among the values, the same for all kinds."""

    places: Mapping[str, int]
    values: tuple[Hashable, ...]

    def get(self, step_id: str) -> Hashable:
        """What this step comes to; None where that is the same for all."""
        place = self.places.get(step_id)
        return None if place is None else self.values[place]


@dataclass(slots=True)
class GatheredKind:
    """`contact`: one of them, as far as the journey looks at it. `ids`: some of theirs.

    `answers`: by step, what it comes to for them, where that is not the same for all; None: nobody has asked.
    `suppressed`: their address gets no e-mail.
    """

    contact: Contact
    registered: bool
    recent: tuple[datetime, ...]
    count: int = 0
    ids: list[str] = field(default_factory=list)
    answers: KindAnswers | None = None
    suppressed: bool = False


class Gathering:
    """The kinds found so far. `shorten`: of links in the texts of these sends (`tracked`), to count their segments."""

    def __init__(
        self,
        plan: RunnableJourney,
        zone: ZoneInfo,
        entry: Entry,
        *,
        tracked: frozenset[str] = frozenset(),
        shorten: Callable[[str], str] | None = None,
    ) -> None:
        answers = dict(_answers(plan, zone, entry, tracked, shorten))
        self._answers = list(answers.values())
        self._places = {step_id: place for place, step_id in enumerate(answers)}
        sends = sum(isinstance(step, SendStep) for step in plan.steps.values())
        self._kind_bytes = ANSWER_BYTES * len(answers) + SEND_BYTES * sends
        self._kinds: dict[Hashable, GatheredKind] = {}
        self._bytes = 0

    @property
    def kinds(self) -> Sequence[GatheredKind]:
        """In the order in which they were found."""
        return list(self._kinds.values())

    @property
    def full(self) -> bool:
        """Whether there is no room for more."""
        return len(self._kinds) >= MOST_KINDS or self._bytes >= MOST_BYTES

    def add(self, found: FoundKind, *, suppressed: bool = False) -> None:
        """Some contacts more, while it is not full. `suppressed`: their address gets no e-mail."""
        if self.full:
            return
        contact = found.contact
        answers = tuple([answer(contact) for answer in self._answers])
        key = (contact.opt_in_status, region_of(contact.phone), found.registered, found.recent, suppressed, answers)
        kind = self._kinds.get(key)
        if kind is None:
            kind = GatheredKind(contact, found.registered, found.recent, suppressed=suppressed)
            kind.answers = KindAnswers(self._places, answers)
            self._kinds[key] = kind
            self._bytes += found.size + self._kind_bytes
        kind.count += found.count
        most = MOST_IDS if len(self._kinds) <= MANY else 1
        if len(kind.ids) < most:
            kind.ids.extend(found.ids[: most - len(kind.ids)])


def _answers(
    plan: RunnableJourney,
    zone: ZoneInfo,
    entry: Entry,
    tracked: frozenset[str],
    shorten: Callable[[str], str] | None,
) -> Iterator[tuple[str, Answer]]:
    """What each step comes to for a contact; of steps for which it is the same for all, nothing."""
    for step in plan.steps.values():
        match step:
            case FieldCondition() if not step.field.startswith(OF_ENTRY):
                yield step.id, _condition(step, zone)
            case SendStep() if _differs(step):
                yield step.id, _send(step, zone, entry, shorten if step.id in tracked else None)


def _differs(step: SendStep) -> bool:
    """Whether it may come to one thing for this contact, and to another for that."""
    variables = step.variables.values()
    return isinstance(step.content, EmailSend) or any(isinstance(each, ContactVariable) for each in variables)


def _condition(step: FieldCondition, zone: ZoneInfo) -> Answer:
    return lambda contact: field_holds(contact_value(step.field, contact), step.operator, step.value, zone)


def _send(step: SendStep, zone: ZoneInfo, entry: Entry, shorten: Callable[[str], str] | None) -> Answer:
    """Whether a variable is empty (None), or the segments of the text; of a template, that it is complete.

    Of an e-mail also whether there is an address (0: none).
    """
    content, form = step.content, SmsForm()

    def answer(contact: Contact) -> int | None:
        if isinstance(content, EmailSend) and not contact.email:
            return 0
        values: Mapping[str, str] | None = variable_values(step, contact, entry, zone)
        if values is None:
            return None
        try:
            match content:
                case SmsSend():
                    return form.measured(filled(content.text, values), shorten).segments
                case RcsSend():  # by what its price is told apart
                    rich = is_rich(filled(content.text, values), card=content.card is not None, suggestions=False)
                    sms = filled(content.fallback, values) if content.fallback else None
                    return 1 + rich + (0 if sms is None else 2 * form.measured(sms, shorten).segments)
                case _:
                    return 1
        except Problem:
            return 0

    return answer
