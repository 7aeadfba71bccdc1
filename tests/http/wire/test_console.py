"""How the console's page and its files are served (C34.3)."""

import gzip
import re
from typing import Any

import pytest

from recado.http.routes.service.console import console_routes

REFERENCE = re.compile(r'(?:src|href)="([^"]+)"')
IMPORT = re.compile(r'from "(\.[^"]+)"')


async def start(serve: Any) -> Any:
    api = await serve(*console_routes())
    api.client.headers.pop("Authorization")
    return api


async def page(api: Any) -> str:
    async with api.client.get("/console") as answer:
        assert answer.status == 200
        return str(await answer.text())


async def test_the_page_allows_nothing_from_elsewhere_and_nothing_inline(serve: Any) -> None:
    api = await start(serve)
    async with api.client.get("/console") as answer:
        policy = dict(part.strip().split(" ", 1) for part in answer.headers["Content-Security-Policy"].split(";"))
        text = await answer.text()
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
        assert answer.headers["Cache-Control"] == "no-cache"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert policy.pop("default-src") == "'none'"
    assert {policy.pop(kind) for kind in ("script-src", "style-src", "img-src")} == {"'self'"}
    assert policy.pop("connect-src") == "'self' blob:", "blob: is what the page itself made"
    assert {policy.pop(kind) for kind in ("base-uri", "form-action", "frame-ancestors")} == {"'none'"}
    assert policy == {"require-trusted-types-for": "'script'", "trusted-types": "'none'"}
    assert not re.search(r"<style|style=|<script(?![^>]* src=)| on\w+=|https?:", text)


async def test_every_file_that_the_page_and_its_modules_name_is_there_and_may_be_kept_for_good(serve: Any) -> None:
    api = await start(serve)
    waiting, seen = set(REFERENCE.findall(await page(api))), set()
    while waiting:
        address = waiting.pop()
        seen.add(address)
        async with api.client.get(address) as answer:
            assert answer.status == 200, address
            assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            text = await answer.text()
        if "/vendor/" not in address:
            assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), f"{address} names another host"
        here = address.rpartition("/")[0]
        for relative in IMPORT.findall(text) if answer.content_type == "text/javascript" else ():
            parts: list[str] = []
            for part in f"{here}/{relative}".split("/"):
                if part == "..":
                    parts.pop()
                elif part != ".":
                    parts.append(part)
            waiting |= {"/".join(parts)} - seen
    assert len(seen) > 20


async def test_whoever_has_a_file_is_told_so_and_whoever_takes_gzip_gets_it(serve: Any) -> None:
    api = await start(serve)
    [address] = {each for each in REFERENCE.findall(await page(api)) if each.endswith("/app.js")}
    for path in ("/console", address):
        async with api.client.get(path, headers={"Accept-Encoding": "identity"}) as answer:
            plain, tag = await answer.read(), answer.headers["ETag"]
            assert "Content-Encoding" not in answer.headers
            assert answer.headers["Vary"] == "Accept-Encoding"
        packed = await packed_bytes(api, path)
        assert gzip.decompress(packed) == plain
        assert len(packed) < len(plain)
        async with api.client.get(path, headers={"If-None-Match": tag}) as answer:
            assert (answer.status, await answer.read()) == (304, b"")
            assert answer.headers["ETag"] == tag
        async with api.client.head(path, headers={"Accept-Encoding": "identity"}) as answer:
            assert (answer.status, answer.headers["Content-Length"]) == (200, str(len(plain)))


async def packed_bytes(api: Any, path: str) -> bytes:
    async with api.client.get(path, headers={"Accept-Encoding": "gzip, br"}, auto_decompress=False) as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
        return bytes(await answer.read())


@pytest.mark.parametrize(
    "path",
    ["0000000000000000/app.js", "{build}/x.js", "{build}/index.html", "{build}/vendor/preact/LICENSE",
     "{build}/vendor/README.md", "{build}/..%2Fopenapi%2Fexamples.json", "{build}/views",
     "{build}/views/..%2F..%2Fserver.py"],
)  # fmt: skip
async def test_nothing_else_is_served(serve: Any, path: str) -> None:
    api = await start(serve)
    build = REFERENCE.findall(await page(api))[0].split("/")[2]
    async with api.client.get("/console/" + path.replace("{build}", build)) as answer:
        assert answer.status == 404
        assert (await answer.json(content_type=None))["code"] == "ROUTE_NOT_FOUND"
