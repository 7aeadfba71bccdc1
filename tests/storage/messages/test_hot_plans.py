"""Statements for many messages reach each by its whole key, also by a plan made while the tables were empty."""

import re

import pytest
from tests.storage.webhooks.test_events import plan_of

from recado.engine.clock import SystemClock
from recado.storage.batches import batch_making
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.months import ANY_MONTH, in_month
from recado.storage.core.upkeep.partitions import partition
from recado.storage.dispatch import departures, dispatch, settlements
from recado.storage.messages import message_deadlines, messages, receipts, recipients, replacements, state_moves

MORE = "depart with more"
PLAIN, PLAIN_FROM_SHARED = "depart plainly", "depart plainly from shared senders"
SHARED = "sent from shared senders"
REPORTED = "apply to shared senders"
STATEMENTS = {
    "accept": messages.ACCEPT,
    "make": batch_making.MAKE,
    "claim": dispatch.SQL.claim,
    "sent": settlements.SENT,
    SHARED: settlements.SENT_FROM_SHARED,
    "depart": departures.DEPART.text,
    MORE: departures.DEPART_WITH_MORE.text,
    PLAIN: departures.PLAIN.text,
    PLAIN_FROM_SHARED: departures.PLAIN_FROM_SHARED.text,
    "left": message_deadlines.SQL.left,
    "lock by event": state_moves.SQL.lock,
    "move by event": state_moves.SQL.move,
    "as they are": state_moves.SQL.as_they_are,
    "failed": dispatch.SQL.failed,
    "returned": dispatch.SQL.returned,
    "uncertain": dispatch.SQL.uncertain,
    "hold": dispatch.SQL.hold,
    "apply": receipts.APPLY,
    REPORTED: receipts.APPLY_TO_SHARED,
    "lock": replacements.SQL.lock,
    "known": messages.SQL.known,
}


KEY = r"organization_id.* = .* AND .*id\)"


@pytest.mark.parametrize("name", STATEMENTS)
async def test_a_plan_from_before_the_first_message_finds_each_by_its_key(database: Database, name: str) -> None:
    plan = await plan_of(database, STATEMENTS[name])
    assert "Seq Scan" not in plan
    reads = re.findall(r"Scan using (?:messages|dispatch)_\w+ on .*\n\s+(.*)", plan)
    assert reads or "Insert on messages" in plan
    assert [read for read in reads if not re.match(rf"Index Cond: .*{KEY}", read)] == []


@pytest.mark.parametrize("name", [name for name, statement in STATEMENTS.items() if ANY_MONTH in statement])
async def test_messages_of_one_month_are_found_in_its_table_alone(database: Database, name: str) -> None:
    month, _, _ = partition(SystemClock().now())
    plan = await plan_of(database, in_month(STATEMENTS[name], month))
    assert "Seq Scan" not in plan
    assert set(re.findall(r" on (messages\w*)", plan)) == {month}
    reads = re.findall(rf"Scan using {month}_\w+ on .*\n\s+(.*)", plan)
    assert reads or f"Insert on {month}" in plan
    assert [read for read in reads if not re.match(rf"Index Cond: .*{KEY}", read)] == []


def test_every_move_of_many_messages_may_name_their_month() -> None:
    named = {name for name, statement in STATEMENTS.items() if ANY_MONTH in statement}
    usual = {"accept", "make", "claim", "sent", "depart", "failed", "returned", "apply"}
    assert named == usual | {MORE, PLAIN, PLAIN_FROM_SHARED, SHARED, REPORTED}


@pytest.mark.parametrize(
    "statement", [messages.ACCEPT, dispatch.SQL.claim, recipients.SQL.find], ids=["accept", "claim", "find"]
)
async def test_consent_is_looked_up_by_phone_and_hash_alone(database: Database, statement: str) -> None:
    """Never by reading whoever refused: tables that are empty when the plan is made are long ones later."""
    plan = await plan_of(database, statement)
    assert "Seq Scan" not in plan
    assert re.findall(r"using opt_outs_pkey on .*\n\s+Index Cond: .*organization_id.*env.*kind.*hash", plan)
    assert re.findall(r"using contacts_phone on .*\n\s+Index Cond: .*organization_id.*env.*phone", plan)
    scans = re.findall(r"using (\w+) on (?:contacts|opt_outs)\b", plan)
    assert set(scans) <= {"opt_outs_pkey", "contacts_phone", "contacts_pkey"}
