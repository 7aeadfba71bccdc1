"""What operators see and order over HTTP: whose it is, in which order, pauses and restarts (C34)."""

from datetime import timedelta
from typing import Any

import pytest
from tests.http.conftest import ADMIN_TOKEN
from tests.http.registering import available
from tests.refusals import comparable
from tests.waiting import until

from recado.channels.http.guarded_http import Response
from recado.domain.channels.policies import NUMBERS_CHANNEL
from recado.domain.messages.changes import NumberChanged
from recado.domain.messages.message import Cause
from recado.domain.senders.sender import SenderKey
from recado.engine.actor import Actor
from recado.storage.dispatch.settlements import Failed

WEBHOOK = {"url": "https://hooks.example.com/", "events": ["wallet.depleted"]}
QUEUED = """
insert into dispatch (organization_id, id, env, channel, sender_id, class, owner, due_at, not_before, reason, ttl_ms,
    expires_at, held_base_ms, force, claimed_epoch, claimed_at)
select $1, 'msg_' || lpad(n::text, 21, $3::text), 'test', $10, $2, $4, 'single', $5, $6, $7, 1000, $5, 0, false, $8, $9
from generate_series(1, $11::integer) n
"""


class Idle(Actor):
    """Waits."""

    async def handle(self, message: object) -> None:
        if message == "break":
            raise LookupError("+5511987651234 is in the text of the error")


async def queue(
    api: Any, number: Any, count: int, *, klass: int = 1, age: float = 0.0, reason: str | None = None,
    until: Any = None, organization: int = 0, claimed: bool = False, mark: str = "0",
) -> None:  # fmt: skip
    """Put rows into the queue of a number as its messages would have them."""
    now = api.clock.now()
    owner = api.organizations[organization].organization.id
    claim = (1, now) if claimed else (None, None)
    await api.database.execute(
        QUEUED, owner, number, mark, klass, now - timedelta(seconds=age), until, reason, *claim, NUMBERS_CHANNEL, count
    )


def lane(api: Any, organization: int = 0, env: str = "test", number: str | None = None) -> SenderKey:
    made = api.organizations[organization]
    return SenderKey(made.organization.id, env, NUMBERS_CHANNEL, number or made.number.id)


async def listed(api: Any, path: str, **how: Any) -> list[Any]:
    """The items as they are when what was read before counts no more."""
    samples = api.samples
    kept = (samples.numbers, samples.actors, samples.webhooks, samples.providers, samples._webhooks._backlogs)
    for each in (*kept, api.states.queues):
        each._answers.clear()
    api.states._scopes.clear()
    answer = await api.get(path, **how)
    assert answer.status == 200, answer.body
    items: list[Any] = answer.body["items"]
    return items


async def test_a_number_that_has_nothing_to_do_shows_what_is_stored(api: Any) -> None:
    (number,) = await listed(api, "/v2/ops/numbers")
    assert number == {
        "organizationId": api.organizations[0].organization.id,
        "env": "test",
        "numberId": api.organizations[0].number.id,
        "displayPhone": "+1******0100",
        "status": "connected",
        "qualityRating": "green",
        "messagingTier": "unlimited",
        "actor": {"state": "stopped", "restarts": 0},
        "rate": {"perSecond": 80.0, "tokens": 17.0, "sentLastSecond": 0, "sentLastMinute": 0},
        "day": {"used": 0, "limit": 100_000},
        "tier": {"used": None, "limit": None},
        "queue": {"critical": 0, "normal": 0, "bulk": 0, "scheduled": 0},
        "oldestAgeSeconds": 0,
        "inFlight": 0,
        "uncertain": 0,
        "errorRate5m": 0.0,
        "lastErrors": {},
        "breaker": "closed",
    }


