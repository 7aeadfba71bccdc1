"""What makes batches of chat-app acceptable: their number and template, and the variables of each recipient (C15.5)."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

import orjson

from recado.domain.channels.chatapp import CHATAPP, POLICY
from recado.domain.core.counting import counted
from recado.domain.core.errors import Problem
from recado.domain.core.ids import NUMBER
from recado.domain.core.json_text import json_or_none, json_text, object_of
from recado.domain.core.references import reference_not_found
from recado.domain.core.steps import Steps
from recado.domain.messages.message import Priority
from recado.services.batches.batch_draft import BatchDraft
from recado.services.batches.channel_batches import (
    BatchTerms,
    MessageCopy,
    Misfit,
    RecipientContent,
    Replaced,
    Sort,
    Tracked,
    Where,
)
from recado.services.media.media_use import MediaUse
from recado.services.messages.acceptance_rules import due_time
from recado.services.messages.chatapp_rules import (
    TemplateShapes,
    check_header,
    check_media,
    check_priority,
    check_references,
    check_state,
    flow_of,
    held_ms,
    open_flow,
    unavailable,
    with_flow,
)
from recado.storage.access.directories import Directories
from recado.storage.batches.batch_rows import MessageKind, Recipients
from recado.storage.core.connections.postgres import Database
from recado.storage.messages import resends
from recado.storage.messages.resends import Old
from recado.storage.senders.numbers import Number
from recado.storage.templates.templates import Template

MISMATCH: Final = "TEMPLATE_VARS_MISMATCH"
NUMBER_UNAVAILABLE: Final = "NUMBER_UNAVAILABLE"
_NOT_AGAIN: Final = {
    "REFERENCE_NOT_FOUND": (
        "Its number or template does not exist (any more), the template is of another number, "
        "or its flow is no active one of the number."
    ),
    "TEMPLATE_NOT_APPROVED": "Its template is not approved.",
    MISMATCH: "Its template takes other variables now.",
}


class ChatAppBatches:
    """`sends_in`: the environments that have a provider."""

    channel = CHATAPP
    no_such_message = "There is no such chat-app message."

    def __init__(
        self, db: Database, directories: Directories, *, sends_in: Collection[str], media: MediaUse | None = None
    ) -> None:
        self._db = db
        self._numbers = directories.numbers
        self._organizations = directories.organizations
        self._templates = directories.templates
        self._flows = directories.flows
        self.sends_in = frozenset(sends_in)
        self._media = media
        self._shapes = TemplateShapes()

    async def terms(self, draft: BatchDraft, now: datetime) -> BatchTerms:
        where, message = (draft.organization_id, draft.env), draft.message()
        number = await self._numbers.get((*where, draft.sender_id))
        organization = await self._organizations.of_caller(draft.organization_id)
        template = None if draft.template_id is None else await self._templates.get((*where, draft.template_id))
        check_references(message, number, template)
        assert number is not None  # noqa: S101 - what check_references has just made sure
        variables, category, member = 0, None, None
        if template is not None:
            category, member = template.category, "templateVars"
            variables, header = self._shapes.of(template)
            check_header(message, header)
        check_priority(message, category)
        due_at = due_time(message, now)
        check_state(number, template)
        flow_id = flow_of(message.type, message.payload)
        open_flow(message, number, None if flow_id is None else await self._flows.get((*where, flow_id)))
        draft.payload = message.payload
        await check_media(self._media, message, number, template, sends=draft.env in self.sends_in)
        return BatchTerms(
            sender_id=number.id,
            due_at=due_at,
            ttl=POLICY.ttl(category, draft.priority),
            held_ms=held_ms(number, organization, now),
            obeys=POLICY.obeys(draft.type, category, draft.priority),
            granted_only=organization.require_granted_for_marketing,
            usual=None if template is None else _variables(draft.template_vars, variables),
            member=member,
            content=partial(_variables, count=variables),
        )

    async def kind(self, where: Where, priority: Priority, sort: Sort) -> MessageKind:
        template = None if sort.template_id is None else await self._templates.get((*where, sort.template_id))
        number = None if sort.sender_id is None else await self._numbers.get((*where, sort.sender_id))
        return _kind(sort.type, template, number, priority)

    def tracked(self, payload: str | None, recipients: Recipients, replaced: Replaced) -> Steps[Tracked | None]:
        """Links of chat-app stay as they are."""
        yield from ()
        return None

    async def suppressed(self, where: Where, addresses: Sequence[str]) -> Collection[str]:
        return ()

    async def check_sender(self, where: Where, sender_id: str, *, field: str, sends: bool) -> None:
        number = await self._numbers.get((*where, sender_id))
        if number is None:
            raise reference_not_found(field, NUMBER, sender_id, where[1])
        if sends:
            check_state(number, None)

    async def copies(
        self, where: Where, olds: Sequence[Old], sender_id: str | None, now: datetime
    ) -> Mapping[str, MessageCopy | Misfit]:
        organization = await self._organizations.of_caller(where[0])
        named = {old.template_id for old in olds if old.template_id is not None}
        by: Mapping[str, str] = {template_id: template_id for template_id in named}
        if sender_id is not None and named:
            by = await resends.counterparts(self._db, *where, named, sender_id)
        templates = {old: await self._templates.get((*where, sent_as)) for old, sent_as in by.items()}
        senders = {sender_id or old.sender_id for old in olds} - {None}
        numbers = {each: await self._numbers.get((*where, each)) for each in senders if each is not None}
        held = {each: held_ms(number, organization, now) for each, number in numbers.items() if number is not None}
        opening = _opening(olds)
        flows = {each: await self._flows.get((*where, each)) for each in {flow_id for flow_id, _ in opening.values()}}
        found: dict[str, MessageCopy | Misfit] = {}
        for old in olds:
            number = numbers.get(sender_id or old.sender_id or "")
            template = templates.get(old.template_id or "")
            if number is None or (template is None and old.template_id is not None):
                found[old.id] = _not_again("REFERENCE_NOT_FOUND")
                continue
            payload = None
            if old.id in opening:
                flow_id, payload = opening[old.id]
                try:
                    payload = with_flow(payload, number, flows[flow_id])
                except Problem as problem:
                    found[old.id] = _not_again(problem.code)
                    continue
            found[old.id] = self._misfit(old, number, template) or MessageCopy(
                number.id,
                None if template is None else template.id,
                _kind(old.type, template, number, Priority.BULK),
                POLICY.ttl(None if template is None else template.category, Priority.BULK),
                held[number.id],
                json_or_none(payload),
            )
        return found

    def _misfit(self, old: Old, number: Number, template: Template | None) -> Misfit | None:
        """Why a message is not sent again by this number with this template."""
        try:
            check_state(number, template)
        except Problem as problem:
            if problem.code == NUMBER_UNAVAILABLE:
                return Misfit(problem.code, unavailable(number))
            return _not_again(problem.code)
        if template is not None and not _fits(old, template, self._shapes):
            return _not_again(MISMATCH)
        return None


def _opening(olds: Sequence[Old]) -> dict[str, tuple[str, dict[str, Any]]]:
    """Of the messages that open a flow: by id, which one, and their payload."""
    found = {}
    for old in olds:
        if old.type == "interactive" and old.payload is not None:
            payload = orjson.loads(old.payload)
            flow_id = flow_of(old.type, payload)
            if flow_id is not None:
                found[old.id] = (flow_id, payload)
    return found


def _kind(message_type: str, template: Template | None, number: Number | None, priority: Priority) -> MessageKind:
    category = None if template is None else template.category
    byo = number is not None and number.byo
    return MessageKind(POLICY.obeys(message_type, category, priority), POLICY.price_kind(category, byo))


def _not_again(code: str) -> Misfit:
    return Misfit(code, _NOT_AGAIN[code])


def _variables(given: Any, count: int) -> RecipientContent | Misfit:
    """The variables of a template that takes so many (C15.2.1)."""
    given = given or ()
    if len(given) != count:
        return Misfit(MISMATCH, f"The template takes {counted(count, 'variable')}; `templateVars` has {len(given)}.")
    if not all(given):
        return Misfit(MISMATCH, "`templateVars` must not hold an empty text.")
    return json_text(given) if given else None


def _fits(old: Old, template: Template, shapes: TemplateShapes) -> bool:
    count, header = shapes.of(template)
    given = 0 if old.template_vars is None else len(orjson.loads(old.template_vars))
    payload = object_of(old.payload)
    return given == count and header == ("text" in (payload.get("header") or ()))
