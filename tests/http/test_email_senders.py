"""Senders of e-mail over HTTP: made, verified, looked at every day; which one is the default (C10.4)."""

import asyncio
from typing import Any

import pytest
from tests.captured import capture_logs

from recado.domain.email.sender import MAX_SENDERS, MOST_MISSES

PATH = "/v2/email/senders"
DOMAIN = {"domain": "example.com"}
DAY = 86_400.0  # seconds


async def make(api: Any, body: dict[str, Any], *, env: str = "live") -> Any:
    answer = await api.post(PATH, body, env=env)
    assert answer.status == 201, answer.body
    return answer.body


async def verify(api: Any, sender: Any, **how: Any) -> Any:
    return await api.post(f"{PATH}/{sender['id']}/verify", env="live", **how)


async def verified(api: Any, domain: str) -> Any:
    """A new sender of live whose record is there."""
    sender = await make(api, {"domain": domain})
    api.verifiers["live"].entered.add(f"_svc.{domain}")
    answer = await verify(api, sender)
    assert answer.body["status"] == "verified"
    return answer.body


async def shown(api: Any, sender: Any) -> Any:
    items = (await api.get(PATH, env="live")).body["items"]
    return next(item for item in items if item["id"] == sender["id"])


async def test_a_sender_of_live_is_verified_when_its_record_is_there(api: Any) -> None:
    sender = await make(api, {"domain": "Mail.Example.com.", "displayName": "Example"})
    assert sender["id"].startswith("snd_")
    assert (sender["domain"], sender["status"], sender["isDefault"]) == ("mail.example.com", "pending", False)
    (record,) = sender["dnsRecords"]
    assert (record["type"], record["name"], record["found"]) == ("TXT", "_svc.mail.example.com", False)
    assert record["value"].startswith("svc-verify=")
    assert "verifiedAt" not in sender

    missing = await verify(api, sender)
    assert (missing.status, missing.body["status"]) == (200, "failed")
    api.verifiers["live"].entered.add("_svc.mail.example.com")
    api.clock.shift(10)
    there = await verify(api, sender)
    assert (there.body["status"], there.body["isDefault"]) == ("verified", True)
    assert there.body["dnsRecords"] == [{**record, "found": True}]
    assert there.body["verifiedAt"]
    assert await shown(api, sender) == there.body


async def test_in_test_every_sender_is_verified_at_once(api: Any) -> None:
    sender = await make(api, {"address": "Sales@Example.com"}, env="test")
    assert (sender["address"], sender["status"], sender["dnsRecords"]) == ("Sales@Example.com", "verified", [])
    again = await api.post(f"{PATH}/{sender['id']}/verify")
    assert (again.status, again.body) == (200, sender)


async def test_a_new_organization_has_a_verified_sender_in_test(api: Any) -> None:
    (sender,) = (await api.get(PATH)).body["items"]
    assert (sender["status"], sender["isDefault"]) == ("verified", True)
    assert (await api.get(PATH, env="live")).body["items"] == []


async def test_it_is_looked_at_once_in_ten_seconds(api: Any) -> None:
    sender = await make(api, DOMAIN)
    answers = await asyncio.gather(*(verify(api, sender) for _ in range(5)))
    assert sorted(answer.status for answer in answers) == [200, 429, 429, 429, 429]
    refused = next(answer for answer in answers if answer.status == 429)
    assert (refused.code, refused.headers["Retry-After"]) == ("RATE_LIMITED", "10")
    assert len(api.verifiers["live"].asked) == 1


async def test_where_nobody_can_tell_nothing_changes(api: Any) -> None:
    sender = await make(api, DOMAIN)
    api.verifiers["live"].entered = None
    answer = await verify(api, sender)
    assert (answer.status, answer.code) == (502, "DEPENDENCY_FAILED")
    assert await shown(api, sender) == sender


async def test_live_without_an_adapter_verifies_nobody(api: Any) -> None:
    sender = await make(api, DOMAIN)
    api.verifiers["live"] = None
    for answer in (await api.post(PATH, {"domain": "other.example.com"}, env="live"), await verify(api, sender)):
        assert (answer.status, answer.code) == (502, "DEPENDENCY_FAILED")
    assert (await api.get(PATH, env="live")).body["total"] == 1


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, ""),
        ({**DOMAIN, "address": "a@example.com"}, ""),
        ({"domain": "localhost"}, "/domain"),
        ({"domain": "10.0.0.1"}, "/domain"),
        ({"domain": "exa mple.com"}, "/domain"),
        ({"domain": "-a.example.com"}, "/domain"),
        ({"domain": f"{'a' * 64}.com"}, "/domain"),
        ({"domain": ".".join(["a" * 60] * 5)}, "/domain"),
        ({"domain": "_svc.example.com"}, "/domain"),
        ({"domain": "example.com\nx"}, "/domain"),
        ({"address": "sales"}, "/address"),
        ({"address": "sales@localhost"}, "/address"),
        ({**DOMAIN, "displayName": "a\r\nBcc: b@example.com"}, "/displayName"),
        ({**DOMAIN, "displayName": "a" * 121}, "/displayName"),
    ],
)
async def test_what_is_wrong_is_named(api: Any, body: dict[str, Any], pointer: str) -> None:
    answer = await api.post(PATH, body, env="live")
    assert (answer.status, [error["path"] for error in answer.body["errors"]]) == (422, [pointer])


