"""What makes a chat-app message acceptable: its number, its template, and the window of 24 hours (C15.2)."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

from recado.domain.billing.prices import Price, region_of
from recado.domain.channels.chatapp import CHATAPP, POLICY
from recado.domain.channels.policy import Obeys
from recado.domain.core.clock import Clock
from recado.domain.core.counting import counted
from recado.domain.core.errors import Problem, field_refused
from recado.domain.core.ids import FLOW, MESSAGE, NUMBER, IdSource
from recado.domain.core.ids import TEMPLATE as TEMPLATE_ID
from recado.domain.core.references import reference_not_found, wrong_reference
from recado.domain.flows.flow import FlowStatus
from recado.domain.messages.message import Priority
from recado.domain.senders.number import IN_SERVICE, what_to_do
from recado.domain.templates.template import TemplateCategory, TemplateStatus
from recado.domain.templates.template_content import header_media, header_takes_text, variable_count
from recado.services.media.media_use import MediaUse, NamedMedia, named_media, no_media
from recado.services.messages.acceptance_rules import due_time, new_message
from recado.services.messages.draft import MessageDraft
from recado.services.messages.replacing import replacement
from recado.storage.access.organizations import Organization, OrganizationDirectory
from recado.storage.billing.prices import PriceDirectory
from recado.storage.flows.flows import FlowDirectory, SendableFlow
from recado.storage.media.media import KeptMedia
from recado.storage.messages.chat_windows import WINDOW, ChatWindows
from recado.storage.messages.messages import NewMessage
from recado.storage.senders.numbers import Number, NumberDirectory
from recado.storage.templates.templates import Template, TemplateDirectory

_MILLISECOND: Final = timedelta(milliseconds=1)
_FLOW_FIELD: Final = "payload.interactive.action.flowId"
_SCREEN_FIELD: Final = "payload.interactive.action.screen"


class ChatAppRules:
    """Makes the row of a chat-app draft, or refuses it.

    `sends_in`: the environments that have a provider; a send in another answers 502 (C33).
    """

    channel = CHATAPP

    def __init__(
        self,
        *,
        numbers: NumberDirectory,
        organizations: OrganizationDirectory,
        templates: TemplateDirectory,
        flows: FlowDirectory,
        windows: ChatWindows,
        ids: IdSource,
        clock: Clock,
        sends_in: Collection[str],
        media: MediaUse | None = None,
        prices: PriceDirectory | None = None,
    ) -> None:
        """`media` None: there are no uploads. `prices` None: nothing is billed (C25.2.4)."""
        self._numbers = numbers
        self._organizations = organizations
        self._templates = templates
        self._flows = flows
        self._windows = windows
        self._ids = ids
        self._clock = clock
        self.sends_in = frozenset(sends_in)
        self._prices = prices
        self._media = media
        self._shapes = TemplateShapes()

    def at_once(self, draft: MessageDraft) -> NewMessage | None:
        """The row, from records at hand; None when one must be read first."""
        key = (draft.organization_id, draft.env)
        number = self._numbers.peek((*key, draft.sender_id))
        organization = self._organizations.peek(draft.organization_id)
        template = None if draft.template_id is None else self._templates.peek((*key, draft.template_id))
        if number is None or organization is None or (template is None and draft.template_id is not None):
            return None
        flow_id = flow_of(draft.type, draft.payload)
        flow = None if flow_id is None else self._flows.peek((*key, flow_id))
        if flow is None and flow_id is not None:
            return None
        price = None
        if self._prices is not None:
            price = self._prices.peek(*key, *_unit(draft, number, template), self._clock.now())
            if price is None:
                return None
        named = media_of(draft, template)
        if named is None:
            return self._checked(draft, number, organization, template, flow, price)
        found = None if self._media is None else self._media.at_hand(*key, draft.sender_id, named)
        if self._media is None or found is None:
            return None
        new = self._checked(draft, number, organization, template, flow, price)
        check_found(self._media, named, template, found)
        return new

    async def read(self, draft: MessageDraft) -> NewMessage:
        """The row, from records that are read first where they are not at hand."""
        key = (draft.organization_id, draft.env)
        number = await self._numbers.get((*key, draft.sender_id))
        organization = await self._organizations.of_caller(draft.organization_id)
        template = None if draft.template_id is None else await self._templates.get((*key, draft.template_id))
        flow_id = flow_of(draft.type, draft.payload)
        flow = None if flow_id is None else await self._flows.get((*key, flow_id))
        price = None
        if self._prices is not None and number is not None:
            price = await self._prices.price_of(*key, *_unit(draft, number, template), self._clock.now())
        new = self._checked(draft, number, organization, template, flow, price)
        if number is not None:
            await check_media(self._media, draft, number, template, sends=draft.env in self.sends_in)
        return new

    def _checked(
        self,
        draft: MessageDraft,
        number: Number | None,
        organization: Organization,
        template: Template | None,
        flow: SendableFlow | None,
        price: Price | None,
    ) -> NewMessage:
        check_references(draft, number, template)
        assert number is not None  # noqa: S101 - what check_references has just made sure
        category = None
        if template is not None:
            category = template.category
            check_variables(draft, template, self._shapes)
        check_priority(draft, category)
        message_id = self._ids.new(MESSAGE)
        now = self._ids.moment_of(message_id)
        due_at = due_time(draft, now)
        check_state(number, template)
        open_flow(draft, number, flow)
        obeys, ttl = _terms(draft.type, category, draft.priority)
        new = new_message(
            draft,
            organization,
            number.id,
            obeys,
            message_id=message_id,
            due_at=due_at,
            now=now,
            ttl=ttl,
            held_ms=held_ms(number, organization, now),
            price=price,
        )
        if draft.again is not None:
            new.replaces = replacement(draft.again, new.id, self._ids)
        return new

    async def check_window(self, new: NewMessage) -> None:
        """A free-form message needs the open window of its recipient (C15.2.2)."""
        last = await self._windows.last_inbound(new.organization_id, new.sender_id, new.recipient_hash)
        if last is None or new.accepted_at - last >= WINDOW:
            raise field_refused(
                "WINDOW_CLOSED",
                "/type",
                "The recipient has not written to this number in the last 24 hours: send a template.",
            )


@cache
def _terms(kind: str, category: TemplateCategory | None, priority: Priority) -> tuple[Obeys, timedelta]:
    """What a message obeys, and how long it may wait. There are a few dozen answers, and each message asks."""
    return POLICY.obeys(kind, category, priority), POLICY.ttl(category, priority)


def _unit(draft: MessageDraft, number: Number, template: Template | None) -> tuple[str, str]:
    """What is bought: the kind and the region (C25.3)."""
    category = None if template is None else template.category
    return POLICY.price_kind(category, number.byo), region_of(draft.to)


class TemplateShapes:
    """What templates ask of a message, worked out once for each version in memory."""

    def __init__(self, capacity: int = 10_000) -> None:
        self._capacity = capacity
        self._known: dict[str, tuple[int, int, bool]] = {}

    def of(self, template: Template) -> tuple[int, bool]:
        """The number of body variables, and whether the header takes a text."""
        known = self._known.get(template.id)
        if known is not None and known[0] == template.revision:
            return known[1], known[2]
        if len(self._known) >= self._capacity:
            self._known.clear()
        count, header = variable_count(template.components), header_takes_text(template.components)
        self._known[template.id] = (template.revision, count, header)
        return count, header


def flow_of(message_type: str, payload: Mapping[str, Any] | None) -> str | None:
    """The id of the flow that a message opens."""
    if payload is None or message_type != "interactive" or payload["interactive"]["type"] != "flow":
        return None
    flow_id: str = payload["interactive"]["action"]["flowId"]
    return flow_id


def open_flow(draft: MessageDraft, number: Number, flow: SendableFlow | None) -> None:
    """What the provider calls the flow that the draft opens joins the draft; raises as `with_flow`."""
    if draft.payload is not None and flow_of(draft.type, draft.payload) is not None:
        draft.payload = with_flow(draft.payload, number, flow)


def with_flow(payload: Mapping[str, Any], number: Number, flow: SendableFlow | None) -> dict[str, Any]:
    """The payload of a message that opens a flow, with what the provider calls it, and the screen that it opens.

    Raises `Problem` REFERENCE_NOT_FOUND unless the flow is there, of the number, and active, and has the screen.
    """
    interactive = payload["interactive"]
    if flow is None:
        raise reference_not_found(_FLOW_FIELD, FLOW, interactive["action"]["flowId"], number.env)
    if flow.number_id != number.id:
        detail = f"The flow {flow.id} belongs to the number {flow.number_id}, not to {number.id}."
        raise wrong_reference(_FLOW_FIELD, detail)
    if flow.status is not FlowStatus.ACTIVE:
        detail = f"The flow {flow.id} is {flow.status.value}: only an active flow can be sent."
        raise wrong_reference(_FLOW_FIELD, detail)
    screen = interactive["action"].get("screen") or flow.entry
    if screen not in flow.screens:
        raise wrong_reference(_SCREEN_FIELD, f"The flow {flow.id} has no screen of this id.")
    action = {**interactive["action"], "screen": screen, "providerFlowId": flow.provider_flow_id}
    return {**payload, "interactive": {**interactive, "action": action}}


def media_of(draft: MessageDraft, template: Template | None) -> NamedMedia | None:
    """The media that the draft names, and as which kind."""
    kind = None if template is None else header_media(template.components)
    return named_media(draft.type, draft.payload, kind)


async def check_media(
    media: MediaUse | None, draft: MessageDraft, number: Number, template: Template | None, *, sends: bool
) -> None:
    """The media that the draft names is there, of its kind, and such that the number's provider may take it (C8.2).

    It is not handed over here: window, consent and balance are asked later, and who has none makes no uploads.
    """
    named = media_of(draft, template)
    if named is None:
        return
    if media is None:
        raise no_media(named)
    found = await media.find(draft.organization_id, draft.env, named)
    check_found(media, named, template, found)
    if sends:
        media.check_provider(CHATAPP, number.env, number.id, found)


def check_found(media: MediaUse, named: NamedMedia, template: Template | None, found: KeptMedia) -> None:
    """A number sends the upload as it is named (C8.2.4), and the template's header takes media (C15.2.1)."""
    media.check_use(CHATAPP, found, named)
    if template is not None and header_media(template.components) is None:
        raise _mismatch(named.path, f"The header of the template {template.id} takes no media.")


