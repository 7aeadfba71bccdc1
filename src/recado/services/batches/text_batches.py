"""What batches of texts with placeholders share on the channels whose messages leave by a route (C15.5, C16, C17).

A channel says what its contents are; by what its routes differ is data (`RoutedTexts`).
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Generic, NamedTuple, TypeVar

from recado.domain.channels.policy import Policy
from recado.domain.core.errors import Problem
from recado.domain.core.json_text import object_of
from recado.domain.core.steps import Steps
from recado.domain.links.tracked import MessageLinks, TrackedLink
from recado.domain.messages.message import Priority
from recado.domain.senders.sender import route_sender
from recado.services.batches.batch_draft import BatchDraft
from recado.services.batches.channel_batches import BatchTerms, MessageCopy, Misfit, Replaced, Sort, Tracked, Where
from recado.services.batches.placeholder_text import TextTerms
from recado.services.messages.acceptance_rules import due_time
from recado.storage.access.organizations import Organization, OrganizationDirectory
from recado.storage.batches.batch_rows import MessageKind, Recipients
from recado.storage.messages.resends import Old

STEP: Final = 100
"""Texts that get their links in one step of the event loop: some milliseconds."""

R = TypeVar("R", bound=StrEnum)

Details = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedTexts(Generic[R]):
    """By what such a channel differs. `route_in`, `category_in`: by the details of a message.

    `asks_grant`, `region`: of a route, as of `MessageKind`. `check`: whether the organization may send by a route, else
    it raises `Problem`.
    """

    policy: Policy
    no_such_message: str
    route_in: Callable[[Details], R]
    category_in: Callable[[Details], str]
    asks_grant: Callable[[R], bool]
    region: Callable[[R], str | None] = lambda route: None
    check: Callable[[R, Organization], None] = lambda route, organization: None

    def kind(self, message_type: str, details: Details, priority: Priority) -> MessageKind:
        """What a message of these details obeys and costs."""
        route, category = self.route_in(details), self.category_in(details)
        obeys = self.policy.obeys(message_type, category, priority)
        price_kind = self.policy.price_kind(category, False)
        return MessageKind(obeys, price_kind, self.asks_grant(route), self.region(route))


class Said(NamedTuple):
    """What one message says, its links included. `payload`, `details`: JSON texts."""

    payload: str | None
    units: int
    details: str | None


Say = Callable[[str | None, str | None, MessageLinks], Said]
"""Makes what a recipient is told of its own payload and details, JSON texts both; raises `Problem` where it cannot."""


class TextBatches(Generic[R]):
    """`sends_in`: the environments that have a provider. `links`: makes those of one message (C27.1)."""

    texts: RoutedTexts[R]

    def __init__(
        self, organizations: OrganizationDirectory, *, sends_in: Collection[str], links: Callable[[], MessageLinks]
    ) -> None:
        self._organizations = organizations
        self.sends_in = frozenset(sends_in)
        self._links = links

    @property
    def channel(self) -> str:
        return self.texts.policy.channel

    @property
    def no_such_message(self) -> str:
        return self.texts.no_such_message

    async def kind(self, where: Where, priority: Priority, sort: Sort) -> MessageKind:
        return self.texts.kind(sort.type, object_of(sort.details), priority)

    def tracked(self, payload: str | None, recipients: Recipients, replaced: Replaced) -> Steps[Tracked | None]:
        """What takes the place of another message says what that did, with links of its own."""
        places: list[int] = []
        told: list[Said] = []
        links: list[Sequence[TrackedLink]] = []
        left_out: Counter[str] = Counter()
        say = self._saying(payload)
        for place in range(len(recipients)):
            if place and not place % STEP:
                yield
            own = None if recipients.payloads is None else recipients.payloads[place]
            details = None if recipients.details is None else recipients.details[place]
            of_message = self._links()
            try:
                if recipients.replaces is None:
                    told.append(say(own, details, of_message))
                else:
                    units = 1 if recipients.units is None else recipients.units[place]
                    before = replaced.get(recipients.replaces[place], ())
                    renewed = None if own is None else of_message.in_place_of(own, before)
                    told.append(self._again(Said(renewed, units, details)))
            except Problem as problem:  # short links were shorter when the batch was accepted
                left_out[problem.code] += 1
                continue
            places.append(place)
            links.append(of_message.rows)
        left = replace(
            recipients.only(places) if left_out else recipients,
            payloads=[each.payload for each in told],
            units=None if all(each.units == 1 for each in told) else [each.units for each in told],
            details=[each.details for each in told],
        )
        return Tracked(left, links, left_out)

    async def suppressed(self, where: Where, addresses: Sequence[str]) -> Collection[str]:
        return ()

    async def check_sender(self, where: Where, sender_id: str, *, field: str, sends: bool) -> None:
        """Nobody names what such a message leaves from."""

    async def copies(
        self, where: Where, olds: Sequence[Old], sender_id: str | None, now: datetime
    ) -> Mapping[str, MessageCopy | Misfit]:
        organization, texts = await self._organizations.of_caller(where[0]), self.texts
        found: dict[str, MessageCopy | Misfit] = {}
        for old in olds:
            details = object_of(old.details)
            route = texts.route_in(details)
            try:
                texts.check(route, organization)
            except Problem as problem:
                found[old.id] = Misfit(problem.code, problem.detail)
                continue
            found[old.id] = MessageCopy(
                route_sender(self.channel, where[1], route),
                None,
                texts.kind(old.type, details, Priority.BULK),
                texts.policy.ttl(texts.category_in(details), Priority.BULK),
                organization.held_ms,
            )
        return found

    # What a channel says --------------------------------------------------------------------------------------------

    def _saying(self, payload: str | None) -> Say:
        """Of the messages of a block; `payload`: their batch's."""
        raise NotImplementedError

    def _again(self, said: Said) -> Said:
        """What a message says that takes the place of one that said this."""
        return said

    def _terms(
        self, draft: BatchDraft, organization: Organization, form: Details, told: TextTerms, now: datetime
    ) -> BatchTerms:
        """`form`: of the batch, as the details of a message have it; `told`: what recipients are."""
        texts = self.texts
        route, category = texts.route_in(form), texts.category_in(form)
        return BatchTerms(
            sender_id=route_sender(self.channel, draft.env, route),
            due_at=due_time(draft.message(), now),
            ttl=texts.policy.ttl(category, draft.priority),
            held_ms=organization.held_ms,
            obeys=texts.policy.obeys(draft.type, category, draft.priority),
            granted_only=texts.asks_grant(route) and organization.require_granted_for_marketing,
            region=texts.region(route),
            **told,
        )
