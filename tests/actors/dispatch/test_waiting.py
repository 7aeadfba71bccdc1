"""Of several gates that hold a message, the first one is named (C14.6)."""

import os
import random
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from tests.acme import add_template

from recado.actors.dispatch.waiting import WaitExplainer
from recado.channels.core.adapters import Adapters
from recado.domain.core.ids import MESSAGE, IdSource
from recado.domain.core.timestamps import format_timestamp
from recado.domain.dispatch.gates import Hold
from recado.domain.messages.message import WaitReason
from recado.engine.clock import SystemClock
from recado.services.dispatch.owners import Owners
from recado.services.dispatch.records import Records
from recado.storage.access.directories import Directories
from recado.storage.access.organizations import create_organization
from recado.storage.core.connections.postgres import Database
from recado.storage.core.crypto import KeyRing

QUEUED = """
insert into dispatch (
    organization_id, id, env, channel, sender_id, class, owner, due_at, not_before, reason, ttl_ms, expires_at,
    held_base_ms, force, repeat_of
) values ($1, $2, 'test', 'chatapp', $3, 2, 'single', $4, $5, $6, 1000, $4, 0, false, $7)
"""
KEYS = "test:" + "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="
NOT_ASKED = object()


class Waiting:
    """A message in the queue of a number, held for a reason of its own."""

    def __init__(self, database: Database, made: Any, ids: IdSource) -> None:
        self.database, self.made, self.ids, self.clock = database, made, ids, SystemClock()
        self.owners = Owners()
        self.template_id: str | None = None
        self.answer: Any = NOT_ASKED

    async def named(self, reason: WaitReason) -> str:
        """The reason that is told."""
        return str((await self.told(reason))["reason"])

    async def told(self, reason: WaitReason | None, last_error: str | None = None, *, in_doubt: bool = False) -> Any:
        """The whole wait of a message that a gate of its own holds for this reason, or none."""
        number, now = self.made.number, self.clock.now()
        message = SimpleNamespace(
            id=self.ids.new(MESSAGE),
            channel="chatapp",
            sender_id=number.id,
            last_error=last_error,
            type="template" if self.template_id else "text",
            template_id=self.template_id,
        )
        until = None if reason is None else now + timedelta(hours=1)
        asked = (number.organization_id, message.id, number.id, now, until, reason)
        await self.database.execute(QUEUED, *asked, now if in_doubt else None)
        known = Directories(self.database, clock=self.clock)  # nothing is remembered from the question before
        keys = KeyRing.parse(KEYS)
        records = Records(
            self.database,
            known.numbers,
            known.social_accounts,
            known.organizations,
            known.templates,
            keys,
            Adapters({}).sender,
            self.clock,
            self.owners,
        )
        return await WaitExplainer(records, self._ask).explain(number.organization_id, "test", message)  # type: ignore[arg-type]

    async def _ask(self, _: Any) -> Any:
        if self.answer is NOT_ASKED:
            raise AssertionError("what is stored says it all")
        return self.answer


@pytest.fixture
async def waiting(database: Database) -> Waiting:
    clock = SystemClock()
    ids = IdSource(clock, random.Random(3))
    async with database.transaction() as connection:
        made = await create_organization(connection, ids, name="Acme", now=clock.now(), random_bytes=os.urandom)
    return Waiting(database, made, ids)


async def test_a_message_that_was_refused_for_now_says_what_refused_it(waiting: Waiting) -> None:
    told = await waiting.told(WaitReason.RETRY, last_error="provider_error: refused for now")
    assert (told["reason"], told["detail"]) == ("retry", "provider_error: refused for now")


async def test_what_waits_for_its_repeat_is_uncertain_and_nothing_refused_it(waiting: Waiting) -> None:
    told = await waiting.told(WaitReason.RETRY, in_doubt=True)
    assert told == {"reason": "uncertain", "until": told["until"]}
    assert await waiting.told(None, in_doubt=True) == {"reason": "uncertain"}  # it is the next one, or behind others


OWN = [WaitReason.QUIET_HOURS, WaitReason.TEMPLATE_STATE, WaitReason.NUMBER_STATE, WaitReason.TIER_LIMIT]


