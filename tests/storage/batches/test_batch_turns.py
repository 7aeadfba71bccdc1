"""Whose batch is made or read next: one of each organization, and the batches of each in turn (C15.5)."""

import pytest

from recado.storage.batches.batches import next_in_turn
from recado.storage.core.connections.postgres import Database

FILL = """
insert into batches (organization_id, env, id, channel, sender_id, type, class, status, requested, skipped,
        skipped_reasons, errors, ttl_ms, held_base_ms, blocks_left, open, updated_at)
    select organization_id, 'test', id, 'chatapp', 'num_1', 'text', 2, status, 1, 0, '{}', '[]', 1, 0, 1, true, now()
    from (values
        ('org_1', 'btc_1', 'building'), ('org_1', 'btc_3', 'building'), ('org_1', 'btc_4', 'building'),
        ('org_1', 'btc_6', 'building'), ('org_2', 'btc_2', 'paused'), ('org_3', 'btc_5', 'building'),
        ('org_4', 'btc_7', 'building')
    ) as made (organization_id, id, status);
insert into batch_blocks
    select organization_id, id, 1, '[]' from batches where id not in ('btc_4', 'btc_6', 'btc_7');
"""


@pytest.mark.parametrize(
    ("in_blocks", "last", "without", "expected"),
    [
        (True, {}, (), ["btc_1", "btc_5"]),
        (True, {"org_1": "btc_1"}, (), ["btc_3", "btc_5"]),
        (True, {"org_1": "btc_3", "org_3": "btc_5"}, (), ["btc_1", "btc_5"]),
        (True, {"org_1": "btc_2"}, (), ["btc_3", "btc_5"]),
        (True, {"org_1": "btc_3"}, ("btc_1",), ["btc_3", "btc_5"]),
        (True, {}, ("btc_1", "btc_3"), ["btc_5"]),
        (True, {}, ("btc_1", "btc_3", "btc_5"), []),
        (False, {}, (), ["btc_4", "btc_7"]),
        (False, {"org_1": "btc_4"}, (), ["btc_6", "btc_7"]),
        (False, {"org_1": "btc_6", "org_4": "btc_7"}, (), ["btc_4", "btc_7"]),
    ],
)
async def test_each_organization_has_one_batch_the_next_one_in_its_turn(
    database: Database, in_blocks: bool, last: dict[str, str], without: tuple[str, ...], expected: list[str]
) -> None:
    await database.execute(FILL)
    found = await next_in_turn(database, in_blocks=in_blocks, last=last, without=without)
    assert [batch_id for _, _, batch_id in found] == expected
    assert {env for _, env, _ in found} <= {"test"}


async def test_nothing_is_made_where_nothing_is_left(database: Database) -> None:
    assert await next_in_turn(database, in_blocks=True, last={"org_1": "btc_1"}) == []
