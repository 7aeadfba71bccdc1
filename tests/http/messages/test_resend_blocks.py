"""A resend of more than a block is built after the answer: what was replaced meanwhile is left out (C15.4)."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.http.messages.resending import many_failed, resend

from recado.services.batches.channel_batches import MANY
from recado.services.batches.chatapp_batches import ChatAppBatches
from recado.storage.messages import replacements
from recado.storage.messages.resends import Old


async def test_more_than_a_block_is_built_after_the_answer(mail: Any) -> None:
    await many_failed(mail, 2_500)
    answer = await resend(mail, {"filter": {"campaignId": "spring"}})
    batch = answer.body["batch"]
    assert (answer.body["matched"], batch["status"], batch["totals"]["accepted"]) == (2_500, "building", 1_000)
    key = (mail.organization_id, "test", batch["id"])
    assert [await mail.maker.make_next(key) for _ in range(2)] == [1, 0]
    database = mail.api.database
    assert await database.fetchval("select count(*) from messages where batch_id = $1", batch["id"]) == 2_500
    assert await database.fetchval("select count(*) from messages where replaced_by is not null") == 2_500
    assert (await mail.api.get("/v2/campaigns/spring")).body["totals"]["queued"] == 2_501


async def test_messages_are_looked_at_some_in_a_turn_of_the_loop(mail: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each may have a payload that is read, and a resend takes ten thousand (C31)."""
    looked_at: list[int] = []
    copies = ChatAppBatches.copies

    async def noting(self: ChatAppBatches, where: Any, olds: Sequence[Old], *more: Any) -> Any:
        looked_at.append(len(olds))
        return await copies(self, where, olds, *more)

    monkeypatch.setattr(ChatAppBatches, "copies", noting)
    await many_failed(mail, 600)
    assert (await resend(mail, {"filter": {"campaignId": "spring"}})).body["matched"] == 600
    assert looked_at == [MANY, MANY, 600 - 2 * MANY]


async def test_what_was_replaced_before_its_block_is_built_is_left_out(mail: Any) -> None:
    ids = await many_failed(mail, 1_002)
    batch_id = (await resend(mail, {"filter": {"campaignId": "spring"}})).body["batch"]["id"]
    assert (await mail.api.post(f"/messages/{ids[-1]}/reprocess")).status == 201
    assert await mail.maker.make_next((mail.organization_id, "test", batch_id)) == 0
    row = await mail.api.database.fetchrow(
        "select b.skipped, b.skipped_reasons, t.accepted from batches b join totals t on t.key = b.id where b.id = $1",
        batch_id,
    )
    assert tuple(row) == (1, {"ALREADY_REPLACED": 1}, 1_001)


async def test_a_resend_of_which_all_was_replaced_before_it_is_built_has_failed(
    mail: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await many_failed(mail, 1_002)

    async def none_is_left(*_: Any) -> set[str]:
        return set()

    monkeypatch.setattr(replacements, "lock", none_is_left)
    batch_id = (await resend(mail, {"filter": {"campaignId": "spring"}})).body["batch"]["id"]
    key = (mail.organization_id, "test", batch_id)
    assert await mail.maker.make_next(key) == 0
    row = await mail.api.database.fetchrow(
        "select status, open, skipped, finished_at is not null as finished from batches where id = $1", batch_id
    )
    assert tuple(row) == ("failed", False, 1_002, True)
