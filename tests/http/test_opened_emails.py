"""The image of an e-mail and the way to unsubscribe, over HTTP (C27.2, C27.3, C12.5)."""

from typing import Any

import orjson
import pytest
from tests.captured import capture_logs
from tests.message_rows import insert_messages

from recado.domain.contacts.contact import email_hash
from recado.domain.core.ids import MESSAGE
from recado.domain.email.public_tokens import EmailKey, Unsubscription
from recado.http.routes.links import opened_emails
from recado.http.routes.links.opened_emails import GIF
from recado.http.routes.links.unsubscribe_pages import language_of

ANA = "Ana@example.com"


async def mailed(api: Any, to: str = ANA) -> EmailKey:
    key = EmailKey(api.organizations[0].organization.id, "test", api.ids.new(MESSAGE))
    row = {"channel": "email", "recipient": to, "id": key.message_id}
    await insert_messages(api.database, key.organization_id, key.env, [row])
    return key


def way_out(api: Any, key: EmailKey, contact: dict[str, Any] | None = None, to: str = ANA) -> str:
    who = Unsubscription(key, contact and contact["id"], email_hash(key.organization_id, to))
    return f"/u/{api.email_tokens.of_unsubscription(who)}"


async def asked(api: Any, method: str, path: str, **how: Any) -> tuple[int, Any, bytes]:
    async with api.session.request(method, api.base + path, allow_redirects=False, **how) as answer:
        return answer.status, answer.headers, await answer.read()


async def person(api: Any, phone: str, **fields: Any) -> dict[str, Any]:
    answer = await api.post("/contacts", {"phone": phone, **fields})
    assert answer.status == 201, answer.body
    return dict(answer.body)


async def status(api: Any, contact: dict[str, Any]) -> str:
    return str((await api.get(f"/contacts/{contact['id']}")).body["optIn"]["status"])


async def registered(api: Any) -> list[tuple[str, bytes, str]]:
    rows = await api.database.fetch("select kind, hash, source from opt_outs order by kind")
    return [tuple(row) for row in rows]


# The image ------------------------------------------------------------------------------------------------------------


async def opened_at(api: Any, key: EmailKey) -> Any:
    await api.email_opens.record()
    return await api.database.fetchval("select opened_at from messages where id = $1", key.message_id)


@pytest.mark.parametrize("query", ["", "?x=1"])
async def test_the_image_is_a_gif_that_nobody_keeps_and_tells_of_the_open(api: Any, query: str) -> None:
    key = await mailed(api)
    found, headers, body = await asked(api, "GET", f"/o/{api.email_tokens.of_open(key)}.gif{query}")
    assert (found, body) == (200, GIF)
    assert (headers["Content-Type"], headers["Cache-Control"]) == ("image/gif", "no-store")
    assert await opened_at(api, key) is not None


async def test_the_usual_way_gives_the_same_image(api: Any) -> None:
    key = await mailed(api)
    path = f"/o/{api.email_tokens.of_open(key)}.gif"
    found, headers, body = await asked(api, "GET", path, headers={"Connection": "close"})
    assert (found, headers["Content-Type"], body) == (200, "image/gif", GIF)
    assert headers["Cache-Control"] == "no-store"
    assert await opened_at(api, key) is not None


async def test_heads_and_programs_that_look_are_answered_and_not_counted(api: Any) -> None:
    key = await mailed(api)
    path = f"/o/{api.email_tokens.of_open(key)}.gif"
    found, headers, body = await asked(api, "HEAD", path)
    assert (found, headers["Content-Length"], body) == (200, str(len(GIF)), b"")
    for close in ({}, {"Connection": "close"}):
        found, _, body = await asked(api, "GET", path, headers={"User-Agent": "Mozilla/5.0 (Looker/1.0)", **close})
        assert (found, body) == (200, GIF)
    assert await opened_at(api, key) is None


async def test_what_is_no_token_leads_nowhere(api: Any) -> None:
    key = await mailed(api)
    token = api.email_tokens.of_open(key)
    for name in (token, f"{token[:-1]}*.gif", "x.gif", ".gif", f"{token}.gif.gif", "é.gif", "a" * 3_000):
        found, headers, body = await asked(api, "GET", f"/o/{name}")
        assert (found, headers["Content-Type"], body.count(b"\n")) == (404, "text/plain; charset=utf-8", 1), name
    assert await opened_at(api, key) is None