async def test_what_waits_is_counted_by_class_with_the_age_of_the_oldest(api: Any) -> None:
    number = api.organizations[0].number.id
    later = api.clock.now() + timedelta(hours=1)
    await queue(api, number, 2, klass=0, age=5, mark="1")
    await queue(api, number, 3, klass=1, age=90, mark="2")
    await queue(api, number, 4, klass=2, mark="3", reason="quiet_hours", until=later)
    await queue(api, number, 5, klass=1, mark="4", reason="scheduled", until=later, age=-3_600)
    await queue(api, number, 6, klass=1, mark="5", reason="uncertain", until=later, claimed=True)
    await queue(api, number, 7, klass=1, mark="6", claimed=True)
    (seen,) = await listed(api, "/v2/ops/numbers")
    assert seen["queue"] == {"critical": 2, "normal": 3, "bulk": 4, "scheduled": 5}
    assert seen["uncertain"] == 6
    assert 90 <= seen["oldestAgeSeconds"] <= 92
    assert seen["holding"]["reason"] == "rate"
    assert seen["drainSeconds"] == 1
    alone = (await api.get(f"/v2/ops/numbers/{number}")).body
    assert {name: alone[name] for name in ("queue", "uncertain", "holding", "drainSeconds")} == {
        name: seen[name] for name in ("queue", "uncertain", "holding", "drainSeconds")
    } | {"holding": alone["holding"]}


async def test_the_head_of_a_queue_says_what_holds_it(api: Any) -> None:
    number = api.organizations[0].number.id
    later = api.clock.now() + timedelta(hours=1)
    await queue(api, number, 1, klass=2, mark="1", reason="quiet_hours", until=later)
    await queue(api, number, 1, klass=1, mark="2", reason="tier_limit", until=later)
    (seen,) = await listed(api, "/v2/ops/numbers")
    assert seen["holding"]["reason"] == "tier_limit"
    assert "until" in seen["holding"]
    assert "drainSeconds" not in seen
    await api.database.execute("update dispatch set reason = 'template_state', not_before = 'infinity'")
    (seen,) = await listed(api, "/v2/ops/numbers")
    assert seen["holding"] == {"reason": "template_state"}


async def test_usage_of_the_day_and_of_the_tier_is_read_of_numbers_without_an_actor(api: Any) -> None:
    made = api.organizations[0]
    owner, number, now = made.organization.id, made.number.id, api.clock.now()
    await api.database.execute("update numbers set messaging_tier = 'tier_250', per_day = 10 where id = $1", number)
    for minutes, sent in ((1, 7), (60, 4), (25 * 60, 50)):
        await api.database.execute(
            "insert into sender_minutes (organization_id, sender_id, minute, sent, marketing, uncategorized) "
            "values ($1, $2, date_trunc('minute', $3::timestamptz), $4, 0, 0)",
            owner, number, now - timedelta(minutes=minutes), sent,
        )  # fmt: skip
    for recipient, hours in ((1, 1), (2, 23), (3, 25)):
        await api.database.execute(
            "insert into tier_recipients (organization_id, sender_id, recipient_hash, last_at) values ($1, $2, $3, $4)",
            owner, number, recipient, now - timedelta(hours=hours),
        )  # fmt: skip
    (seen,) = await listed(api, "/v2/ops/numbers")
    assert (seen["day"], seen["tier"]) == ({"used": 11, "limit": 10}, {"used": 2, "limit": 250})
    assert seen["holding"] == {"reason": "daily_limit"}
    series = (await api.get(f"/v2/ops/numbers/{number}")).body["series"]
    assert len(series) == 60
    assert sum(each["sent"] for each in series) == 7


