"""Suppressions over HTTP: added once, found by the address, removed; what is personal in them (C10.5, C12.6)."""

import asyncio
from typing import Any

import pytest
from tests.captured import capture_logs

from recado.storage.email.suppressions import suppressed_among

PATH = "/v2/email/suppressions"


async def suppress(api: Any, email: str, **how: Any) -> Any:
    return await api.post(PATH, {"email": email}, **how)


async def suppressed(api: Any, *addresses: str) -> set[str]:
    owner = api.organizations[0].organization.id
    return await suppressed_among(api.database, owner, "test", addresses, simulator_domain="simulator.test")


async def test_an_address_is_suppressed_and_gets_mail_again(api: Any) -> None:
    added = await suppress(api, "Ana@Example.com")
    assert (added.status, added.body["email"], added.body["reason"]) == (201, "Ana@Example.com", "manual")
    assert added.body["id"].startswith("sup_")
    assert await suppressed(api, "ana@example.com", "bob@example.com") == {"ana@example.com"}
    assert (await api.delete(f"{PATH}/{added.body['id']}")).status == 204
    assert await suppressed(api, "ana@example.com") == set()


async def test_who_adds_an_address_again_gets_the_entry_that_is_there(api: Any) -> None:
    added = await suppress(api, "ana@example.com")
    again = await suppress(api, "ANA@example.com")
    assert (again.status, again.body) == (200, added.body)
    assert (await api.get(PATH)).body["total"] == 1


async def test_of_those_who_add_an_address_at_once_one_does(api: Any) -> None:
    answers = await asyncio.gather(*(suppress(api, "ana@example.com") for _ in range(8)))
    assert sorted(answer.status for answer in answers) == [200] * 7 + [201]
    assert len({answer.body["id"] for answer in answers}) == 1


async def test_the_filter_finds_an_address_in_any_case(api: Any) -> None:
    found = (await suppress(api, "ana@example.com")).body
    await suppress(api, "bob@example.com")
    assert (await api.get(f"{PATH}?email=ANA@example.com")).body == {"items": [found], "total": 1}
    assert (await api.get(f"{PATH}?email=eve@example.com")).body == {"items": [], "total": 0}
    assert (await api.get(f"{PATH}?email=eve")).code == "INVALID_PARAMETER"


async def test_lists_are_read_in_pages_newest_first(api: Any) -> None:
    ids = [(await suppress(api, f"{n}@example.com")).body["id"] for n in range(3)]
    first = await api.get(f"{PATH}?limit=2")
    assert ([item["id"] for item in first.body["items"]], first.body["total"]) == (ids[:0:-1], 3)
    assert [item["id"] for item in (await api.get(f"{PATH}?limit=2&skip=2")).body["items"]] == ids[:1]


@pytest.mark.parametrize(
    "email", ["", "ana", "ana@", "@example.com", "a na@example.com", "ana@x\r\ny", f"{'x' * 251}@y.z", 7, None]
)
async def test_what_is_no_address_is_refused(api: Any, email: Any) -> None:
    answer = await api.post(PATH, {"email": email})
    assert (answer.status, [error["path"] for error in answer.body["errors"]]) == (422, ["/email"])
    assert (await api.get(PATH)).body["total"] == 0


async def test_environments_and_organizations_have_their_own(api: Any) -> None:
    answers = [
        await suppress(api, "ana@example.com", organization=organization, env=env)
        for organization in (0, 1)
        for env in ("test", "live")
    ]
    assert [answer.status for answer in answers] == [201] * 4


async def test_the_address_of_the_simulator_needs_no_entry(api: Any) -> None:
    address = "suppressionlist+7@simulator.test"
    assert await suppressed(api, address, "success@simulator.test") == {address}


async def test_the_audit_names_what_was_done_and_nobody(api: Any) -> None:
    with capture_logs() as logs:
        added = await suppress(api, "ana@example.com")
        await suppress(api, "ana@example.com")
        await api.delete(f"{PATH}/{added.body['id']}")
    entries = (await api.get("/v2/audit")).body["items"]
    assert [entry["action"] for entry in entries] == ["email_suppression.delete", "email_suppression.create"]
    assert {entry["targetId"] for entry in entries} == {added.body["id"]}
    assert "ana" not in f"{entries}{logs}"


async def test_of_a_deleted_contact_the_suppression_stays_and_its_address_does_not(api: Any) -> None:
    contact = (await api.post("/contacts", {"phone": "+5511987650001", "email": "Ana@example.com"})).body
    other = (await api.post("/contacts", {"phone": "+5511987650002", "email": "ana@example.com"})).body
    await suppress(api, "ana@example.com")
    await api.delete(f"/contacts/{contact['id']}")
    assert (await api.get(PATH)).body["items"][0]["email"] == "ana@example.com"  # another contact has it
    await api.delete(f"/contacts/{other['id']}")
    assert (await api.get(f"{PATH}?email=ana@example.com")).body["items"][0]["email"] == "a***@example.com"
    assert await suppressed(api, "ana@example.com") == {"ana@example.com"}
