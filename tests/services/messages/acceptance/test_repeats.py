"""What a repeat of a request gets (C6.2, "Sends")."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from recado.domain.channels.policies import POLICIES
from recado.domain.core.errors import Unavailable
from recado.domain.senders.number import NumberStatus
from recado.services.messages import acceptance
from recado.services.messages.acceptance import AcceptedMessage, Replayed
from recado.services.messages.draft import MessageDraft
from recado.storage.core.audit import AuditPrincipal
from recado.storage.messages.message_reads import Message
from recado.storage.messages.messages import NewMessage

OPERATOR = AuditPrincipal("key", "key_000000000000000000001", ip="203.0.113.9", request_id="req_1")
BODY = ({"type": "BODY", "payload": {"text": "Hello {{1}}, code {{2}}!"}},)


class Closed:
    """A gateway that has no turn for anything."""

    def has_turn(self, new: NewMessage) -> bool:
        return False

    async def send(self, new: NewMessage) -> Any:
        raise Unavailable


def keyed(draft: MessageDraft, key: bytes = b"k" * 32, asked: bytes = b"f" * 32) -> MessageDraft:
    return replace(draft, key_hash=key, fingerprint=asked)


async def replayed(house: Any, draft: MessageDraft) -> Message:
    outcome = await house.acceptance.accept(draft)
    assert isinstance(outcome, Replayed)
    return outcome.message


async def test_a_repeat_shows_the_message_as_it_is_now(house: Any) -> None:
    first = await house.accepted(keyed(house.draft()))
    await house.db.execute("update messages set status = 'sent' where id = $1", first.id)
    again = await replayed(house, keyed(house.draft()))
    assert (again.id, again.status) == (first.id, "sent")
    assert await house.stored() == 1


async def test_a_repeat_of_what_was_sent_directly_waits_for_no_turn(
    house: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await house.accepted(keyed(house.draft()))
    direct = replace(POLICIES["chatapp"], direct=True)
    monkeypatch.setattr(acceptance, "POLICIES", {"chatapp": direct})
    monkeypatch.setattr(house.acceptance, "_direct", Closed())
    assert (await replayed(house, keyed(house.draft()))).id == first.id
    with pytest.raises(Unavailable):
        await house.acceptance.accept(keyed(house.draft(), key=b"n" * 32))


async def test_a_key_with_another_request_is_refused(house: Any) -> None:
    await house.accepted(keyed(house.draft()))
    refusal = await house.refusal(keyed(house.draft(to="+5511987650000"), asked=b"g" * 32))
    assert (refusal.status, refusal.code) == (422, "IDEMPOTENCY_KEY_REUSED")
    # Also when the other request would have been refused for itself.
    refusal = await house.refusal(keyed(house.draft(template_vars=[]), asked=b"g" * 32))
    assert refusal.code == "IDEMPOTENCY_KEY_REUSED"


async def test_keys_of_organizations_and_environments_are_apart(house: Any) -> None:
    await house.accepted(keyed(house.draft()))
    refusal = await house.refusal(keyed(house.draft(env="live"), asked=b"g" * 32))
    assert refusal.code == "REFERENCE_NOT_FOUND"


async def test_a_repeat_is_replayed_although_the_rules_would_refuse_it_by_now(house: Any) -> None:
    first = await house.accepted(keyed(house.draft()))
    await house.set_number(status=NumberStatus.DISCONNECTED)
    assert (await replayed(house, keyed(house.draft()))).id == first.id


async def test_requests_at_the_same_time_with_one_key_make_one_message(house: Any) -> None:
    outcomes = await asyncio.gather(*(house.acceptance.accept(keyed(house.draft())) for _ in range(20)))
    assert sum(isinstance(outcome, AcceptedMessage) for outcome in outcomes) == 1
    assert len({outcome.message.id for outcome in outcomes}) == 1
    assert await house.stored() == 1


@pytest.mark.parametrize("last_error", ["recipient_unreachable: no", "expired: too late", "provider_error: 5 times"])
async def test_after_a_definite_refusal_a_repeat_sends_again(house: Any, last_error: str) -> None:
    first = await house.accepted(keyed(house.draft()))
    await house.fail(first.id, last_error)
    second = await house.accepted(keyed(house.draft()))
    assert second.id != first.id
    assert (await replayed(house, keyed(house.draft()))).id == second.id
    assert await house.stored() == 2


async def test_a_message_that_may_have_left_is_never_sent_again(house: Any) -> None:
    first = await house.accepted(keyed(house.draft()))
    await house.fail(first.id, "outcome_unknown: no report")
    assert (await replayed(house, keyed(house.draft()))).id == first.id
    await house.fail(first.id, "recipient_unreachable: reported", sent=True)
    assert (await replayed(house, keyed(house.draft()))).id == first.id


async def test_a_refused_message_whose_request_is_no_longer_acceptable_stays_refused(house: Any) -> None:
    first = await house.accepted(keyed(house.draft()))
    await house.fail(first.id, "recipient_unreachable: no")
    await house.set_number(status=NumberStatus.DISCONNECTED)
    assert (await house.refusal(keyed(house.draft()))).code == "NUMBER_UNAVAILABLE"


async def test_a_key_is_free_again_after_a_day(house: Any) -> None:
    first = await house.accepted(keyed(house.draft()))
    await house.clock.advance(24 * 3600 - 1)
    assert (await replayed(house, keyed(house.draft()))).id == first.id
    await house.clock.advance(2)
    second = await house.accepted(keyed(house.draft(to="+5511987650000"), asked=b"g" * 32))
    assert second.id != first.id


async def test_a_forced_repeat_is_not_audited_twice(house: Any) -> None:
    first = await house.accepted(keyed(house.draft(forced_by=OPERATOR)))
    assert (await replayed(house, keyed(house.draft(forced_by=OPERATOR)))).id == first.id
    assert await house.db.fetchval("select count(*) from audit where action = 'message.force'") == 1


async def test_a_refusal_frees_the_key(house: Any) -> None:
    await house.refusal(keyed(house.draft(template_vars=[])))
    await house.accepted(keyed(house.draft(), asked=b"g" * 32))
