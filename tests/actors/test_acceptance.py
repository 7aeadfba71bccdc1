"""Every rule that a message must pass before it is stored, and what a repeat of its request gets (C6.2, C15.2)."""

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from recado.actors.acceptance import Acceptance, Accepted, Replayed
from recado.actors.acceptance_rules import LONGEST_SCHEDULE, MessageDraft, held_ms
from recado.actors.sending import Arrived, Sending
from recado.domain.errors import Problem
from recado.domain.ids import TEMPLATE, IdSource, lowest_id
from recado.domain.message import Priority
from recado.domain.number import NumberStatus
from recado.domain.phones import recipient_hash
from recado.domain.template import Language, TemplateCategory, TemplateStatus
from recado.engine.clock import VirtualClock
from recado.storage import audit, message_reads, numbers, organizations, templates
from recado.storage.audit import Actor
from recado.storage.chat_windows import ChatWindows
from recado.storage.directories import Directories
from recado.storage.message_reads import Message
from recado.storage.messages import NewMessage
from recado.storage.numbers import Number
from recado.storage.organizations import Organization
from recado.storage.postgres import Database
from recado.storage.templates import Template

PHONE = "+5511987654321"
OPERATOR = Actor("key", "key_000000000000000000001", ip="203.0.113.9", request_id="req_1")
BODY = ({"type": "BODY", "payload": {"text": "Hello {{1}}, code {{2}}!"}},)


@dataclass
class House:
    """One organization with a connected sandbox number and an approved template of two variables."""

    db: Database
    clock: VirtualClock
    ids: IdSource
    directories: Directories
    acceptance: Acceptance
    told: list[tuple[Any, Any]]
    organization: Organization
    number: Number
    template: Template

    def draft(self, **changes: Any) -> MessageDraft:
        fields: dict[str, Any] = {
            "organization_id": self.organization.id,
            "env": "test",
            "channel": "chatapp",
            "number_id": self.number.id,
            "to": PHONE,
            "type": "template",
            "priority": Priority.NORMAL,
            "template_id": self.template.id,
            "template_vars": ["Ana", "42"],
        }
        return MessageDraft(**{**fields, **changes})

    def free_form(self, **changes: Any) -> MessageDraft:
        text = {"type": "text", "payload": {"text": {"body": "hi"}}, "template_id": None, "template_vars": None}
        return self.draft(**{**text, **changes})

    async def accepted(self, draft: MessageDraft) -> NewMessage:
        outcome = await self.acceptance.accept(draft)
        assert isinstance(outcome, Accepted)
        return outcome.message

    async def refusal(self, draft: MessageDraft) -> Problem:
        before = await self.stored()
        with pytest.raises(Problem) as caught:
            await self.acceptance.accept(draft)
        assert await self.stored() == before
        return caught.value

    async def stored(self) -> int:
        return int(await self.db.fetchval("select count(*) from messages"))

    async def row(self, message_id: str) -> Message:
        row = await message_reads.get(self.db, self.organization.id, "test", message_id)
        assert row is not None
        return row

    async def set_number(self, **changes: Any) -> None:
        self.number = await numbers.save(self.db, self.number, replace(self.number, **changes), self.clock.now())
        self.directories.numbers.clear()

    async def add_template(self, **changes: Any) -> Template:
        fields: dict[str, Any] = {
            "organization_id": self.organization.id,
            "id": self.ids.new(TEMPLATE),
            "env": "test",
            "number_id": self.number.id,
            "name": f"t{self.ids.new('')}".lower(),
            "language": Language.PT_BR,
            "category": TemplateCategory.UTILITY,
            "status": TemplateStatus.APPROVED,
            "components": BODY,
            "updated_at": self.clock.now(),
        }
        async with self.db.transaction() as connection:
            return await templates.insert(connection, Template(**{**fields, **changes}))

    async def hear_from(self, phone: str, at: datetime) -> None:
        await self.db.execute(
            "insert into chat_windows values ($1, $2, $3, $4)",
            self.organization.id,
            self.number.id,
            recipient_hash(self.organization.id, phone),
            at,
        )

    async def fail(self, message_id: str, last_error: str, *, sent: bool = False) -> None:
        now = self.clock.now()
        await self.db.execute(
            "update messages set status = 'failed', last_error = $2, failed_at = $3, sent_at = $4 where id = $1",
            message_id,
            last_error,
            now,
            now if sent else None,
        )