def check_references(draft: MessageDraft, number: Number | None, template: Template | None) -> None:
    """Number and template exist here, and the template is one of this number."""
    if number is None:
        raise reference_not_found("numberId", NUMBER, draft.sender_id, draft.env)
    if draft.template_id is not None and template is None:
        raise reference_not_found("templateId", TEMPLATE_ID, draft.template_id, draft.env)
    if template is not None and template.number_id != number.id:
        raise _other_number(template, number)


def _other_number(template: Template, number: Number) -> Problem:
    detail = f"The template {template.id} belongs to the number {template.number_id}, not to {number.id}."
    return wrong_reference("templateId", detail)


def check_variables(draft: MessageDraft, template: Template, shapes: TemplateShapes) -> None:
    """The variables are exactly those that the template declares, none of them empty (C15.2.1)."""
    given = draft.template_vars or ()
    count, header = shapes.of(template)
    if len(given) != count:
        raise _mismatch(
            "/templateVars",
            f"The template {template.id} takes {counted(count, 'variable')}; `templateVars` has {len(given)}.",
        )
    for position, text in enumerate(given):
        if not text:
            raise _mismatch(
                f"/templateVars/{position}", f"`templateVars` must not hold an empty text (position {position})."
            )
    check_header(draft, header)


def check_header(draft: MessageDraft, header: bool) -> None:
    """The header has a text exactly when the template's takes one."""
    if header != ("text" in ((draft.payload or {}).get("header") or ())):
        declared = "takes" if header else "does not take"
        raise _mismatch("/payload/header/text", f"The header of the template {declared} a text.")


