"""The simulated hosted API as the adapter meets it: sends, errors, and the webhooks that follow."""

from dataclasses import replace
from typing import Any

import pytest
from tests.simulator.cloud.conftest import ACCOUNT, MESSAGE, TEMPLATE, Play, Service
from tests.waiting import until

from recado.channels.core.events import Status
from recado.channels.core.provider import Accepted, Down, Refused, Retry, SlowDown, SlowPair, Unknown
from recado.simulator.behaviour import Given
from recado.simulator.record import read_record, unsent


async def test_an_accepted_message_is_recorded_and_reported(play: Play, app: Service) -> None:
    stage = await play()

    outcome = await stage.cloud.send(MESSAGE, ACCOUNT, 1)

    assert isinstance(outcome, Accepted)
    (request,) = read_record(stage.record)
    assert (request.id, request.number, request.outcome) == (MESSAGE.id, ACCOUNT.provider_id, Given.ACCEPTED)
    for personal in ("secret of the house", "87654321", "EAAB"):
        assert personal not in stage.record.read_text()
    events = await app.has(3)
    assert [event.status for event in events] == ["sent", "delivered", "read"]
    for event in events:
        assert isinstance(event, Status)
        assert (event.reference, event.provider_message_id) == (MESSAGE.id, outcome.provider_message_id)
        assert event.account == ACCOUNT.provider_id


@pytest.mark.parametrize(
    ("shares", "outcome"),
    [({"slow_down": 1}, SlowDown(3.0)), ({"error": 1}, Unknown()), ({"lost": 1}, Unknown())],
)
async def test_trouble_comes_in_the_words_of_the_api(shares: dict[str, float], outcome: Any, play: Play) -> None:
    stage = await play(timeout=1.0, **shares)

    assert await stage.cloud.send(MESSAGE, ACCOUNT, 1) == outcome


async def test_a_refusal_has_a_code_that_the_service_knows(play: Play) -> None:
    stage = await play(refuse=1)

    outcome = await stage.cloud.send(MESSAGE, ACCOUNT, 1)

    assert isinstance(outcome, Refused)
    assert outcome.code != "provider_error"


async def test_seeded_codes_meet_the_share_that_was_asked_for(play: Play) -> None:
    stage = await play(codes={131056: 0.5, 368: 0.1}, silent=1)

    outcomes = [await stage.cloud.send(replace(MESSAGE, id=f"msg_{number:021}"), ACCOUNT, 1) for number in range(200)]

    assert 70 <= outcomes.count(SlowPair(6.0)) <= 130
    assert 8 <= outcomes.count(Down("account_blocked")) <= 40
    assert [it.outcome for it in read_record(stage.record)].count(Given.CODED) == sum(
        not isinstance(outcome, Accepted) for outcome in outcomes
    )


async def test_the_next_sends_meet_the_errors_that_were_ordered(play: Play) -> None:
    stage = await play(silent=1)
    assert (await stage.control("errors", code=131000, times=2))[0] == 200
    await stage.control("errors", code=190, number=ACCOUNT.provider_id)

    outcomes = [await stage.cloud.send(MESSAGE, ACCOUNT, 1) for _ in range(4)]

    assert outcomes[:3] == [Down("unauthorized"), Retry(None), Retry(None)]
    assert isinstance(outcomes[3], Accepted)


async def test_receipts_may_come_early_twice_and_in_another_order(play: Play, app: Service) -> None:
    stage = await play(early=1, duplicate=1, shuffle=1)

    await stage.cloud.send(MESSAGE, ACCOUNT, 1)

    assert app.events, "the first receipt had been taken when the answer came"
    events = await app.has(5)
    assert sorted(event.status for event in events) == ["delivered", "delivered", "read", "read", "sent"]


async def test_a_failed_delivery_tells_its_code(play: Play, app: Service) -> None:
    stage = await play(undelivered=1, unreferenced=1)

    await stage.cloud.send(MESSAGE, ACCOUNT, 1)

    event = (await app.has(2))[1]
    assert (event.status, event.code, event.reference) == ("failed", "recipient_unreachable", None)


async def test_receipts_that_were_left_are_sent_by_the_next_life(play: Play, app: Service) -> None:
    first = await play(receipt_delay=0.0)
    app.refuses = True
    outcome = await first.cloud.send(MESSAGE, ACCOUNT, 1)
    await first.cloud.submit_template(ACCOUNT, TEMPLATE)
    await first.simulator.stop()
    assert isinstance(outcome, Accepted)
    assert [place for _, place in unsent(first.record)] == [0, 1, 2]

    app.refuses = False
    second = await play()

    statuses = [event for event in await app.has(3) if isinstance(event, Status)]
    assert [event.status for event in statuses] == ["sent", "delivered", "read"]
    assert {event.reference for event in statuses} == {MESSAGE.id}
    await until(lambda: not unsent(second.record), "the record says that nothing is left")
    assert "ola" in {each.name for each in await second.cloud.list_templates(ACCOUNT)}
    assert app.unsigned == 0
    again = await second.cloud.send(replace(MESSAGE, id="msg_0000000100000000000a2"), ACCOUNT, 1)
    assert isinstance(again, Accepted)
    assert again.provider_message_id != outcome.provider_message_id