async def test_failures_are_shown_with_their_codes_and_nothing_else(api: Any) -> None:
    made = api.organizations[0]
    number = made.number.id
    cause = Cause("rejected", "+5511987651234 says no")
    failed = [
        Failed(made.organization.id, "test", "chatapp", f"msg_{n}", cause, api.clock.now(), False, sender_id=number)
        for n in range(25)
    ]
    api.activity.ended(failed)
    seen = (await api.get(f"/v2/ops/numbers/{number}")).body
    assert (seen["errorRate5m"], seen["lastErrors"]) == (1.0, {"rejected": 25})
    assert [each["messageId"] for each in seen["failures"]] == [f"msg_{n}" for n in range(24, 4, -1)]
    assert {each["code"] for each in seen["failures"]} == {"rejected"}
    assert seen["series"][-1]["failed"] == 25
    assert "5511987651234" not in str(seen)


async def test_the_most_troubled_come_first_then_the_longest_queues(api: Any) -> None:
    first = api.organizations[0].number.id
    others = []
    for n in range(3):
        fields = {"phoneNumberId": f"pn-{n}", "businessAccountId": f"ba-{n}", "displayPhone": f"+551198765000{n}"}
        others.append((await available(api, "test", **fields))["id"])
    busy, idle, down = others
    for number in (busy, idle):
        assert (await api.post(f"/numbers/{number}/connect")).status == 200
    await queue(api, first, 1, mark="1")
    await queue(api, busy, 5, mark="2")
    await queue(api, down, 1, mark="3")  # is available, and nobody connected it
    assert [each["numberId"] for each in await listed(api, "/v2/ops/numbers")] == [down, busy, first, idle]


async def test_an_organization_sees_its_own_in_its_environment_and_the_administrator_everything(api: Any) -> None:
    live = (await available(api, "live"))["id"]
    mine, foreign = (each.number.id for each in api.organizations)
    for organization, env, path in ((0, "test", "/webhooks"), (0, "live", "/webhooks"), (1, "test", "/webhooks")):
        assert (await api.post(path, WEBHOOK, organization=organization, env=env)).status == 201
    for key in (lane(api), lane(api, env="live", number=live), lane(api, 1)):
        api.lanes.spawn(key, Idle)

    async def seen(**how: Any) -> tuple[set[str], set[str], int, set[str]]:
        numbers = await listed(api, "/v2/ops/numbers", **how)
        actors = await listed(api, "/v2/ops/actors", **how)
        hooks = await listed(api, "/v2/ops/webhooks", **how)
        providers = await listed(api, "/v2/ops/providers", **how)
        paths = {each["path"] for each in actors}
        return {each["numberId"] for each in numbers}, paths, len(hooks), {each["env"] for each in providers}

    def path(key: SenderKey) -> str:
        return "recado/lanes/" + ":".join(key)

    assert await seen() == ({mine}, {path(lane(api))}, 1, {"test"})
    assert await seen(env="live") == ({live}, {path(lane(api, env="live", number=live))}, 1, {"live"})
    assert await seen(organization=1) == ({foreign}, {path(lane(api, 1))}, 1, {"test"})
    numbers, paths, hooks, envs = await seen(token=ADMIN_TOKEN)
    assert (numbers, hooks, envs) == ({mine, foreign, live}, 3, {"live", "test"})
    assert paths >= {"recado", "recado/lanes", "recado/webhooks", path(lane(api)), path(lane(api, 1))}


async def test_a_number_is_paused_and_resumed_and_the_audit_tells(api: Any) -> None:
    made = api.organizations[0]
    number, path = made.number.id, f"/v2/ops/numbers/{made.number.id}"
    await queue(api, number, 3)
    assert (await listed(api, "/v2/ops/numbers"))[0]["holding"]["reason"] == "rate"
    paused = await api.post(f"{path}/pause")
    assert (paused.status, paused.body["holding"]) == (200, {"reason": "operator_paused"})
    assert api.changes == [NumberChanged(made.organization.id, "test", number)]
    seen = (await api.get("/v2/ops/numbers")).body["items"][0]  # at once, not only after a second
    assert (seen["holding"], seen["queue"]["normal"]) == ({"reason": "operator_paused"}, 3)
    assert (await api.get(f"/numbers/{number}/health")).body["canSend"] == "blocked"
    assert (await api.post(f"{path}/pause")).status == 200
    api.clock.shift(30)
    resumed = await api.post(f"{path}/resume")
    assert (resumed.status, resumed.body["holding"]["reason"]) == (200, "rate")
    assert (await api.post(f"{path}/resume")).status == 200
    held = await api.database.fetchval("select held_ms from numbers where id = $1", number)
    assert 30_000 <= held < 40_000
    entries = (await api.get("/v2/audit")).body["items"]
    assert [(each["action"], each["targetId"]) for each in entries] == [
        ("number.resume", number), ("number.pause", number),
    ]  # fmt: skip