async def test_a_domain_or_an_address_is_a_sender_once(api: Any) -> None:
    sender = await make(api, {"address": "sales@example.com"})
    taken = await api.post(PATH, {"address": "Sales@Example.com"}, env="live")
    assert (taken.status, taken.code, taken.body["meta"]) == (409, "SENDER_TAKEN", {"senderId": sender["id"]})
    writer = await api.key("email:write", env="live")
    hidden = await api.post(PATH, {"address": "sales@example.com"}, token=writer)
    assert hidden.body.get("meta", {}) == {}
    await make(api, DOMAIN)
    await make(api, {"address": "sales@example.com"}, env="test")


async def test_an_environment_holds_fifty(api: Any) -> None:
    for n in range(MAX_SENDERS):
        await make(api, {"domain": f"d{n}.example.com"})
    answer = await api.post(PATH, DOMAIN, env="live")
    assert (answer.status, answer.code, answer.body["meta"]) == (409, "LIMIT_REACHED", {"limit": MAX_SENDERS})


async def test_there_is_one_default(api: Any) -> None:
    first, second = await verified(api, "a.example.com"), await verified(api, "b.example.com")
    assert (first["isDefault"], second["isDefault"]) == (True, False)
    answer = await api.patch(f"{PATH}/{second['id']}", {"isDefault": True}, env="live")
    assert (answer.status, answer.body["isDefault"]) == (200, True)
    assert not (await shown(api, first))["isDefault"]
    refused = await api.patch(f"{PATH}/{second['id']}", {"isDefault": False}, env="live")
    assert (refused.status, refused.code) == (409, "INVALID_STATE")
    assert (await api.patch(f"{PATH}/{first['id']}", {"isDefault": None}, env="live")).status == 422


async def test_who_is_not_verified_is_no_default(api: Any) -> None:
    sender = await make(api, DOMAIN)
    answer = await api.patch(f"{PATH}/{sender['id']}", {"isDefault": True}, env="live")
    assert (answer.status, answer.code, answer.body["meta"]) == (409, "INVALID_STATE", {"status": "pending"})


async def test_of_many_who_become_the_default_at_once_one_is(api: Any) -> None:
    made = [await verified(api, f"d{n}.example.com") for n in range(4)]
    patches = [api.patch(f"{PATH}/{sender['id']}", {"isDefault": True}, env="live") for sender in made for _ in "ab"]
    assert {answer.status for answer in await asyncio.gather(*patches)} == {200}
    items = (await api.get(PATH, env="live")).body["items"]
    assert sum(item["isDefault"] for item in items) == 1


async def test_after_the_default_is_deleted_the_next_that_is_verified_becomes_it(api: Any) -> None:
    first = await verified(api, "a.example.com")
    assert (await api.delete(f"{PATH}/{first['id']}", env="live")).status == 204
    second = await make(api, {"domain": "b.example.com"})
    renamed = await api.patch(f"{PATH}/{second['id']}", {"displayName": "B"}, env="live")
    assert not renamed.body["isDefault"]
    assert (await verified(api, "c.example.com"))["isDefault"]


async def test_after_the_default_is_deleted_the_oldest_verified_one_is_it(api: Any) -> None:
    first = await verified(api, "a.example.com")
    await make(api, {"domain": "b.example.com"})
    third, fourth = await verified(api, "c.example.com"), await verified(api, "d.example.com")
    assert (await api.delete(f"{PATH}/{first['id']}", env="live")).status == 204
    assert [(await shown(api, each))["isDefault"] for each in (third, fourth)] == [True, False]
    assert (await api.delete(f"{PATH}/{fourth['id']}", env="live")).status == 204
    assert (await shown(api, third))["isDefault"]
    (in_test,) = (await api.get(PATH)).body["items"]
    assert in_test["isDefault"]


async def test_of_many_defaults_that_are_deleted_at_once_the_last_one_leaves_one(api: Any) -> None:
    made = [await verified(api, f"d{n}.example.com") for n in range(4)]
    answers = await asyncio.gather(*(api.delete(f"{PATH}/{each['id']}", env="live") for each in made[:3]))
    assert {answer.status for answer in answers} == {204}
    assert (await shown(api, made[3]))["isDefault"]