def check_priority(draft: MessageDraft, category: TemplateCategory | None) -> None:
    """`critical` is for authentication, utility and replies in the window (C15.2.4)."""
    if draft.priority is Priority.CRITICAL and category is TemplateCategory.MARKETING:
        raise field_refused(
            "PRIORITY_NOT_ALLOWED",
            "/priority",
            "Priority critical is only for authentication and utility templates and for replies in the window.",
        )


def unavailable(number: Number) -> str:
    """What is told of a number that does not send (C4.1)."""
    what = what_to_do(number.status, number.env, number.id)
    return f"The number {number.id} is {number.status.value}: {what}, or send from another number."


def check_state(number: Number, template: Template | None) -> None:
    """The number sends and the template is approved, now."""
    if number.status not in IN_SERVICE:
        raise field_refused(
            "NUMBER_UNAVAILABLE",
            "/numberId",
            unavailable(number),
            status=number.status.value,
        )
    if template is not None and template.status is not TemplateStatus.APPROVED:
        raise field_refused(
            "TEMPLATE_NOT_APPROVED",
            "/templateId",
            f"The template {template.id} is {template.status.value}: only an approved template can be sent.",
            status=template.status.value,
        )


def held_ms(number: Number, organization: Organization, now: datetime) -> int:
    """Time that the number's queue stood still until now: what comes on top later does not count towards the TTL."""
    held = number.held_ms + organization.held_ms
    for since in (number.operator_paused_at, organization.held_since):
        if since is not None and since < now:
            held += (now - since) // _MILLISECOND
    return held


def _mismatch(path: str, message: str) -> Problem:
    return field_refused("TEMPLATE_VARS_MISMATCH", path, message)