# The way out ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        (None, "pt"), ("", "pt"), ("fr", "pt"), ("*", "pt"), ("en", "en"), ("en-GB,en;q=0.9,pt;q=0.8", "en"),
        ("fr, pt-PT;q=0.5, en;q=0.4", "pt"), ("en;q=0, pt;q=0", "pt"), ("en;q=x", "pt"), ("en;q=9", "pt"),
        ("de, en;q=0.1", "en"), ("x" * 300 + ",en", "pt"), ("EN-us", "en"), ("en;q=nan", "pt"),
    ],
)  # fmt: skip
def test_the_page_is_in_the_language_that_is_preferred(accepted: str | None, language: str) -> None:
    assert language_of(accepted) == language


@pytest.mark.parametrize(
    ("accepted", "language", "words"), [("pt-BR", "pt-BR", "Descadastrar"), ("en", "en", "Unsubscribe")]
)
async def test_the_page_asks_before_anything_is_done(api: Any, accepted: str, language: str, words: str) -> None:
    contact = await person(api, "+5511987650001", email=ANA)
    path = way_out(api, await mailed(api), contact)
    found, headers, body = await asked(api, "GET", path, headers={"Accept-Language": accepted})
    page = body.decode()
    assert (found, headers["Content-Type"], headers["Content-Language"]) == (200, "text/html; charset=utf-8", language)
    assert headers["Cache-Control"] == "no-store"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert words in page
    assert '<form method="post">' in page
    assert "script" not in page
    assert ANA.lower() not in page.lower()
    assert await status(api, contact) == "unknown"
    assert await registered(api) == []


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"data": {"List-Unsubscribe": "One-Click"}},
        {"data": b"List-Unsubscribe=One-Click", "headers": {"Content-Type": "multipart/form-data; boundary=x"}},
        {"json": {"any": "thing"}},
    ],
)
async def test_the_contact_and_the_address_are_opted_out_whatever_the_body_says(api: Any, how: dict[str, Any]) -> None:
    contact = await person(api, "+5511987650001", email=ANA)
    key = await mailed(api)
    found, headers, body = await asked(api, "POST", way_out(api, key, contact), **how)
    assert (found, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert b"descadastrado" in body
    shown = (await api.get(f"/contacts/{contact['id']}")).body["optIn"]
    assert (shown["status"], shown["source"], shown["revokedReason"]) == ("denied", "unsubscribe", "email: unsubscribe")
    assert ("email", email_hash(key.organization_id, ANA), "unsubscribe") in await registered(api)


async def test_a_repeat_changes_nothing_and_is_told_once(api: Any) -> None:
    await api.post("/webhooks", {"url": "https://hooks.example.com/", "events": ["*"]})
    contact = await person(api, "+5511987650001", email=ANA)
    path = way_out(api, await mailed(api), contact)
    for _ in range(2):
        assert (await asked(api, "POST", path))[0] == 200
    rows = await api.database.fetch("select type, data from events order by id")
    told = [(row["type"], orjson.loads(row["data"])) for row in rows]
    assert [each for each, _ in told] == ["contact.created", "contact.consent_changed", "contact.opted_out"]
    assert told[2][1]["source"] == "unsubscribe"
    assert len((await api.get(f"/contacts/{contact['id']}/consents")).body["items"]) == 1


async def test_an_address_that_the_contact_has_no_more_is_opted_out_with_it(api: Any) -> None:
    contact = await person(api, "+5511987650001", email="new@example.com")
    other = await person(api, "+5511987650002", email="other@example.com")
    key = await mailed(api)
    await asked(api, "POST", way_out(api, key, contact))
    assert (await status(api, contact), await status(api, other)) == ("denied", "unknown")
    hashes = {each for kind, each, _ in await registered(api) if kind == "email"}
    assert hashes == {email_hash(key.organization_id, each) for each in (ANA, "new@example.com")}


async def test_without_a_contact_everybody_with_the_address_is_opted_out(api: Any) -> None:
    known = [await person(api, f"+551198765000{n}", email=email) for n, email in enumerate([ANA, ANA.lower()])]
    await asked(api, "POST", way_out(api, await mailed(api)))
    assert [await status(api, each) for each in known] == ["denied", "denied"]


async def test_beside_the_contact_everybody_with_the_address_is_opted_out(api: Any) -> None:
    known = [await person(api, f"+551198765000{n}", email=email) for n, email in enumerate([ANA, ANA.lower()])]
    named = await person(api, "+5511987650009", email="new@example.com")
    key = await mailed(api)
    await asked(api, "POST", way_out(api, key, named))
    assert [await status(api, each) for each in (*known, named)] == ["denied"] * 3


async def test_past_the_time_of_its_message_the_contact_alone_is_opted_out_with_the_address(api: Any) -> None:
    known = [await person(api, f"+551198765000{n}", email=email) for n, email in enumerate([ANA, ANA.lower()])]
    key = await mailed(api)
    await api.database.execute("delete from messages")
    await asked(api, "POST", way_out(api, key, known[0]))
    assert [await status(api, each) for each in known] == ["denied", "unknown"]
    assert ("email", email_hash(key.organization_id, ANA), "unsubscribe") in await registered(api)


async def test_a_token_outlives_its_message_and_its_contact(api: Any) -> None:
    await api.post("/webhooks", {"url": "https://hooks.example.com/", "events": ["contact.opted_out"]})
    contact = await person(api, "+5511987650001", email=ANA)
    key = await mailed(api)
    path = way_out(api, key, contact)
    assert (await api.delete(f"/contacts/{contact['id']}")).status == 204
    await api.database.execute("delete from messages")
    for _ in range(2):
        assert (await asked(api, "POST", path))[0] == 200
    assert await registered(api) == [("email", email_hash(key.organization_id, ANA), "unsubscribe")]
    (data,) = [orjson.loads(row["data"]) for row in await api.database.fetch("select data from events")]
    assert (data["source"], "phone" in data, "id" in data) == ("unsubscribe", False, False)


async def test_a_suspended_organization_cannot_keep_anybody(api: Any) -> None:
    contact = await person(api, "+5511987650001", email=ANA)
    path = way_out(api, await mailed(api), contact)
    await api.database.execute("update organizations set status = 'suspended'")
    assert (await asked(api, "POST", path))[0] == 200
    assert await api.database.fetchval("select opt_in_status from contacts") == "denied"


@pytest.mark.parametrize(("how", "code"), [("set moving = true", 503), ("set id = 'org_' || id", 404)])
async def test_who_is_in_another_database_or_on_the_way_is_not_recorded_here(api: Any, how: str, code: int) -> None:
    key = await mailed(api)
    await api.database.execute(f"update organizations {how} where id = $1", key.organization_id)
    for method in ("GET", "POST"):
        found, headers, _ = await asked(api, method, way_out(api, key))
        assert found == code
        assert ("Retry-After" in headers) is (code == 503)
    assert await registered(api) == []


async def test_what_is_queued_to_the_address_is_withdrawn(api: Any) -> None:
    key = await mailed(api, to="old@example.com")
    queued = await mailed(api, to="old@example.com")
    hashed = int.from_bytes(email_hash(key.organization_id, "old@example.com")[:8], "big", signed=True)
    await api.database.execute(
        "insert into dispatch (organization_id, id, env, channel, sender_id, class, owner, due_at, ttl_ms, expires_at, "
        "held_base_ms, force, coins, units, consent_hash) "
        "values ($1, $2, 'test', 'email', 'x', 1, 'single', now(), 1, now(), 0, false, 0, 1, $3)",
        key.organization_id, queued.message_id, hashed,
    )  # fmt: skip
    await api.database.execute("update messages set status = 'queued' where id = $1", queued.message_id)
    contact = await person(api, "+5511987650001", email="new@example.com")
    assert (await asked(api, "POST", way_out(api, key, contact, "old@example.com")))[0] == 200
    row = await api.database.fetchrow("select status, failure_code from messages where id = $1", queued.message_id)
    assert tuple(row) == ("failed", "opted_out")


async def test_what_is_no_token_unsubscribes_nobody(api: Any) -> None:
    contact = await person(api, "+5511987650001", email=ANA)
    path = way_out(api, await mailed(api), contact)
    for method in ("GET", "POST"):
        for wrong in (f"{path[:-1]}*", "/u/x", f"{path}0"):
            found, headers, _ = await asked(api, method, wrong)
            assert (found, headers["Content-Type"]) == (404, "text/plain; charset=utf-8")
    found, _, _ = await asked(api, "POST", path, data=b"x" * 10_000)
    assert found == 413
    assert await status(api, contact) == "unknown"


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened_emails, "REFUSALS_OF_ADDRESS", (0.001, 2))


async def test_one_address_cannot_unsubscribe_without_end(few: None, api: Any) -> None:
    path = way_out(api, await mailed(api))
    assert [(await asked(api, "POST", path))[0] for _ in range(3)] == [200, 200, 429]
    assert (await asked(api, "GET", path))[0] == 200


async def test_nothing_of_it_is_logged(api: Any) -> None:
    path = way_out(api, await mailed(api))
    with capture_logs() as logs:
        await asked(api, "POST", path)
        await asked(api, "GET", path + "0")
    assert ANA.lower() not in str(logs).lower()
    assert path not in str(logs)
