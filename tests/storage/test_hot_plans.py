"""Statements for many messages reach each by its whole key, also by a plan made while the tables were empty."""

import re

import pytest
from tests.storage.test_events import plan_of

from recado.storage import batch_making, dispatch, messages, receipts, replacements
from recado.storage.postgres import Database

STATEMENTS = {
    "accept": messages.ACCEPT,
    "make": batch_making.MAKE,
    "claim": dispatch.SQL.claim,
    "sent": dispatch.SQL.sent,
    "failed": dispatch.SQL.failed,
    "returned": dispatch.SQL.returned,
    "uncertain": dispatch.SQL.uncertain,
    "hold": dispatch.SQL.hold,
    "apply": receipts.SQL.apply,
    "lock": replacements.SQL.lock,
    "replace": replacements.SQL.replace,
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
