"""Consent of contacts through the interface: changes, refusals, the registry, history and events (C12.5)."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import orjson
import pytest
from tests.http.conftest import ADMIN_TOKEN, Api
from tests.http.people import session
from tests.http.test_executions import active, entered

from recado.domain.core.timestamps import format_timestamp
from recado.domain.messages.changes import ConsentRefused
from recado.storage.contacts import contacts
from recado.storage.contacts.contact_consents import KEPT
from recado.storage.webhooks.sealed_phones import shown

PHONE = "+5511987654321"
OLDER = "CONSENTIMENTO_ANTERIOR_A_RECUSA"
AHEAD = "DATA_DO_CONSENTIMENTO_NO_FUTURO"


async def made(api: Api, phone: str = PHONE, **fields: Any) -> dict[str, Any]:
    answer = await api.post("/contacts", {"phone": phone, **fields})
    assert answer.status == 201, answer.body
    return dict(answer.body)


async def changed(api: Api, contact: dict[str, Any], **opt_in: Any) -> Any:
    return await api.patch(f"/contacts/{contact['id']}", {"optIn": opt_in})


def at(api: Api, **ago: float) -> str:
    return format_timestamp(api.clock.now() - timedelta(**ago))


async def told(api: Api) -> list[dict[str, Any]]:
    """The events that were logged, oldest first."""
    rows = await api.database.fetch("select organization_id, id as event_id, type, data from events order by id")
    return [{"type": row.pop("type"), **shown(row.pop("data"), api.key_ring, **row)} for row in map(dict, rows)]


async def subscribe(api: Api) -> None:
    await api.post("/webhooks", {"url": "https://hooks.example.com/", "events": ["*"]})


async def test_a_contact_is_born_with_the_consent_of_its_key_and_everybody_is_told(api: Api) -> None:
    await subscribe(api)
    given = at(api, days=30)
    contact = await made(api, optIn={"status": "granted", "at": given, "source": "loja", "ip": "192.0.2.1"})
    assert contact["optIn"] == {"status": "granted", "at": given, "source": "loja", "ip": "192.0.2.1"}
    events = await told(api)
    assert [event["type"] for event in events] == ["contact.created", "contact.consent_changed"]
    assert events[0]["optInStatus"] == "granted"
    assert events[1] | {"id": 0} == {
        "type": "contact.consent_changed", "id": 0, "from": "unknown", "to": "granted", "at": given, "source": "loja",
        "dataInformada": True,
    }  # fmt: skip
    (entry,) = (await api.get(f"/contacts/{contact['id']}/consents")).body["items"]
    assert "from" not in entry
    assert (entry["to"], entry["at"], entry["dataInformada"], entry["ip"]) == ("granted", given, True, "192.0.2.1")


async def test_a_contact_without_consent_tells_only_of_its_birth(api: Api) -> None:
    await subscribe(api)
    contact = await made(api, tags=["a"], externalId="e")
    (event,) = await told(api)
    assert event == {
        "type": "contact.created", "id": contact["id"], "externalId": "e", "source": "manual", "phone": PHONE,
        "optInStatus": "unknown", "tags": ["a"], "createdAt": contact["createdAt"],
    }  # fmt: skip
    assert (await api.get(f"/contacts/{contact['id']}/consents")).body == {"items": []}


async def test_a_refusal_is_recorded_told_and_registered(api: Api) -> None:
    await subscribe(api)
    contact = await made(api, email="Maria@example.com", optIn={"status": "granted"})
    refused = at(api, days=400)
    answer = await changed(api, contact, status="denied", revokedAt=refused, revokedReason="ligou", source="telefone")
    assert answer.body["optIn"] == {
        "status": "denied", "source": "telefone", "at": contact["optIn"]["at"], "revokedAt": refused,
        "revokedReason": "ligou",
    }  # fmt: skip
    events = (await told(api))[2:]
    assert [event["type"] for event in events] == ["contact.consent_changed", "contact.opted_out"]
    assert events[1] == {
        "type": "contact.opted_out", "id": contact["id"], "phone": PHONE, "source": "telefone", "revokedAt": refused,
        "revokedReason": "ligou",
    }  # fmt: skip
    history = (await api.get(f"/contacts/{contact['id']}/consents")).body["items"]
    assert [(entry.get("from"), entry["to"]) for entry in history] == [("granted", "denied"), (None, "granted")]
    assert await api.database.fetchval("select count(*) from opt_outs") == 2


@pytest.mark.parametrize(
    ("change", "status", "code", "path"),
    [
        ({"status": "unknown"}, 422, "VALIDATION_ERROR", "/optIn/status"),
        ({"status": "granted"}, 422, "CONSENTIMENTO_SEM_ORIGEM", "/optIn/source"),
        ({"status": "granted", "source": "x", "at": {"days": 2}}, 409, OLDER, "/optIn/at"),
        ({"status": "granted", "source": "x", "at": {"minutes": -6}}, 422, AHEAD, "/optIn/at"),
        ({"status": "denied", "revokedAt": {"minutes": -6}}, 422, AHEAD, "/optIn/revokedAt"),
    ],
)
async def test_after_a_refusal_only_a_younger_consent_with_a_source_counts(
    api: Api, change: dict[str, Any], status: int, code: str, path: str
) -> None:
    contact = await made(api, optIn={"status": "denied", "revokedAt": at(api, days=1)})
    dates = {name: at(api, **value) for name, value in change.items() if isinstance(value, dict)}
    answer = await changed(api, contact, **change | dates)
    assert (answer.status, answer.code) == (status, code)
    assert [error["path"] for error in answer.body["errors"]] == [path]
    assert (await api.get(f"/contacts/{contact['id']}")).body == contact


async def test_a_younger_consent_with_a_source_leaves_the_registry(api: Api) -> None:
    contact = await made(api, email="m@example.com", optIn={"status": "denied", "revokedAt": at(api, days=2)})
    answer = await changed(api, contact, status="granted", source="loja", at=at(api, days=1))
    assert set(answer.body["optIn"]) == {"status", "source", "at"}
    assert await api.database.fetchval("select count(*) from opt_outs") == 0


async def test_the_same_status_again_changes_nothing(api: Api) -> None:
    await subscribe(api)
    contact = await made(api, optIn={"status": "granted", "source": "loja", "at": at(api, days=2)})
    before = len(await told(api))
    answer = await changed(api, contact, status="granted", source="outra", at=at(api, days=1))
    assert (answer.body, answer.etag) == (contact, '"1"')
    assert len(await told(api)) == before


async def test_the_history_is_read_in_pages(api: Api) -> None:
    contact, other = await made(api), await made(api, "+5511987650002")
    for n in range(5):
        given = {"status": "denied"} if n % 2 else {"status": "granted", "source": "loja"}
        api.clock.shift(1)
        assert (await changed(api, contact, **given)).status == 200
    path = f"/contacts/{contact['id']}/consents"
    whole = (await api.get(path)).body
    assert [entry["to"] for entry in whole["items"]] == ["granted", "denied", "granted", "denied", "granted"]
    assert "nextCursor" not in whole

    pages, cursor = [], ""
    while True:
        page = (await api.get(f"{path}?limit=2{cursor}")).body
        pages.append(page["items"])
        if "nextCursor" not in page:
            break
        cursor = f"&cursor={page['nextCursor']}"
    assert [len(page) for page in pages] == [2, 2, 1]
    assert [entry for page in pages for entry in page] == whole["items"]
    foreign = await api.get(f"/contacts/{other['id']}/consents?limit=2{cursor}")
    assert (foreign.status, foreign.code) == (400, "INVALID_CURSOR")


async def test_the_history_shows_nothing_that_is_past_its_time(api: Api) -> None:
    contact = await made(api, optIn={"status": "granted"})
    assert (await changed(api, contact, status="denied")).status == 200
    path = f"/contacts/{contact['id']}/consents"
    for beyond, left in ((timedelta(seconds=-60), 2), (timedelta(seconds=60), 1)):
        recorded = api.clock.now() - KEPT - beyond
        await api.database.execute("update contact_consents set recorded_at = $1 where revision = 1", recorded)
        assert len((await api.get(path)).body["items"]) == left


async def test_whoever_opted_out_before_being_a_contact_is_born_denied(api: Api) -> None:
    answer = await api.post("/contacts/opt-out", {"phone": "+55 11 8765-4321", "source": "site"})
    assert answer.body == {
        "contactId": None, "alreadyOptedOut": False, "executionsCancelled": 0, "messagesWithdrawn": 0,
    }  # fmt: skip
    again = await api.post("/contacts/opt-out", {"phone": PHONE})
    assert again.body["alreadyOptedOut"] is True
    contact = await made(api)
    assert (contact["optIn"]["status"], contact["optIn"]["source"]) == ("denied", "site")
    late = await api.post("/contacts", {"phone": "+5511987654399", "optIn": {"status": "granted"}})
    assert late.status == 201


async def test_an_opt_out_says_how_many_ways_through_journeys_it_ends(api: Api) -> None:
    contact = await made(api)
    began = [await entered(api, await active(api), contact["id"]) for _ in range(3)]
    await api.database.execute("update executions set status = 'concluida' where id = $1", began[0])
    answer = await api.post("/contacts/opt-out", {"contactId": contact["id"]})
    assert answer.body["executionsCancelled"] == 2
    again = await api.post("/contacts/opt-out", {"contactId": contact["id"]})
    assert (again.body["alreadyOptedOut"], again.body["executionsCancelled"]) == (True, 0)


async def test_an_address_that_opted_out_makes_the_contact_that_receives_it_denied(api: Api) -> None:
    await subscribe(api)
    contact, granted = await made(api), await made(api, "+5511987650002", optIn={"status": "granted"})
    await api.post("/contacts/opt-out", {"email": "Eva@example.com", "source": "site"})
    answers = [
        await api.patch(f"/contacts/{contact['id']}", {"email": "eva@example.com"}),
        await api.patch(f"/contacts/{granted['id']}", {"email": "eva@example.com"}),
    ]
    assert [(answer.status, answer.body["optIn"]["status"]) for answer in answers] == [(200, "denied")] * 2
    assert answers[0].body["optIn"]["source"] == "site"
    events = [event["type"] for event in await told(api)]
    assert Counter(events)["contact.consent_changed"] == 3  # one of them the consent that the second was born with

    younger = {"status": "granted", "source": "loja", "at": at(api, days=-0.001)}
    again = await api.patch(f"/contacts/{contact['id']}", {"optIn": younger})
    assert (again.status, again.body["optIn"]["status"]) == (200, "granted")


async def test_a_consent_with_an_address_that_opted_out_is_younger_than_that_refusal(api: Api) -> None:
    contact = await made(api)
    await api.post("/contacts/opt-out", {"email": "eva@example.com"})
    older = {"email": "eva@example.com", "optIn": {"status": "granted", "source": "loja", "at": at(api, days=1)}}
    refused = await api.patch(f"/contacts/{contact['id']}", older)
    assert (refused.status, refused.code) == (409, OLDER)
    assert "email" not in (await api.get(f"/contacts/{contact['id']}")).body


@pytest.mark.parametrize(
    ("refused", "spelled"),
    [
        ("+52 1 55 1234 5678", "+52 55 1234 5678"),
        ("+54 11 2345-6789", "+54 9 11 2345-6789"),
        ("+54 9 11 2345-6789", "+54 11 15 2345-6789"),
        ("+55 (011) 98765-4321", "+55 11 98765-4321"),
    ],
)
async def test_a_refusal_holds_for_every_spelling_of_the_phone(api: Api, refused: str, spelled: str) -> None:
    await api.post("/contacts/opt-out", {"phone": refused})
    contact = await made(api, spelled)
    assert contact["optIn"]["status"] == "denied"
    taken = await api.post("/contacts", {"phone": refused})
    assert (taken.status, taken.code) == (409, "PHONE_TAKEN")


async def test_a_registered_phone_is_born_granted_only_by_a_younger_consent(api: Api) -> None:
    await api.post("/contacts/opt-out", {"phone": PHONE, "at": at(api, days=1)})
    for given, code in (
        ({}, "CONSENTIMENTO_SEM_ORIGEM"),
        ({"source": "x", "at": at(api, days=2)}, OLDER),
    ):
        assert (await api.post("/contacts", {"phone": PHONE, "optIn": {"status": "granted", **given}})).code == code
    contact = await made(api, optIn={"status": "granted", "source": "loja"})
    assert contact["optIn"]["status"] == "granted"
    assert await api.database.fetchval("select count(*) from opt_outs") == 0


async def test_an_opt_out_by_address_reaches_every_contact_that_has_it(api: Api) -> None:
    first = await made(api, email="Same@example.com")
    second = await made(api, "+5511987654322", email="same@Example.com")
    other = await made(api, "+5511987654323", email="other@example.com")
    answer = await api.post("/contacts/opt-out", {"email": "SAME@example.com", "reason": "pediu"})
    assert answer.body["contactId"] == first["id"]
    read = [(await api.get(f"/contacts/{each['id']}")).body["optIn"]["status"] for each in (first, second, other)]
    assert read == ["denied", "denied", "unknown"]
    third = await made(api, "+5511987654324", email="same@example.com")
    assert third["optIn"]["status"] == "denied"


class Counted:
    """A connection that counts its statements."""

    def __init__(self, connection: Any, statements: list[str]) -> None:
        self._connection = connection
        self._statements = statements

    def __getattr__(self, name: str) -> Any:
        run = getattr(self._connection, name)

        async def counted(sql: str, *arguments: Any) -> Any:
            self._statements.append(sql)
            return await run(sql, *arguments)

        return counted


async def test_however_many_share_an_address_they_refuse_at_once_by_statements_for_many(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    await subscribe(api)
    many = 2_000
    await api.database.execute(
        "insert into contacts (organization_id, env, id, phone, phone_hash, email, email_key, source, opt_in_status, "
        "opt_in_at, search, updated_at) select $1, 'test', 'cnt_' || lpad(i::text, 21, '0'), "
        "'+55119' || lpad(i::text, 8, '0'), '', 'a@example.com', 'a@example.com', 'api', "
        "case i when 1 then 'denied' when 2 then 'granted' else 'unknown' end, case when i = 2 then now() end, '', "
        "now() from generate_series(1, $2::integer) i",
        api.organizations[0].organization.id,
        many,
    )
    transaction, transactions = api.database.transaction, []

    @asynccontextmanager
    async def counted() -> AsyncIterator[Any]:
        async with transaction() as connection:
            transactions.append(statements := list[str]())
            yield Counted(connection, statements)

    with monkeypatch.context() as patched:
        patched.setattr(api.database, "transaction", counted)
        answer = await api.post("/contacts/opt-out", {"email": "A@example.com", "source": "site", "reason": "pediu"})
    assert answer.body["contactId"] == f"cnt_{1:021}"
    assert answer.body["alreadyOptedOut"] is False
    assert len(transactions) == 1
    assert len(transactions[0]) < 25
    stored = await api.database.fetch(
        "select opt_in_status, opt_in_source, opt_in_revoked_reason, revision, opt_in_at is not null as consented, "
        "count(*) from contacts group by 1, 2, 3, 4, 5"
    )
    assert {tuple(row) for row in stored} == {
        ("denied", None, None, 1, False, 1),
        ("denied", "site", "pediu", 2, True, 1),
        ("denied", "site", "pediu", 2, False, many - 2),
    }
    for table, distinct, rows in (("contact_consents", "contact_id", many - 1), ("opt_outs", "hash", many + 1)):
        found = await api.database.fetchrow(f"select count(*), count(distinct {distinct}) from {table}")
        assert tuple(found) == (rows, rows), table
    events = Counter((event["type"], event["id"]) for event in await told(api))
    assert set(events.values()) == {1}
    (refused,) = [each for each in api.changes if isinstance(each, ConsentRefused)]
    # What is claimed for them is stopped before the answer: for their phones, and for the address that they share.
    assert len(set(refused.recipients)) == many - 1 + 1
    types = Counter(kind for kind, _ in events)
    assert types == {"contact.consent_changed": many - 1, "contact.opted_out": many - 1}


async def test_an_address_stays_registered_while_another_contact_with_it_refuses(api: Api) -> None:
    first = await made(api, email="same@example.com", optIn={"status": "denied"})
    await made(api, "+5511987654322", email="same@example.com", optIn={"status": "denied"})
    api.clock.shift(1)
    assert (await changed(api, first, status="granted", source="loja")).status == 200
    kinds = await api.database.fetch("select kind from opt_outs order by kind")
    assert [row["kind"] for row in kinds] == ["email", "phone"]


@pytest.mark.parametrize("body", [{}, {"phone": PHONE, "email": "m@example.com"}])
async def test_an_opt_out_names_exactly_one(api: Api, body: dict[str, Any]) -> None:
    answer = await api.post("/contacts/opt-out", body)
    assert (answer.status, answer.code) == (422, "VALIDATION_ERROR")


@pytest.mark.parametrize("body", [{"contactId": "cnt_" + "0" * 21}, {"contactId": "x"}, {"externalId": "nobody"}])
async def test_an_opt_out_of_an_unknown_id_is_not_found(api: Api, body: dict[str, Any]) -> None:
    answer = await api.post("/contacts/opt-out", body)
    assert answer.status == 404
    assert "ontact" in answer.body["detail"]
    assert "nobody" not in answer.body["detail"]  # an external id may say who somebody is


@pytest.mark.parametrize("email", ["maria", "maria @example.com", "@", "a@b c"])
async def test_an_opt_out_of_what_is_no_address_is_refused(api: Api, email: str) -> None:
    answer = await api.post("/contacts/opt-out", {"email": email})
    assert (answer.status, [error["path"] for error in answer.body["errors"]]) == (422, ["/email"])
    assert not await api.database.fetch("select from opt_outs")


async def test_an_opt_out_whose_contact_is_deleted_meanwhile_is_not_answered_as_one(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    contact = await made(api)
    read = contacts.get

    async def deleted_after(*asked: Any) -> Any:
        found = await read(*asked)
        await api.database.execute("delete from contacts where id = $1", contact["id"])
        return found

    monkeypatch.setattr(contacts, "get", deleted_after)
    answer = await api.post("/contacts/opt-out", {"contactId": contact["id"]})
    assert (answer.status, answer.code) == (404, "NOT_FOUND")


async def test_an_opt_out_whose_date_is_the_zero_of_a_language_can_be_taken_back(api: Api) -> None:
    await api.post("/contacts/opt-out", {"phone": PHONE, "at": "0001-01-01T00:00:00Z"})
    contact = await made(api, optIn={"status": "granted", "source": "form"})
    await changed(api, contact, status="denied", revokedAt="0001-01-01T00:00:00Z")
    again = await changed(api, contact, status="granted", source="form")
    assert (again.status, again.body["optIn"]["status"]) == (200, "granted")


async def test_an_opt_out_in_the_future_is_refused(api: Api) -> None:
    answer = await api.post("/contacts/opt-out", {"phone": PHONE, "at": at(api, minutes=-6)})
    assert (answer.status, answer.code) == (422, AHEAD)
    assert answer.body["errors"][0]["path"] == "/at"
    assert await api.database.fetchval("select count(*) from opt_outs") == 0


async def test_the_registry_outlives_a_contact_with_its_latest_address(api: Api) -> None:
    contact = await made(api, optIn={"status": "denied"})
    await api.patch(f"/contacts/{contact['id']}", {"email": "new@example.com"})
    await api.delete(f"/contacts/{contact['id']}")
    assert (await made(api))["optIn"]["status"] == "denied"
    assert (await made(api, "+5511987654322", email="New@example.com"))["optIn"]["status"] == "denied"


async def test_what_a_person_records_happens_now_and_from_where_they_are(api: Api) -> None:
    token = await session(api)
    given = {"status": "granted", "source": "balcão", "at": at(api, days=30)}
    how: dict[str, Any] = {"token": token, "headers": {"User-Agent": "a browser"}}
    before = api.clock.now()
    contact = (await api.post("/contacts", {"phone": PHONE, "optIn": given}, **how)).body
    opt_in = contact["optIn"]
    assert (opt_in["ip"], opt_in["userAgent"], opt_in["source"]) == ("127.0.0.1", "a browser", "balcão")
    assert opt_in["at"] >= format_timestamp(before)
    refused = await api.post("/contacts/opt-out", {"contactId": contact["id"], "at": at(api, minutes=-60)}, **how)
    assert refused.status == 200
    opt_in = (await api.get(f"/contacts/{contact['id']}")).body["optIn"]
    assert format_timestamp(before) <= opt_in["revokedAt"] <= format_timestamp(api.clock.now())
    (latest, _) = (await api.get(f"/contacts/{contact['id']}/consents")).body["items"]
    assert latest["dataInformada"] is False


async def test_a_program_whose_name_is_no_utf8_is_recorded_as_far_as_it_can_be_read(api: Api) -> None:
    lines = b"Content-Type: application/json\r\nUser-Agent: caf\xe9 \xc3\xa9\r\n"
    content = orjson.dumps({"phone": PHONE, "optIn": {"status": "granted"}})
    made = await api.speak("POST", "/contacts", lines, content, token=await session(api))
    assert made.status == 201, made.body
    assert made.body["optIn"]["userAgent"] == "caf\ufffd é"


async def test_an_opt_out_is_taken_from_a_suspended_organization_too(api: Api) -> None:
    path = f"/v2/admin/organizations/{api.organizations[0].organization.id}"
    await api.patch(path, {"status": "suspended"}, token=ADMIN_TOKEN)
    assert (await api.post("/contacts", {"phone": PHONE})).code == "ORGANIZATION_SUSPENDED"
    assert (await api.post("/contacts/opt-out", {"phone": PHONE})).status == 200
