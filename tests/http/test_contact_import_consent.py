"""Consent in imports: a row undoes no later refusal, and every change has its place in the history (C12.5, C12.7)."""

import asyncio
from typing import Any

import orjson
import pytest
from tests.http.importing import NDJSON, contact, contacts, counts, hand_in, imported, phone
from tests.http.people import session
from tests.waiting import until_locked_out

from recado.domain.core.phones import phone_hash

REFUSED = "2026-06-01T00:00:00Z"


def consent(status: str, **fields: Any) -> dict[str, Any]:
    return {"phone": phone(1), "optIn": {"status": status, **fields}}


@pytest.mark.parametrize(
    ("row", "expected", "status"),
    [
        (consent("granted", source="site", at="2026-05-01T00:00:00Z"), {"unchanged": 1, "consentIgnored": 1}, "denied"),
        (consent("granted", at="2026-07-01T00:00:00Z"), {"unchanged": 1, "consentIgnored": 1}, "denied"),
        (consent("granted", source="site", at="2026-07-01T00:00:00Z"), {"updated": 1}, "granted"),
        (consent("denied", revokedAt="2026-07-01T00:00:00Z"), {"unchanged": 1}, "denied"),
        (consent("unknown"), {"failed": 1}, "denied"),
        (consent("granted", source="site", at="2030-01-01T00:00:00Z"), {"failed": 1}, "denied"),
        ({"phone": phone(1), "name": "Ana"}, {"updated": 1}, "denied"),
    ],
)
async def test_a_row_undoes_no_later_refusal(api: Any, row: Any, expected: Any, status: str) -> None:
    await imported(api, [consent("denied", revokedAt=REFUSED)])
    result = await imported(api, [row])
    assert counts(result) == expected
    assert (await contact(api))["optIn"]["status"] == status


async def test_whoever_opted_out_before_is_born_denied(api: Any) -> None:
    for number in (1, 2):
        await api.post("/contacts/opt-out", {"phone": phone(number)})
    await api.post("/contacts/opt-out", {"email": "Eva@example.com"})
    rows = [
        {"phone": phone(1)},
        consent("granted") | {"phone": phone(2)},
        {"phone": phone(3), "email": "eva@Example.com"},
    ]
    assert counts(await imported(api, [*rows, {"phone": phone(4)}])) == {"created": 4, "consentIgnored": 1}
    found = await contacts(api)
    assert [found[phone(n)]["optIn"]["status"] for n in (1, 2, 3, 4)] == ["denied", "denied", "denied", "unknown"]


async def test_whoever_opted_out_under_a_former_spelling_is_born_denied(api: Any) -> None:
    """Of an entry from before the spelling was the same phone, whichever way its row is written."""
    organization_id = api.organizations[0].organization.id
    spelled = {
        "+525512345678": "+5215512345678",
        "+525512345679": "+5215512345679",
        "+5491123456789": "+54111523456789",
        "+447911123456": "+4407911123456",
    }
    mexican, *others = spelled
    rows = [{"phone": each} for each in [*others, "+525500000000"]]
    rows.append({"phone": mexican, "optIn": {"status": "granted", "source": "site", "at": "2025-12-01T00:00:00Z"}})
    for former in spelled.values():
        await api.database.execute(
            "insert into opt_outs values ($1, 'test', 'phone', $2, '2026-01-01', 'site')",
            organization_id,
            phone_hash(organization_id, former),
        )
    assert counts(await imported(api, rows)) == {"created": 5, "consentIgnored": 1}
    found = {number: each["optIn"]["status"] for number, each in (await contacts(api)).items()}
    assert found == dict.fromkeys(spelled, "denied") | {"+525500000000": "unknown"}


async def test_a_row_that_brings_an_address_that_opted_out_makes_the_contact_denied(api: Any) -> None:
    await imported(api, [{"phone": phone(1)}, {"phone": phone(2), "email": "ana@example.com"}])
    await api.post("/contacts/opt-out", {"email": "eva@example.com"})
    rows = [{"phone": phone(1), "email": "Eva@example.com"}, {"phone": phone(2), "email": "ANA@example.com"}]
    assert counts(await imported(api, rows)) == {"updated": 2}
    found = await contacts(api)
    assert [found[phone(n)]["optIn"]["status"] for n in (1, 2)] == ["denied", "unknown"]


