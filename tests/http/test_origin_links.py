"""Origin links over HTTP: the records, and what people get who open them (C27.4)."""

import asyncio
import re
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import asyncpg
import orjson
import pytest
from tests.captured import capture_logs
from yarl import URL

from recado.http.routes.links.opened_links import CODES_OF_ADDRESS
from recado.storage.links import origin_links

LINKS = "/v2/origin-links"


def link(api: Any, **fields: Any) -> dict[str, Any]:
    number = api.organizations[0].number.id
    return {"name": "Spring", "numberId": number, "text": "I saw the shoes", "fonte": "social_ads", **fields}


async def made(api: Any, **fields: Any) -> Any:
    answer = await api.post(LINKS, link(api, **fields))
    assert answer.status == 201, answer.body
    return answer.body


async def opened(api: Any, found: Any, query: str = "", *, method: str = "GET", **headers: str) -> tuple[int, str]:
    """The status, and where it leads."""
    path = urlsplit(found["url"]).path
    async with api.session.request(method, api.base + path + query, allow_redirects=False, headers=headers) as answer:
        return answer.status, answer.headers.get("Location", "")


def text_of(location: str) -> str:
    return parse_qs(urlsplit(location).query)["text"][0]


async def codes(api: Any) -> list[Any]:
    return list(await api.database.fetch("select * from origin_codes order by created_at"))


async def test_an_environment_holds_a_thousand(api: Any) -> None:
    await made(api)
    await api.database.execute(
        "insert into origin_links select (jsonb_populate_record(l, jsonb_build_object("
        "'id', 'olk_' || g, 'slug', 'slug' || g))).* from origin_links l, generate_series(1, 999) g"
    )
    full = await api.post(LINKS, link(api))
    assert (full.status, full.code, full.body["meta"]) == (409, "LIMIT_REACHED", {"limit": 1_000})


async def test_a_link_is_made_read_changed_and_deleted(api: Any) -> None:
    found = await made(api)
    assert found["id"].startswith("olk_")
    assert found["url"] == f"https://l.recado.test/c/{found['slug']}"
    assert (found["clicks"], found["fonte"]) == (0, "social_ads")
    path = f"{LINKS}/{found['id']}"
    changed = await api.patch(path, {"name": "Summer", "fonte": "outra", "fonteRotulo": "flyer"})
    assert changed.body == {**found, "name": "Summer", "fonte": "outra", "fonteRotulo": "flyer"}
    back = await api.patch(path, {"fonte": "search_ads"})
    assert "fonteRotulo" not in back.body
    assert (await api.get(LINKS)).body["items"] == [back.body]
    assert (await api.get(LINKS, env="live")).body["items"] == []
    assert (await api.delete(path)).status == 204
    assert (await opened(api, found))[0] == 404


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"text": "x" * 201}, "/text"),
        ({"text": " "}, "/text"),
        ({"name": None}, "/name"),
        ({"fonte": "radio"}, "/fonte"),
        ({"fonteRotulo": "flyer"}, "/fonteRotulo"),
        ({"numberId": "num_000000000000000000000"}, "/numberId"),
        ({"numberId": "x"}, "/numberId"),
    ],
)
async def test_what_is_wrong_is_named(api: Any, fields: dict[str, Any], pointer: str) -> None:
    answer = await api.post(LINKS, link(api, **fields))
    assert (answer.status, [error["path"] for error in answer.body["errors"]]) == (422, [pointer])
    found = await made(api)
    assert (await api.patch(f"{LINKS}/{found['id']}", fields)).status == 422


async def test_a_number_of_the_other_environment_is_none(api: Any) -> None:
    answer = await api.post(LINKS, link(api), env="live")
    assert (answer.status, answer.code) == (422, "REFERENCE_NOT_FOUND")


async def test_nothing_leads_to_chats_that_open_nowhere(api: Any) -> None:
    found = await made(api)
    api.chats["test"] = None
    answer = await api.post(LINKS, link(api))
    assert (answer.status, answer.code) == (502, "DEPENDENCY_FAILED")
    assert (await opened(api, found))[0] == 404


async def test_whoever_opens_a_link_comes_to_the_chat_with_a_code(api: Any) -> None:
    found = await made(api)
    query = "?utm_campaign=spring&utm_term=red%20shoes&gclid=1"
    status, location = await opened(api, found, query)
    digits = api.organizations[0].number.display_phone.removeprefix("+")
    assert (status, location.partition("?")[0]) == (302, f"https://test.example.com/{digits}")
    code = re.fullmatch(r"I saw the shoes \(([A-HJ-NP-Z2-9]{6})\)", text_of(location))[1]  # type: ignore[index]
    (row,) = await codes(api)
    assert (row["code"], row["sender_id"]) == (code, found["numberId"])
    assert (await api.get(LINKS)).body["items"][0]["clicks"] == 1


