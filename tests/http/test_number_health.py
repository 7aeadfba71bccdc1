"""The health of a number (C14.3)."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from recado.channels.core.errors import ProviderError
from recado.channels.core.provider import NumberHealth
from recado.domain.dispatch.gates import FOREVER, Hold
from recado.domain.messages.changes import NumberChanged
from recado.domain.messages.message import WaitReason
from recado.http.routes.senders import number_health


async def health(api: Any, **how: Any) -> Any:
    answer = await api.get(f"/numbers/{api.organizations[0].number.id}/health", **how)
    assert answer.status == 200, answer.body
    return answer.body


def test_provider(api: Any) -> Any:
    return api.providers["test"]


test_provider.__test__ = False  # type: ignore[attr-defined]


async def test_a_live_answer_updates_the_record(api: Any) -> None:
    test_provider(api).health = NumberHealth(
        verified=True,
        status="flagged",
        quality_rating="yellow",
        messaging_tier="tier_10k",
        name_status="rejected",
        verified_name="Loja",
        per_second=60,
        profile={"about": "Hi"},
        issues=(("templates", "Too many rejections."),),
    )
    seen = await health(api)
    number = (await api.get(f"/numbers/{api.organizations[0].number.id}")).body
    assert seen["checkedAt"] >= number["lastProviderSyncAt"]
    flagged = (
        "only critical messages and replies leave until the provider clears it; "
        f"in test, POST /v2/sandbox/numbers/{number['id']} with status connected does"
    )
    assert seen | {"checkedAt": ""} == {
        "numberId": number["id"],
        "checkedAt": "",
        "live": True,
        "status": "flagged",
        "qualityRating": "yellow",
        "messagingTier": "tier_10k",
        "nameStatus": "rejected",
        "verifiedName": "Loja",
        "canSend": "limited",
        "issues": [
            {"code": "number_state", "message": f"The number is flagged: {flagged}."},
            {"code": "quality", "message": "The quality is yellow: the pace is cut."},
            {"code": "name_status", "message": "The display name is rejected."},
            {"code": "templates", "message": "Too many rejections."},
        ],
        "throughput": {"perSecond": 40.0},
        "profile": {"about": "Hi"},
        "queue": {"critical": 0, "normal": 0, "bulk": 0},
        "window24h": {"sent": 0, "uniqueRecipients": 0, "tierLimit": 10_000},
    }
    assert (number["status"], number["qualityRating"], number["messagingTier"]) == ("flagged", "yellow", "tier_10k")
    assert number["meta"]["nameStatus"] == "rejected"
    assert number["profile"] == {"about": "Hi"}


async def test_a_provider_that_is_away_leaves_the_stored_values(api: Any) -> None:
    test_provider(api).failures["number_health"] = ProviderError("unreachable", "timeout", "no answer in time")
    seen = await health(api)
    assert (seen["live"], seen["status"], seen["canSend"]) == (False, "connected", "available")
    assert seen["error"]
    assert (await api.get(f"/numbers/{seen['numberId']}")).body["lastProviderSyncAt"] is None


async def test_a_provider_that_hangs_leaves_the_stored_values(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(_: object) -> NumberHealth:
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nobody ends it")

    monkeypatch.setattr(number_health, "PATIENCE", 0.05)
    monkeypatch.setattr(test_provider(api), "number_health", hang)
    seen = await health(api)
    assert (seen["live"], seen["status"], seen["error"]) == (False, "connected", "the provider did not answer in time")


async def test_an_answer_that_came_in_time_is_stored_and_told_however_long_that_takes(
    api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = api.organizations[0].number
    test_provider(api).health = NumberHealth(verified=True, status="connected", quality_rating="red")
    api.changes.clear()
    # Enough for a provider that answers at once, and for no statement.
    monkeypatch.setattr(number_health, "PATIENCE", 0.0)
    seen = await health(api)
    assert (seen["live"], seen["qualityRating"], "error" in seen) == (True, "red", False)
    assert NumberChanged(number.organization_id, "test", number.id) in api.changes


async def test_an_answer_holds_for_ten_seconds(api: Any) -> None:
    answers = await asyncio.gather(*(health(api) for _ in range(8)))
    assert all(answer == answers[0] for answer in answers)
    api.clock.shift(8)
    assert await health(api) == answers[0]
    assert len(test_provider(api).asked_for("number_health")) == 1
    api.clock.shift(3)
    assert (await health(api))["checkedAt"] > answers[0]["checkedAt"]
    assert len(test_provider(api).asked_for("number_health")) == 2


@pytest.mark.parametrize(
    ("reason", "seconds", "can_send", "says"),
    [
        (WaitReason.NO_CONNECTION, 5.0, "blocked", "nothing leaves until 2"),
        (WaitReason.NO_CONNECTION, None, "blocked", "one message is tried now"),
        (WaitReason.NO_CONNECTION, 0.0, "limited", "the next message is tried"),  # else nobody would send it
        (WaitReason.NUMBER_PAUSED, 5.0, "limited", "wait until 2"),
    ],
)
async def test_a_number_that_does_not_reach_its_provider_cannot_send_and_says_why(
    api: Any, reason: WaitReason, seconds: float | None, can_send: str, says: str
) -> None:
    assert (await health(api))["canSend"] == "available"
    until = FOREVER if seconds is None else api.clock.now() + timedelta(seconds=seconds)
    number_id = api.organizations[0].number.id
    api.troubles[number_id] = Hold(reason, until)
    seen = await health(api)  # at once, though the rest of the answer holds for ten seconds
    [issue] = seen["issues"]
    assert (seen["canSend"], issue["code"]) == (can_send, reason)
    assert says in issue["message"]
    await api.post(f"/v2/sandbox/numbers/{number_id}", {"status": "disconnected"})
    seen = await health(api)
    assert (seen["canSend"], [each["code"] for each in seen["issues"]]) == ("blocked", [reason, "number_state"])
    del api.troubles[number_id]
    assert (await health(api))["canSend"] == "blocked"


async def test_a_change_of_the_number_shows_at_once(api: Any) -> None:
    await health(api)
    number_id = api.organizations[0].number.id
    await api.post(f"/v2/sandbox/numbers/{number_id}", {"qualityRating": "red", "status": "disconnected"})
    seen = await health(api)
    assert (seen["canSend"], seen["qualityRating"], seen["throughput"]) == ("blocked", "red", {"perSecond": 20.0})


async def test_the_queue_and_the_window_are_counted(api: Any) -> None:
    number = api.organizations[0].number
    now = api.clock.now()
    for klass, count in ((0, 1), (2, 3)):
        for _ in range(count):
            await api.database.execute(
                "insert into dispatch (organization_id, id, env, channel, sender_id, class, owner, due_at, ttl_ms, "
                "expires_at, held_base_ms, force) "
                "values ($1, $2, 'test', 'chatapp', $3, $4, 'single', $5, 1000, $5, 0, false)",
                number.organization_id, api.ids.new("msg_"), number.id, klass, now,
            )  # fmt: skip
    await api.database.execute("update dispatch set claimed_epoch = 1, claimed_at = $1 where class = 0", now)
    minute = now.replace(second=0, microsecond=0)
    await api.database.execute(
        "insert into sender_minutes (organization_id, sender_id, minute, sent, marketing, uncategorized) "
        "values ($1, $2, $3, 5, 0, 0), ($1, $2, $4, 7, 0, 0), ($1, $2, $5, 100, 0, 0)",
        number.organization_id, number.id, minute, minute - timedelta(hours=23), minute - timedelta(hours=25),
    )  # fmt: skip
    await api.database.execute(
        "insert into tier_recipients (organization_id, sender_id, recipient_hash, last_at) "
        "values ($1, $2, 1, $3), ($1, $2, 2, $4)",
        number.organization_id, number.id, now, now - timedelta(hours=25),
    )  # fmt: skip
    seen = await health(api)
    assert seen["queue"] == {"critical": 0, "normal": 0, "bulk": 3}
    assert seen["window24h"] == {"sent": 12, "uniqueRecipients": 1, "tierLimit": None}


async def test_numbers_are_looked_at_every_fifteen_minutes(api: Any) -> None:
    await api.refresh.run("test")
    assert test_provider(api).asked_for("number_health") == []
    api.clock.shift(15 * 60 + 1)
    await asyncio.gather(*(api.refresh.run("test") for _ in range(4)))  # as of several processes
    asked = test_provider(api).asked_for("number_health")
    assert sorted(account.sender_id for account in asked) == sorted(o.number.id for o in api.organizations)
    api.clock.shift(15 * 60 + 1)
    await api.refresh.run("test")
    assert len(test_provider(api).asked_for("number_health")) == 4


async def test_a_number_that_another_process_has_in_hand_is_left_to_it(api: Any) -> None:
    api.clock.shift(15 * 60 + 1)
    first, second = (organization.number.id for organization in api.organizations)
    async with api.database.transaction() as elsewhere:
        await elsewhere.execute("select from numbers where id = $1 for update", first)
        async with asyncio.timeout(60):
            await api.refresh.run("test")
    assert [account.sender_id for account in test_provider(api).asked_for("number_health")] == [second]