@pytest.mark.parametrize("fields", [{"source": "call centre"}, {}, {"revokedAt": "2020-01-01T00:00:00Z"}])
async def test_a_refusal_of_a_file_takes_the_place_of_the_persons_own_in_the_registry(api: Any, fields: Any) -> None:
    """So that no keyword takes it back (C28.3)."""
    own = consent("denied", source="inbound_keyword", revokedAt=REFUSED)
    await imported(api, [own | {"email": "eva@example.com"}])
    before = await contact(api)
    assert counts(await imported(api, [consent("denied", **fields), consent("denied", **fields)])) == {"unchanged": 2}
    assert await contact(api) == before
    sources = await api.database.fetch("select source from opt_outs")
    assert [row["source"] for row in sources] == [fields.get("source")] * 2
    history = (await api.get(f"/contacts/{before['id']}/consents")).body["items"]
    assert [entry["to"] for entry in history] == ["denied"]


async def test_a_consent_at_the_moment_of_a_repeated_refusal_is_refused_after_it(api: Any) -> None:
    await imported(api, [consent("denied", revokedAt=REFUSED)])
    contact_id = (await contact(api))["id"]

    async with api.database.transaction() as connection:
        await connection.execute(
            "update contacts set opt_in_status = 'granted', revision = revision + 1 where id = $1", contact_id
        )
        importing = asyncio.ensure_future(imported(api, [consent("denied", source="call centre")]))
        await until_locked_out(api.database)  # the import waits for the contact
    assert counts(await importing) == {"updated": 1}
    assert (await contact(api))["optIn"]["status"] == "denied"


async def test_every_change_of_a_consent_in_a_file_has_its_place_in_the_history(api: Any) -> None:
    rows = [
        consent("granted", source="site", at="2026-01-01T00:00:00Z"),
        consent("denied", revokedAt="2026-02-01T00:00:00Z"),
        consent("granted", source="site", at="2026-01-15T00:00:00Z"),
        consent("granted", source="site", at="2026-03-01T00:00:00Z") | {"name": "Ana"},
    ]
    result = await imported(api, rows)
    assert counts(result) == {"created": 1, "updated": 2, "unchanged": 1, "consentIgnored": 1}
    found = await contact(api)
    assert (found["name"], found["optIn"]["status"], found["optIn"]["at"]) == (
        "Ana",
        "granted",
        "2026-03-01T00:00:00.000Z",
    )
    history = (await api.get(f"/contacts/{found['id']}/consents")).body["items"]
    assert [entry["to"] for entry in history] == ["granted", "denied", "granted"]


async def test_a_person_imports_consents_of_now_from_where_they_are(api: Any) -> None:
    row = orjson.dumps(consent("granted", source="balcão", at="2026-01-01T00:00:00Z"))
    headers = {"User-Agent": "a browser"}
    answer = await hand_in(api, row, NDJSON, token=await session(api), headers=headers)
    assert counts(answer.body) == {"created": 1}
    given = (await contact(api))["optIn"]
    assert (given["ip"], given["userAgent"], given["source"]) == ("127.0.0.1", "a browser", "balcão")
    assert given["at"] >= answer.body["createdAt"]


async def test_a_file_from_a_program_whose_name_is_no_utf8_is_taken(api: Any) -> None:
    lines = b"Content-Type: application/x-ndjson\r\nUser-Agent: caf\xe9\r\n"
    row = orjson.dumps(consent("granted", source="balcão"))
    answer = await api.speak("POST", "/contacts/import", lines, row, token=await session(api))
    assert (answer.status, counts(answer.body)) == (200, {"created": 1})
    assert (await contact(api))["optIn"]["userAgent"] == "caf\ufffd"


async def test_events_are_told_of_consents_always_and_of_births_when_asked_for(api: Any) -> None:
    hook = {"url": "https://hooks.example.com/", "events": ["contact.created", "contact.consent_changed"]}
    assert (await api.post("/webhooks", hook)).status == 201

    async def told() -> list[str]:
        return [row["type"] for row in await api.database.fetch("select type from events order by id")]

    await imported(api, [consent("granted"), {"phone": phone(2)}])
    assert await told() == ["contact.consent_changed"]
    await imported(api, [{"phone": phone(3)}, {"phone": phone(2)}], "?emitEvents=true")
    assert await told() == ["contact.consent_changed", "contact.created"]