@pytest.mark.parametrize(
    ("query", "campanha"),
    [
        ("?utm_campaign=spring&utm_campaign=summer", "spring"),
        ("?utm_campaign=%00&gclid=%00", None),
        ("?utm_campaign=%ff%fe&campanha=own", "own"),
        ("?utm_campaign=" + "x" * 3_000, "x" * 200),
    ],
)
async def test_whatever_was_made_of_its_address_a_link_leads_on(api: Any, query: str, campanha: str | None) -> None:
    found = await made(api)
    url = URL(f"{api.base}{urlsplit(found['url']).path}{query}", encoded=True)
    async with api.session.get(url, allow_redirects=False, headers={"Prefer": "handling=strict"}) as answer:
        assert (answer.status, answer.headers.get("X-Recado-Warnings")) == (302, None)
    (row,) = await codes(api)
    assert orjson.loads(row["origin"]).get("campanha") == campanha


async def test_a_trouble_of_the_database_costs_the_code_only_and_is_told_once(
    api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: Any) -> None:
        raise asyncpg.UndefinedColumnError("no such column")

    found = await made(api)
    monkeypatch.setattr(origin_links, "store_codes", fails)
    with capture_logs() as logs:
        answers = [await opened(api, found) for _ in range(3)]
    assert [(status, text_of(location)) for status, location in answers] == [(302, "I saw the shoes")] * 3
    told = [each for each in logs if each["event"] == "origin_links_without_code"]
    assert [(each["log_level"], each["error"]) for each in told] == [("warning", "UndefinedColumnError")]


async def test_a_change_holds_for_the_next_click(api: Any) -> None:
    found = await made(api)
    await opened(api, found)
    await api.patch(f"{LINKS}/{found['id']}", {"text": "Other"})
    assert text_of((await opened(api, found))[1]).startswith("Other (")


async def test_what_only_looks_gets_no_code_and_does_not_count(api: Any) -> None:
    found = await made(api)
    for how in ({"method": "HEAD"}, {"User-Agent": "Some LOOKER/2.0"}):
        status, location = await opened(api, found, **how)  # type: ignore[arg-type]
        assert (status, text_of(location)) == (302, "I saw the shoes")
    assert await codes(api) == []
    assert (await api.get(LINKS)).body["items"][0]["clicks"] == 0


async def test_an_address_that_opens_without_end_gets_no_more_codes(api: Any) -> None:
    found = await made(api)
    most = CODES_OF_ADDRESS[1]
    answers = await asyncio.gather(*[opened(api, found) for _ in range(most + 20)])
    assert {status for status, _ in answers} == {302}
    assert most <= len(await codes(api)) < most + 20


async def test_an_unknown_address_is_a_page_without_a_link(api: Any) -> None:
    for slug in ("00000000", "x", "0" * 300, "%00", "0000000é"):
        async with api.session.get(f"{api.base}/c/{slug}", allow_redirects=False) as answer:
            assert answer.status == 404
    async with api.session.get(f"{api.base}/c/00000000", allow_redirects=False) as answer:
        assert answer.content_type == "text/plain"


async def test_a_number_that_is_gone_has_no_chat(api: Any) -> None:
    found = await made(api)
    assert (await api.delete(f"/numbers/{found['numberId']}")).status == 204
    assert (await opened(api, found))[0] == 404


async def test_a_code_that_the_number_has_is_drawn_again(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = await made(api)
    drawn = iter(["ABCDEF", "ABCDEF", "ABCDEG", *["ABCDEF"] * 3])
    monkeypatch.setattr("recado.services.links.origin_clicks.origin_code", lambda _: next(drawn))
    texts = [text_of((await opened(api, found))[1]) for _ in range(3)]
    assert texts == ["I saw the shoes (ABCDEF)", "I saw the shoes (ABCDEG)", "I saw the shoes"]


async def test_codes_go_after_thirty_days(api: Any) -> None:

    found = await made(api)
    await opened(api, found)
    now = api.clock.now()
    await origin_links.purge(api.database, now + timedelta(days=29))
    assert len(await codes(api)) == 1
    await origin_links.purge(api.database, now + timedelta(days=31))
    assert await codes(api) == []