async def test_the_administrator_names_any_number(api: Any) -> None:
    made = api.organizations[1]
    path = f"/v2/ops/numbers/{made.number.id}"
    assert (await api.get(path, token=ADMIN_TOKEN)).body["organizationId"] == made.organization.id
    written = {"Authorization": f"bearer  {ADMIN_TOKEN} "}  # as every credential may be
    assert (await api.get(path, token="", headers=written)).status == 200
    for move in ("pause", "resume"):
        assert (await api.post(f"{path}/{move}", token=ADMIN_TOKEN)).status == 200
    (resumed, paused) = (await api.get("/v2/audit", organization=1)).body["items"]
    assert {each["actor"]["type"] for each in (resumed, paused)} == {"admin"}
    missing = await api.get("/v2/ops/numbers/num_" + "0" * 21, token=ADMIN_TOKEN)
    assert (missing.status, missing.code) == (404, "NOT_FOUND")
    assert (await api.post("/v2/ops/numbers", token=ADMIN_TOKEN)).status == 405


async def test_a_key_of_one_scope_reads_or_writes_alone(api: Any) -> None:
    path = f"/v2/ops/numbers/{api.organizations[0].number.id}"
    reads, writes = await api.key("ops:read"), await api.key("ops:write")
    assert (await api.get(path, token=reads)).status == 200
    assert (await api.post(f"{path}/pause", token=reads)).code == "SCOPE_REQUIRED"
    assert (await api.get(path, token=writes)).code == "SCOPE_REQUIRED"
    assert (await api.post(f"{path}/pause", token=writes)).status == 200


async def test_a_restart_is_begun_and_shown_without_what_the_actor_had_in_hand(api: Any) -> None:
    api.lanes.spawn(lane(api), Idle)
    (actor,) = await listed(api, "/v2/ops/actors")
    assert (actor["kind"], actor["state"], actor["restarts"]) == ("Idle", "running", 0)
    answer = await api.post("/v2/ops/actors/restart", {"path": actor["path"]})
    assert (answer.status, answer.body) == (202, {"path": actor["path"], "kind": "Idle"})
    child = api.lanes.find(lane(api))

    async def restarted() -> bool:
        return bool(child.restarts)

    await until(restarted, "the actor is restarted")
    (again,) = await listed(api, "/v2/ops/actors")
    assert (again["state"], again["restarts"]) == ("running", 1)
    (entry,) = (await api.get("/v2/audit")).body["items"]
    assert (entry["action"], entry["details"]) == ("actor.restart", {"path": actor["path"]})
    child.ref.tell("break")

    async def broke() -> bool:
        return child.last_failure is not None

    await until(broke, "the actor has failed")
    (broken,) = await listed(api, "/v2/ops/actors")
    assert broken["lastFailure"]["type"] == "LookupError"
    assert "5511987651234" not in str(broken)
    (number,) = await listed(api, "/v2/ops/numbers")
    assert number["actor"]["restarts"] >= 1
    assert number["actor"]["lastFailure"]["type"] == "LookupError"