async def test_after_the_default_fails_the_oldest_verified_one_is_it(api: Any) -> None:
    first = await verified(api, "a.example.com")
    second, third = await verified(api, "b.example.com"), await verified(api, "c.example.com")
    api.verifiers["live"].entered.discard("_svc.a.example.com")
    for _ in range(MOST_MISSES):
        assert (await shown(api, first))["isDefault"]
        api.clock.shift(DAY)
        await api.sender_verification.check_due()
    states = [await shown(api, each) for each in (first, second, third)]
    assert [each["status"] for each in states] == ["failed", "verified", "verified"]
    assert [each["isDefault"] for each in states] == [False, True, False]


async def test_a_name_is_changed_and_cleared(api: Any) -> None:
    sender = await make(api, {**DOMAIN, "displayName": "Old"})
    assert (await api.patch(f"{PATH}/{sender['id']}", {"displayName": "New"}, env="live")).body["displayName"] == "New"
    assert "displayName" not in (await api.patch(f"{PATH}/{sender['id']}", {"displayName": None}, env="live")).body


async def test_a_verified_sender_fails_with_the_third_daily_look_in_a_row(api: Any) -> None:
    sender = await verified(api, "example.com")
    verifier, day = api.verifiers["live"], DAY
    found: set[str] = verifier.entered
    states = []
    for entered in (set(), set(), found, set(), set(), set()):
        verifier.entered = entered
        api.clock.shift(day)
        await api.sender_verification.check_due()
        states.append((await shown(api, sender))["status"])
    assert states == ["verified"] * 5 + ["failed"]
    assert len(verifier.asked) == 1 + 6
    failed = await shown(api, sender)
    assert not failed["isDefault"]
    assert "verifiedAt" not in failed

    api.clock.shift(day)
    await api.sender_verification.check_due()  # nobody looks at a failed one
    assert len(verifier.asked) == 7
    verifier.entered = found
    assert (await verify(api, sender)).body["status"] == "verified"


async def test_a_look_of_a_caller_makes_no_verified_sender_fail(api: Any) -> None:
    sender = await verified(api, "example.com")
    api.verifiers["live"].entered = set()
    for _ in range(MOST_MISSES + 1):
        api.clock.shift(10)
        answer = await verify(api, sender)
        assert (answer.body["status"], answer.body["dnsRecords"][0]["found"]) == ("verified", False)


async def test_a_caller_who_looks_again_and_again_puts_off_no_daily_look(api: Any) -> None:
    sender = await verified(api, "example.com")
    api.verifiers["live"].entered = set()
    for _ in range(MOST_MISSES):
        api.clock.shift(DAY / 2)
        assert (await verify(api, sender)).body["status"] == "verified"
        api.clock.shift(DAY / 2)
        await api.sender_verification.check_due()
    assert (await shown(api, sender))["status"] == "failed"


async def test_a_day_on_which_nobody_can_tell_counts_for_nothing(api: Any) -> None:
    sender = await verified(api, "example.com")
    verifier = api.verifiers["live"]
    verifier.entered = None
    api.clock.shift(DAY)
    for _ in range(MOST_MISSES + 1):
        await api.sender_verification.check_due()
        api.clock.shift(DAY / 24)
    assert len(verifier.asked) == 1 + MOST_MISSES + 1
    assert (await shown(api, sender))["status"] == "verified"


async def test_the_audit_names_what_was_done_and_no_address(api: Any) -> None:
    with capture_logs() as logs:
        sender = await make(api, {"address": "ana@example.com", "displayName": "Ana"})
        await api.patch(f"{PATH}/{sender['id']}", {"displayName": "Anita"}, env="live")
        await api.delete(f"{PATH}/{sender['id']}", env="live")
    entries = (await api.get("/v2/audit", env="live")).body["items"]
    assert [entry["action"] for entry in entries] == [
        "email_sender.delete", "email_sender.update", "email_sender.create",
    ]  # fmt: skip
    assert "ana@" not in f"{entries}{logs}"
    assert "Anita" not in f"{entries}{logs}"


async def test_a_journey_with_an_email_step_wants_a_default_sender(api: Any) -> None:
    mail = {"id": "mail", "tipo": "enviar", "canal": "email", "templateId": "etpl_" + "0" * 21, "proximo": "end"}
    journey = {
        "name": "mail", "gatilho": {"tipo": "api"}, "inicio": "mail", "passos": [mail, {"id": "end", "tipo": "fim"}],
    }  # fmt: skip
    told = []
    for _ in range(2):
        refused = await api.post("/v2/journeys", journey, env="live")
        told.append({error["code"] for error in refused.body["errors"]})
        await verified(api, f"d{len(told)}.example.com")
    assert told == [{"MODELO_INEXISTENTE", "REMETENTE_AUSENTE"}, {"MODELO_INEXISTENTE"}]