@pytest.fixture
async def house(database: Database) -> AsyncIterator[House]:
    clock = VirtualClock(datetime.now(UTC))
    ids = IdSource(clock, random.Random(7))
    directories = Directories(database, clock=clock)
    told: list[tuple[Any, Any]] = []
    sending = Sending(database, clock=clock, tell=lambda number, message: told.append((number, message)))
    windows = ChatWindows(database, clock=clock)
    await sending.start()
    await windows.start()
    async with database.transaction() as connection:
        made = await organizations.create_organization(
            connection, ids, name="Acme", now=clock.now(), random_bytes=random.Random(7).randbytes
        )
    acceptance = Acceptance(
        database,
        numbers=directories.numbers,
        organizations=directories.organizations,
        templates=directories.templates,
        windows=windows,
        sending=sending,
        ids=ids,
        clock=clock,
        sends_in={"test"},
    )
    house = House(database, clock, ids, directories, acceptance, told, made.organization, made.number, None)  # type: ignore[arg-type]
    house.template = await house.add_template()
    yield house
    await windows.stop()
    await sending.stop()


# What is stored ---------------------------------------------------------------------------------------------------


async def test_an_accepted_message_is_committed_and_its_number_is_told(house: House) -> None:
    new = await house.accepted(
        house.draft(metadata={"order": "x1", "paid": True}, campaign_id="spring", priority=Priority.BULK)
    )
    row = await house.row(new.id)
    assert (row.status, row.direction, row.type, row.klass, row.force) == ("queued", "outbound", "template", 2, False)
    assert (row.recipient, row.number_id, row.template_id) == (PHONE, house.number.id, house.template.id)
    assert orjson.loads(row.template_vars or "") == ["Ana", "42"]
    assert orjson.loads(row.metadata or "") == {"order": "x1", "paid": True}
    assert row.campaign_id == "spring"
    assert row.created_at == row.updated_at == new.accepted_at
    [(number, arrived)] = house.told
    assert number[-1] == house.number.id
    assert isinstance(arrived, Arrived)
    assert [told.id for told in arrived.rows] == [new.id]


@pytest.mark.parametrize(
    ("category", "priority", "seconds", "expected"),
    [
        (TemplateCategory.UTILITY, Priority.NORMAL, None, timedelta(hours=24)),
        (TemplateCategory.MARKETING, Priority.BULK, None, timedelta(hours=72)),
        (TemplateCategory.UTILITY, Priority.CRITICAL, None, timedelta(hours=1)),
        (TemplateCategory.AUTHENTICATION, Priority.NORMAL, None, timedelta(minutes=10)),
        (TemplateCategory.AUTHENTICATION, Priority.NORMAL, 90, timedelta(seconds=90)),
    ],
)
async def test_the_time_to_live_follows_category_priority_and_wish(
    house: House, category: TemplateCategory, priority: Priority, seconds: int | None, expected: timedelta
) -> None:
    template = await house.add_template(category=category)
    new = await house.accepted(house.draft(template_id=template.id, priority=priority, ttl_seconds=seconds))
    assert new.ttl == expected
    expires = await house.db.fetchval("select expires_at from dispatch where id = $1", new.id)
    assert expires == new.due_at + expected


async def test_time_already_held_is_the_base_of_the_time_to_live(house: House) -> None:
    now = house.clock.now()
    number = replace(house.number, held_ms=1_000, operator_paused_at=now - timedelta(seconds=5))
    organization = replace(house.organization, held_ms=200, held_since=now - timedelta(seconds=1))
    assert held_ms(number, organization, now) == 7_200
    assert held_ms(house.number, house.organization, now) == 0


async def test_a_schedule_waits_in_the_table_and_a_past_one_means_now(house: House) -> None:
    now = house.clock.now()
    later = await house.accepted(house.draft(scheduled_at=now + timedelta(days=2)))
    assert later.scheduled_at == later.due_at == now + timedelta(days=2)
    assert house.told == []
    past = await house.accepted(house.draft(scheduled_at=now - timedelta(days=2)))
    assert past.due_at == past.scheduled_at == past.accepted_at
    assert len(house.told) == 1