async def test_what_is_foreign_or_serves_all_is_not_there_to_restart(api: Any) -> None:
    live = lane(api, env="live")
    for key in (lane(api, 1), live):
        api.lanes.spawn(key, Idle)
    hook = (await api.post("/webhooks", WEBHOOK, organization=1)).body["id"]
    await api.post(f"/webhooks/{hook}/test", organization=1)
    foreign = api.organizations[1].organization.id
    there = ["recado/lanes/" + ":".join(lane(api, 1)), "recado/lanes/" + ":".join(live), "recado", "recado/lanes",
             "recado/webhook deliveries", f"recado/webhooks/{foreign}:{hook}"]  # fmt: skip
    missing = await api.post("/v2/ops/actors/restart", {"path": "recado/nothing"})
    for path in there:
        answer = await api.post("/v2/ops/actors/restart", {"path": path})
        assert (answer.status, answer.code) == (404, "NOT_FOUND"), path
        assert comparable(answer.body) == comparable(missing.body)
    for organization in (0, 1):
        assert (await api.get("/v2/audit?action=actor.restart", organization=organization)).body["items"] == []
    service = await api.post("/v2/ops/actors/restart", {"path": "recado/webhook passivation"}, token=ADMIN_TOKEN)
    assert service.status == 202


@pytest.mark.parametrize("body", [{}, {"path": ""}, {"path": 1}, {"path": "x" * 501}, {"path": None}])
async def test_a_path_of_another_form_is_refused(api: Any, body: Any) -> None:
    answer = await api.post("/v2/ops/actors/restart", body)
    assert (answer.status, answer.code) == (422, "VALIDATION_ERROR")
    assert [error["path"] for error in answer.body["errors"]] == ["/path"]


async def test_subscriptions_show_what_waits_and_how_their_calls_went(api: Any) -> None:
    hook = (await api.post("/webhooks", WEBHOOK)).body["id"]
    await api.patch(f"/webhooks/{hook}", {"status": "paused"})
    owner = api.organizations[0].organization.id
    await api.database.execute(
        "insert into delivery_queue (organization_id, subscription_id, id, event_id, event, due_at) "
        "select $1, $2, 'dlv_' || lpad(n::text, 21, '0'), 'evt_1', 'wallet.depleted', now() "
        "from generate_series(1, 3) n",
        owner, hook,
    )  # fmt: skip
    for status, seconds in ((200, 0.1), (200, 0.3), (500, 2.0)):
        api.webhooks.dispatcher.answered((owner, hook), Response(status, None, b"", None, seconds))
    (seen,) = await listed(api, "/v2/ops/webhooks")
    assert seen["oldestAgeSeconds"] > 0
    assert seen | {"oldestAgeSeconds": 0} == {
        "organizationId": owner, "env": "test", "subscriptionId": hook, "status": "paused", "inFlight": 0, "backlog": 3,
        "oldestAgeSeconds": 0, "successRate": 0.6667, "p50Ms": 300, "p95Ms": 2_000, "circuit": "closed",
    }  # fmt: skip
    await api.database.execute(
        "update webhook_subscriptions set status = 'failing', probe_at = $1", api.clock.now() + timedelta(hours=1)
    )
    (failing,) = await listed(api, "/v2/ops/webhooks")
    assert (failing["status"], failing["circuit"]) == ("failing", "open")


async def test_connections_show_what_waits_for_them(api: Any) -> None:
    await queue(api, api.organizations[0].number.id, 4, age=10)
    await queue(api, api.organizations[1].number.id, 40, organization=1, mark="9")
    seen, social = await listed(api, "/v2/ops/providers")
    assert (social["channel"], social["backlog"]) == ("social", 0)
    assert 10 <= seen["oldestAgeSeconds"] <= 12
    assert seen | {"oldestAgeSeconds": 0} == {
        "env": "test", "channel": "chatapp", "provider": "sandbox", "inFlight": 0, "backlog": 4, "oldestAgeSeconds": 0,
        "successRate": None, "p50Ms": None, "p95Ms": None, "circuit": "closed", "troubled": 0,
    }  # fmt: skip
