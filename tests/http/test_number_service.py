"""Numbers and their providers: verified, connected, disconnected, and what the sandbox simulates (C14)."""

from typing import Any

from tests.http.registering import AWAY, REFUSED, available, register

from recado.channels.core.provider import NumberHealth
from recado.domain.messages.changes import NumberChanged


async def test_a_new_number_is_verified_by_its_provider(api: Any) -> None:
    number = await register(api, env="test")
    await api.refresh.run("test")
    assert (await api.get(f"/numbers/{number['id']}")).body["status"] == "pending"
    api.clock.shift(1)
    await api.refresh.run("test")
    verified = await api.get(f"/numbers/{number['id']}")
    assert (verified.body["status"], verified.etag) == ("available", '"2"')
    assert verified.body["lastProviderSyncAt"] is not None


async def test_a_provider_that_does_not_verify_is_asked_again(api: Any) -> None:
    number = await register(api)
    api.provider.health = NumberHealth(verified=False)
    for _ in range(2):
        api.clock.shift(61)
        await api.refresh.run("live")
        assert (await api.get(f"/numbers/{number['id']}", env="live")).body["status"] == "pending"
    assert len(api.provider.asked_for("number_health")) == 2
    api.provider.failures["number_health"] = REFUSED
    api.clock.shift(61)
    await api.refresh.run("live")
    assert (await api.get(f"/numbers/{number['id']}", env="live")).body["status"] == "disconnected"


async def test_connecting_registers_at_the_provider_and_disconnecting_stops(api: Any) -> None:
    number = await available(api)
    path = f"/numbers/{number['id']}"
    early = await api.post(path + "/disconnect", env="live")
    assert (early.status, early.code, early.body["meta"]) == (409, "INVALID_STATE", {"status": "available"})
    connected = await api.post(path + "/connect", env="live")
    assert (connected.status, connected.body["status"]) == (200, "connected")
    assert [account.sender_id for account in api.provider.asked_for("connect")] == [number["id"]]
    again = await api.post(path + "/connect", env="live")
    assert (again.status, again.code) == (409, "INVALID_STATE")
    api.provider.failures["disconnect"] = AWAY
    stopped = await api.post(path + "/disconnect", env="live")
    assert (stopped.status, stopped.body["status"]) == (200, "disconnected")
    assert (await api.post(path + "/connect", env="live")).body["status"] == "connected"


async def test_a_number_stays_out_of_service_when_the_provider_fails(api: Any) -> None:
    number = await available(api)
    path = f"/numbers/{number['id']}"
    for error, code in ((AWAY, "connect_failed"), (REFUSED, "not_yours")):
        api.provider.failures["connect"] = error
        failed = await api.post(path + "/connect", env="live")
        assert (failed.status, failed.code, failed.body["meta"]) == (502, "DEPENDENCY_FAILED", {"providerCode": code})
    assert (await api.get(path, env="live")).body == number


async def test_without_a_provider_live_answers_502(api: Any) -> None:
    number = await available(api)
    api.providers["live"] = None
    path = f"/numbers/{number['id']}"
    assert (await api.post(path + "/connect", env="live")).code == "DEPENDENCY_FAILED"
    assert (await api.patch(path, {"profile": {"about": "x"}}, env="live")).code == "DEPENDENCY_FAILED"
    assert (await api.patch(path, {"rateLimit": {"perSecond": 5}}, env="live")).status == 200
    health = (await api.get(path + "/health", env="live")).body
    assert (health["live"], health["status"]) == (False, "available")


async def test_connecting_clears_the_mark_of_a_removal(api: Any) -> None:
    path = f"/numbers/{api.organizations[0].number.id}"
    simulate = path.replace("/numbers/", "/v2/sandbox/numbers/")
    marked = (await api.post(simulate, {"partnerRemovedReason": "PARTNER_REMOVED"})).body
    assert marked["status"] == "connected"
    assert marked["meta"]["partnerRemovedReason"] == "PARTNER_REMOVED"
    assert marked["meta"]["partnerRemovedAt"] is not None
    await api.post(path + "/disconnect")
    cleared = (await api.post(path + "/connect")).body
    assert (cleared["meta"]["partnerRemovedAt"], cleared["meta"]["partnerRemovedReason"]) == (None, None)


async def test_simulation_sets_what_a_provider_would_report(api: Any) -> None:
    number = api.organizations[0].number
    simulate = f"/v2/sandbox/numbers/{number.id}"
    wanted = {"status": "flagged", "qualityRating": "red", "messagingTier": "tier_1k"}
    answer = await api.post(simulate, wanted)
    assert answer.status == 200
    assert {name: answer.body[name] for name in wanted} == wanted
    assert api.changes == [NumberChanged(number.organization_id, "test", number.id)]
    assert (await api.post(simulate, {})).etag == answer.etag
    cleared = (await api.post(simulate, {"partnerRemovedReason": None})).body
    assert cleared["meta"]["partnerRemovedAt"] is None
    for body in ({"status": None}, {"status": "gone"}, {"qualityRating": 1}, {"partnerRemovedReason": "BORED"}):
        assert (await api.post(simulate, body)).status == 422


async def test_simulation_is_for_test_credentials_alone(api: Any) -> None:
    number = await register(api)
    for path in (f"/v2/sandbox/numbers/{number['id']}", f"/v2/sandbox/numbers/{api.organizations[0].number.id}"):
        answer = await api.post(path, {"status": "connected"}, env="live")
        assert (answer.status, answer.code) == (404, "NOT_FOUND")
