"""Links of messages that people open, over HTTP (C27.1)."""

from typing import Any

URL = "https://example.com/a?b=c&d=%20#e"


async def stored(api: Any, code: str, url: str = URL) -> None:
    await api.database.execute(
        "insert into tracked_links (code, organization_id, env, channel, message_id, url) "
        "values ($1, $2, 'test', 'pager', $3, $4)",
        code, api.organizations[0].organization.id, api.ids.new("msg_"), url,
    )  # fmt: skip


async def opened(api: Any, path: str, *, method: str = "GET", **headers: str) -> tuple[int, str | None]:
    async with api.session.request(method, api.base + path, allow_redirects=False, headers=headers) as answer:
        assert answer.headers["Cache-Control"] == "no-store"
        return answer.status, answer.headers.get("Location")


async def clicks(api: Any) -> int:
    await api.tracked_clicks.record()
    return int(await api.database.fetchval("select sum(clicks) from tracked_links"))


async def test_a_link_leads_to_exactly_what_stood_in_the_message(api: Any) -> None:
    await stored(api, "AAAAAAAA")
    assert await opened(api, "/l/AAAAAAAA") == (302, URL)
    assert await opened(api, "/l/AAAAAAAA?url=https://evil.example.com&utm_source=x") == (302, URL)
    assert await clicks(api) == 2


async def test_what_a_header_cannot_hold_is_escaped(api: Any) -> None:
    await stored(api, "AAAAAAAA", "https://example.com/ção?q=%C3%A7")
    assert await opened(api, "/l/AAAAAAAA") == (302, "https://example.com/%C3%A7%C3%A3o?q=%C3%A7")
    await stored(api, "BBBBBBBB", "https://example.com/a b%20c")
    assert await opened(api, "/l/BBBBBBBB") == (302, "https://example.com/a%20b%20c")


async def test_heads_and_programs_that_look_are_led_on_and_not_counted(api: Any) -> None:
    await stored(api, "AAAAAAAA")
    assert await opened(api, "/l/AAAAAAAA", method="HEAD") == (302, URL)
    assert await opened(api, "/l/AAAAAAAA", **{"User-Agent": "Mozilla/5.0 (compatible; Looker/1.0)"}) == (302, URL)
    assert await clicks(api) == 0


async def test_an_unknown_code_is_answered_with_text(api: Any) -> None:
    for code in ("BBBBBBBB", "short", "%00", "0000000é", "a" * 3_000):
        status, location = await opened(api, f"/l/{code}")
        assert (status, location) == (404, None)
    async with api.session.get(f"{api.base}/l/BBBBBBBB") as answer:
        assert (answer.content_type, (await answer.text()).count("\n")) == ("text/plain", 1)


async def test_other_methods_are_none(api: Any) -> None:
    await stored(api, "AAAAAAAA")
    answer = await api.post("/l/AAAAAAAA", token="")
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")
