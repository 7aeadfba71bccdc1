"""Resends at the same time, and repeated ones: each failed message is copied once (C15.4, C6.2)."""

import asyncio
from typing import Any

from tests.http.messages.resending import NOWHERE, failed, resend


async def test_of_many_resends_at_once_each_message_is_copied_once(mail: Any) -> None:
    ids = [await failed(mail) for _ in range(10)]
    answers = await asyncio.gather(*(resend(mail, {"messageIds": ids}) for _ in range(6)))
    assert {answer.status for answer in answers} == {202}
    assert sum(answer.body["matched"] for answer in answers) == 10
    for answer in answers:
        assert answer.body["matched"] + sum(answer.body["skipped"].values()) == 10
        assert answer.body["batch"]["totals"]["accepted"] == answer.body["matched"]
    assert await mail.stored() == 20
    pointers = await mail.api.database.fetch("select replaced_by from messages where replaced_by is not null")
    assert len({row["replaced_by"] for row in pointers}) == 10
    held = await mail.api.database.fetchval("select held_coins from wallets where env = 'test' and held_coins > 0")
    assert held == 10 * 600


async def test_a_resend_and_a_reprocess_at_once_make_one_copy(mail: Any) -> None:
    old = await failed(mail)
    first, second = await asyncio.gather(
        resend(mail, {"messageIds": [old]}), mail.api.post(f"/messages/{old}/reprocess")
    )
    assert (first.body["matched"], second.status) in {(1, 409), (0, 201)}
    assert await mail.stored() == 2


async def test_a_repeat_under_the_same_key_shows_the_batch_as_it_is_now(mail: Any) -> None:
    ids, key = [await failed(mail), NOWHERE], {"Idempotency-Key": "again"}
    first = await resend(mail, {"messageIds": ids}, headers=key)
    again = await resend(mail, {"messageIds": ids}, headers=key)
    assert (again.status, again.body["matched"], again.body["skipped"]) == (202, 1, {"NOT_FOUND": 1})
    assert again.body["batch"]["id"] == first.body["batch"]["id"]
    assert again.headers["Idempotency-Replayed"] == "true"
    other = await resend(mail, {"messageIds": [NOWHERE]}, headers=key)
    assert (other.status, other.code) == (422, "IDEMPOTENCY_KEY_REUSED")
    assert await mail.stored() == 2


async def test_requests_at_once_under_one_key_make_one_batch(mail: Any) -> None:
    ids, key = [await failed(mail) for _ in range(3)], {"Idempotency-Key": "again"}
    answers = await asyncio.gather(*(resend(mail, {"messageIds": ids}, headers=key) for _ in range(8)))
    assert {answer.status for answer in answers} == {202}
    assert len({answer.body["batch"]["id"] for answer in answers}) == 1
    assert await mail.stored() == 6
    assert await mail.api.database.fetchval("select count(*) from batches") == 1