async def test_ninety_days_are_the_furthest_schedule(house: House) -> None:
    instant = house.clock.now().replace(microsecond=house.clock.now().microsecond // 1000 * 1000)
    await house.accepted(house.draft(scheduled_at=instant + LONGEST_SCHEDULE))
    refusal = await house.refusal(house.draft(scheduled_at=instant + LONGEST_SCHEDULE + timedelta(milliseconds=1)))
    assert refusal.code == "SCHEDULE_TOO_FAR"


# Refusals ---------------------------------------------------------------------------------------------------------


async def test_what_does_not_exist_here_is_not_found(house: House) -> None:
    missing = lowest_id("num_", house.clock.now())
    refusal = await house.refusal(house.draft(number_id=missing))
    assert (refusal.code, refusal.meta) == ("REFERENCE_NOT_FOUND", {"field": "numberId"})
    refusal = await house.refusal(house.draft(template_id=lowest_id("tpl_", house.clock.now())))
    assert (refusal.code, refusal.meta) == ("REFERENCE_NOT_FOUND", {"field": "templateId"})
    refusal = await house.refusal(house.draft(contact_id="cnt_" + "1" * 21))
    assert (refusal.code, refusal.meta) == ("REFERENCE_NOT_FOUND", {"field": "contactId"})


async def test_records_of_others_do_not_exist(house: House) -> None:
    async with house.db.transaction() as connection:
        other = await organizations.create_organization(
            connection, house.ids, name="Other", now=house.clock.now(), random_bytes=random.Random(8).randbytes
        )
    assert (await house.refusal(house.draft(number_id=other.number.id))).code == "REFERENCE_NOT_FOUND"
    assert (await house.refusal(house.draft(organization_id=other.organization.id))).code == "REFERENCE_NOT_FOUND"
    assert (await house.refusal(house.draft(env="live"))).code == "REFERENCE_NOT_FOUND"


async def test_a_template_belongs_to_its_number(house: House) -> None:
    async with house.db.transaction() as connection:
        sibling = numbers.sandbox_number(
            house.ids, organization_id=house.organization.id, display_phone="+15555550101", now=house.clock.now()
        )
        await numbers.insert(connection, sibling)
    refusal = await house.refusal(house.draft(number_id=sibling.id))
    assert (refusal.code, refusal.meta) == ("REFERENCE_NOT_FOUND", {"field": "templateId"})


async def test_only_an_approved_template_is_sent(house: House) -> None:
    for status in set(TemplateStatus) - {TemplateStatus.APPROVED}:
        template = await house.add_template(status=status)
        refusal = await house.refusal(house.draft(template_id=template.id))
        assert (refusal.code, refusal.meta) == ("TEMPLATE_NOT_APPROVED", {"status": status.value})


async def test_the_variables_are_exactly_those_of_the_template(house: House) -> None:
    for given, path in (
        (None, "/templateVars"),
        ([], "/templateVars"),
        (["a"], "/templateVars"),
        (["a", "b", "c"], "/templateVars"),
        (["a", ""], "/templateVars/1"),
    ):
        refusal = await house.refusal(house.draft(template_vars=given))
        assert refusal.code == "TEMPLATE_VARS_MISMATCH"
        assert [error.path for error in refusal.errors] == [path]


async def test_a_header_with_a_variable_takes_a_text_and_no_other_does(house: House) -> None:
    header = {"type": "HEADER", "payload": {"format": "TEXT", "text": "Order {{1}}"}}
    template = await house.add_template(components=(header, *BODY))
    given = {"header": {"text": "7"}}
    assert (await house.refusal(house.draft(template_id=template.id))).code == "TEMPLATE_VARS_MISMATCH"
    assert (await house.refusal(house.draft(payload=given))).code == "TEMPLATE_VARS_MISMATCH"
    await house.accepted(house.draft(template_id=template.id, payload=given))


async def test_an_edit_of_the_template_changes_what_it_asks_for_at_once(house: House) -> None:
    await house.accepted(house.draft())
    after = replace(house.template, components=({"type": "BODY", "payload": {"text": "Hello {{1}}!"}},), version=2)
    await templates.save(house.db, house.template, after, house.clock.now())
    house.directories.templates.clear()
    assert (await house.refusal(house.draft())).code == "TEMPLATE_VARS_MISMATCH"
    await house.accepted(house.draft(template_vars=["Ana"]))


async def test_only_a_connected_or_flagged_number_sends(house: House) -> None:
    for status in NumberStatus:
        await house.set_number(status=status)
        if status in {NumberStatus.CONNECTED, NumberStatus.FLAGGED}:
            await house.accepted(house.draft())
        else:
            refusal = await house.refusal(house.draft())
            assert (refusal.code, refusal.meta) == ("NUMBER_UNAVAILABLE", {"status": status.value})


async def test_critical_is_not_for_marketing(house: House) -> None:
    template = await house.add_template(category=TemplateCategory.MARKETING)
    refusal = await house.refusal(house.draft(template_id=template.id, priority=Priority.CRITICAL))
    assert refusal.code == "PRIORITY_NOT_ALLOWED"
    await house.hear_from(PHONE, house.clock.now())
    await house.accepted(house.free_form(priority=Priority.CRITICAL))


async def test_free_form_messages_need_an_open_window(house: House) -> None:
    assert (await house.refusal(house.free_form())).code == "WINDOW_CLOSED"
    await house.hear_from(PHONE, house.clock.now())
    await house.accepted(house.free_form())
    assert (await house.refusal(house.free_form(to="+5511987650000"))).code == "WINDOW_CLOSED"
    await house.clock.advance(24 * 3600 + 1)
    assert (await house.refusal(house.free_form())).code == "WINDOW_CLOSED"


@pytest.mark.parametrize(
    ("draft", "code", "field"),
    [
        ({"channel": "social"}, "ROUTE_NOT_AVAILABLE", None),
        (
            {"type": "media", "payload": {"kind": "image", "media": {"id": "med_1"}}},
            "MEDIA_NOT_FOUND",
            "/payload/media/id",
        ),
        (
            {"payload": {"header": {"media": {"id": "med_1"}}}, "type": "template"},
            "MEDIA_NOT_FOUND",
            "/payload/header/media/id",
        ),
        (
            {
                "type": "interactive",
                "payload": {"interactive": {"type": "button", "header": {"media": {"id": "m"}}, "body": "x"}},
            },
            "MEDIA_NOT_FOUND",
            "/payload/interactive/header/media/id",
        ),
        (
            {"type": "interactive", "payload": {"interactive": {"type": "flow", "action": {"flowId": "flw_1"}}}},
            "REFERENCE_NOT_FOUND",
            "payload.interactive.action.flowId",
        ),
    ],
)
async def test_what_this_release_does_not_hold_yet_is_refused_plainly(
    house: House, draft: dict[str, Any], code: str, field: str | None
) -> None:
    refusal = await house.refusal(house.free_form(**draft))
    assert refusal.status == 422
    assert (refusal.code, refusal.meta.get("field")) == (code, field)


async def test_an_environment_without_a_provider_answers_502(house: House) -> None:
    acceptance = house.acceptance
    acceptance._sends_in = frozenset()
    refusal = await house.refusal(house.draft())
    assert (refusal.status, refusal.code) == (502, "DEPENDENCY_FAILED")


# Force ------------------------------------------------------------------------------------------------------------


async def test_force_is_stored_with_the_message_and_audited_with_its_credential(house: House) -> None:
    new = await house.accepted(house.draft(forced_by=OPERATOR))
    assert (await house.row(new.id)).force
    [entry] = await audit.list_page(
        house.db, house.organization.id, "test", first_id="aud_", before_id="aud_~", limit=10
    )
    assert (entry.action, entry.actor_id, entry.target_id) == ("message.force", OPERATOR.id, new.id)


async def test_a_refused_force_leaves_no_trace(house: House) -> None:
    await house.refusal(house.draft(forced_by=OPERATOR, template_vars=[]))
    assert await house.db.fetchval("select count(*) from audit") == 0


# Repeats ----------------------------------------------------------------------------------------------------------


def keyed(draft: MessageDraft, key: bytes = b"k" * 32, asked: bytes = b"f" * 32) -> MessageDraft:
    return replace(draft, key_hash=key, fingerprint=asked)


async def replayed(house: House, draft: MessageDraft) -> Message:
    outcome = await house.acceptance.accept(draft)
    assert isinstance(outcome, Replayed)
    return outcome.message


async def test_a_repeat_shows_the_message_as_it_is_now(house: House) -> None:
    first = await house.accepted(keyed(house.draft()))
    await house.db.execute("update messages set status = 'sent' where id = $1", first.id)
    again = await replayed(house, keyed(house.draft()))
    assert (again.id, again.status) == (first.id, "sent")
    assert await house.stored() == 1


async def test_a_key_with_another_request_is_refused(house: House) -> None:
    await house.accepted(keyed(house.draft()))
    refusal = await house.refusal(keyed(house.draft(to="+5511987650000"), asked=b"g" * 32))
    assert (refusal.status, refusal.code) == (422, "IDEMPOTENCY_KEY_REUSED")
    # Also when the other request would have been refused for itself.
    refusal = await house.refusal(keyed(house.draft(template_vars=[]), asked=b"g" * 32))
    assert refusal.code == "IDEMPOTENCY_KEY_REUSED"


async def test_keys_of_organizations_and_environments_are_apart(house: House) -> None:
    await house.accepted(keyed(house.draft()))
    refusal = await house.refusal(keyed(house.draft(env="live"), asked=b"g" * 32))
    assert refusal.code == "REFERENCE_NOT_FOUND"


async def test_a_repeat_is_replayed_although_the_rules_would_refuse_it_by_now(house: House) -> None:
    first = await house.accepted(keyed(house.draft()))
    await house.set_number(status=NumberStatus.DISCONNECTED)
    assert (await replayed(house, keyed(house.draft()))).id == first.id


async def test_requests_at_the_same_time_with_one_key_make_one_message(house: House) -> None:
    outcomes = await asyncio.gather(*(house.acceptance.accept(keyed(house.draft())) for _ in range(20)))
    assert sum(isinstance(outcome, Accepted) for outcome in outcomes) == 1
    assert len({outcome.message.id for outcome in outcomes}) == 1
    assert await house.stored() == 1


@pytest.mark.parametrize("last_error", ["recipient_unreachable: no", "expired: too late", "provider_error: 5 times"])
async def test_after_a_definite_refusal_a_repeat_sends_again(house: House, last_error: str) -> None:
    first = await house.accepted(keyed(house.draft()))
    await house.fail(first.id, last_error)
    second = await house.accepted(keyed(house.draft()))
    assert second.id != first.id
    assert (await replayed(house, keyed(house.draft()))).id == second.id
    assert await house.stored() == 2


async def test_a_message_that_may_have_left_is_never_sent_again(house: House) -> None:
    first = await house.accepted(keyed(house.draft()))
    await house.fail(first.id, "outcome_unknown: no report")
    assert (await replayed(house, keyed(house.draft()))).id == first.id
    await house.fail(first.id, "recipient_unreachable: reported", sent=True)
    assert (await replayed(house, keyed(house.draft()))).id == first.id


async def test_a_refused_message_whose_request_is_no_longer_acceptable_stays_refused(house: House) -> None:
    first = await house.accepted(keyed(house.draft()))
    await house.fail(first.id, "recipient_unreachable: no")
    await house.set_number(status=NumberStatus.DISCONNECTED)
    assert (await house.refusal(keyed(house.draft()))).code == "NUMBER_UNAVAILABLE"


async def test_a_key_is_free_again_after_a_day(house: House) -> None:
    first = await house.accepted(keyed(house.draft()))
    await house.clock.advance(24 * 3600 - 1)
    assert (await replayed(house, keyed(house.draft()))).id == first.id
    await house.clock.advance(2)
    second = await house.accepted(keyed(house.draft(to="+5511987650000"), asked=b"g" * 32))
    assert second.id != first.id


async def test_a_forced_repeat_is_not_audited_twice(house: House) -> None:
    first = await house.accepted(keyed(house.draft(forced_by=OPERATOR)))
    assert (await replayed(house, keyed(house.draft(forced_by=OPERATOR)))).id == first.id
    assert await house.db.fetchval("select count(*) from audit") == 1


async def test_a_refusal_frees_the_key(house: House) -> None:
    await house.refusal(keyed(house.draft(template_vars=[])))
    await house.accepted(keyed(house.draft(), asked=b"g" * 32))