@pytest.mark.parametrize("reason", [*OWN, WaitReason.SCHEDULED])
async def test_what_holds_a_message_alone_is_named(waiting: Waiting, reason: WaitReason) -> None:
    assert await waiting.named(reason) == reason


async def test_a_paused_batch_a_suspension_and_an_operator_come_before_it(waiting: Waiting) -> None:
    waiting.owners.paused("single", waiting.clock.now())
    for reason in OWN:
        assert await waiting.named(reason) == "owner_paused"
    await waiting.database.execute("update organizations set status = 'suspended', held_since = now()")
    for reason in OWN:
        assert await waiting.named(reason) == "organization_suspended"
    await waiting.database.execute("update numbers set operator_paused_at = now()")
    for reason in OWN:
        assert await waiting.named(reason) == "operator_paused"


@pytest.mark.parametrize("reason", [WaitReason.SCHEDULED, WaitReason.RETRY])
async def test_its_moment_comes_first(waiting: Waiting, reason: WaitReason) -> None:
    await waiting.database.execute("update numbers set operator_paused_at = now()")
    assert await waiting.named(reason) == reason


@pytest.mark.parametrize(
    ("change", "first"),
    [
        ("status = 'disconnected'", {"reason": "number_state", "detail": "the number is disconnected"}),
        ("quality_rating = 'red'", {"reason": "quality"}),
    ],
)
@pytest.mark.parametrize("later", [WaitReason.TIER_LIMIT, WaitReason.PAIR_LIMIT])
async def test_a_gate_that_closed_since_is_named_before_a_later_one(
    waiting: Waiting, later: WaitReason, change: str, first: dict[str, str]
) -> None:
    if later is WaitReason.PAIR_LIMIT:  # limits of the whole number come before it
        waiting.answer = None
    assert await waiting.named(later) == later
    waiting.answer = NOT_ASKED
    await waiting.database.execute(f"update numbers set {change}")
    told = await waiting.told(later)
    if "detail" in told:
        told["detail"], _, remedy = told["detail"].partition(": ")
        assert remedy.startswith(f"connect it with POST /numbers/{waiting.made.number.id}/connect")
    assert told == first
    assert await waiting.named(WaitReason.TEMPLATE_STATE) == "template_state"  # which comes before both


async def test_the_state_or_limit_that_holds_a_message_is_told(waiting: Waiting) -> None:
    template = await add_template(waiting.database, waiting.clock, waiting.ids, waiting.made.number)
    waiting.template_id = template.id
    await waiting.database.execute("update templates set status = 'paused'")
    assert await waiting.told(None) == {"reason": "template_state", "detail": "the template is paused"}
    assert (await waiting.told(WaitReason.TIER_LIMIT))["reason"] == "template_state"
    await waiting.database.execute("update templates set status = 'approved'")
    await waiting.database.execute("update numbers set messaging_tier = 'tier_1k', per_day = 700")
    assert (await waiting.told(WaitReason.TIER_LIMIT))["detail"] == "the number's tier is tier_1k"
    waiting.answer = SimpleNamespace(holding=Hold(WaitReason.DAILY_LIMIT))
    assert await waiting.told(None) == {"reason": "daily_limit", "detail": "the number's perDay is 700"}
    assert (await waiting.told(WaitReason.PAIR_LIMIT))["reason"] == "daily_limit"
    waiting.answer = None
    assert (await waiting.told(WaitReason.PAIR_LIMIT))["reason"] == "pair_limit"


async def test_how_many_are_ahead_is_told_also_when_the_number_does_not_answer(waiting: Waiting) -> None:
    waiting.answer = None
    assert await waiting.told(None) == {"reason": "rate"}
    assert await waiting.told(None) == {"reason": "behind", "ahead": 1}
    waiting.answer = SimpleNamespace(holding=None, ready_at=waiting.clock.now(), per_second=2.0)
    told = await waiting.told(None)
    assert (told["reason"], told["ahead"]) == ("behind", 2)
    assert told["until"] == format_timestamp(waiting.answer.ready_at + timedelta(seconds=1))
