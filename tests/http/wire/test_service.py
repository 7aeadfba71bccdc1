"""The routes about the service itself (C2.7)."""

import asyncio
import threading
import tomllib
from importlib.resources import files
from typing import Any

import orjson
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from tests.waiting import until

from recado.domain.core.errors import CODES, problem_slug
from recado.domain.core.ids import TEMPLATE
from recado.domain.core.references import reference_not_found as no_such_reference
from recado.http.openapi.document import document
from recado.http.routes.service import service
from recado.http.routes.service.service import service_routes

PARTS = {"database": True, "migrations": True}


async def parts() -> dict[str, bool]:
    return PARTS


async def start(serve: Any, *others: Any, ready: Any = parts) -> Any:
    routes = service_routes(others, ready=ready, base_url="https://api.example.com", version="1.2.3")
    api = await serve(*others, *routes)
    api.client.headers.pop("Authorization")
    return api


async def test_health_says_that_the_process_is_up(serve: Any) -> None:
    api = await start(serve)
    async with api.client.get("/healthz") as answer:
        assert (answer.status, await answer.json()) == (200, {"status": "ok"})
        assert "RateLimit" not in answer.headers


async def test_readiness_names_the_part_that_is_missing(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "READY_KEPT", 0.0)
    state = {"database": True, "migrations": True}

    async def ready() -> dict[str, bool]:
        return state

    api = await start(serve, ready=ready)
    async with api.client.get("/readyz") as answer:
        assert (answer.status, await answer.json()) == (200, {"status": "ready", "checks": state})
    state["database"] = False
    async with api.client.get("/readyz") as answer:
        body = await answer.json(content_type=None)
        assert (answer.status, body["code"], body["meta"]) == (503, "SERVICE_UNAVAILABLE", {"checks": state})
        assert answer.headers["Retry-After"] == "1"


async def test_however_many_ask_for_readiness_the_parts_are_asked_once(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "READY_KEPT", 60.0)
    asked, answered = 0, asyncio.Event()

    async def ready() -> dict[str, bool]:
        nonlocal asked
        asked += 1
        await answered.wait()
        return PARTS

    async def status() -> int:
        async with api.client.get("/readyz") as answer:
            return int(answer.status)

    api = await start(serve, ready=ready)
    asking = [asyncio.create_task(status()) for _ in range(20)]
    await until(lambda: asked, "the first one asks")
    answered.set()
    assert [await each for each in asking] == [200] * 20
    assert (await status(), asked) == (200, 1)


async def test_the_document_describes_the_other_routes_and_these(serve: Any, thing: Any) -> None:
    api = await start(serve, thing())
    async with api.client.get("/v2/openapi.json") as answer:
        found = await answer.json()
        assert answer.headers["Content-Type"] == "application/json"
    OpenAPIV31SpecValidator(found).validate()
    assert set(found["paths"]) == {"/things", "/healthz", "/readyz", "/v2/openapi.json"}
    assert found["info"]["version"] == "1.2.3"


async def test_the_document_is_compressed_for_who_takes_that_and_not_sent_to_who_has_it(serve: Any, thing: Any) -> None:
    api = await start(serve, thing())
    async with api.client.get("/v2/openapi.json", headers={"Accept-Encoding": "identity"}) as answer:
        plain, version = await answer.read(), answer.headers["ETag"]
    async with api.client.get("/v2/openapi.json", headers={"Accept-Encoding": "gzip"}) as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
        assert int(answer.headers["Content-Length"]) < len(plain) / 3
        assert await answer.read() == plain
    async with api.client.get("/v2/openapi.json", headers={"If-None-Match": version}) as answer:
        assert answer.status == 304


async def test_the_document_is_made_at_the_first_request_once_and_beside_the_loop(
    serve: Any, thing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    going_on, made = threading.Event(), []

    def slowly(*args: Any, **kwargs: Any) -> Any:
        made.append(threading.current_thread())
        assert going_on.wait(60)
        return document(*args, **kwargs)

    async def fetched() -> int:
        async with api.client.get("/v2/openapi.json") as answer:
            return len(await answer.read())

    monkeypatch.setattr(service, "document", slowly)
    api = await start(serve, thing())
    assert made == []
    asking = [asyncio.create_task(fetched()) for _ in range(3)]
    await until(lambda: made, "somebody makes it")
    asking.pop().cancel()  # the others still get it
    async with api.client.get("/healthz") as answer:
        assert answer.status == 200
    going_on.set()
    sizes = {*[await each for each in asking], await fetched()}
    assert (len(sizes), len(made)) == (1, 1)
    assert made[0] is not threading.current_thread()


async def test_a_document_that_could_not_be_made_is_tried_again(
    serve: Any, thing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[Any] = [MemoryError, document]

    def at_times(*args: Any, **kwargs: Any) -> Any:
        made = tries.pop(0)
        if made is MemoryError:
            raise MemoryError
        return made(*args, **kwargs)

    monkeypatch.setattr(service, "document", at_times)
    api = await start(serve, thing())
    statuses = []
    for _ in range(3):
        async with api.client.get("/v2/openapi.json") as answer:
            statuses.append(answer.status)
    assert statuses == [500, 200, 200]


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("/docs", ["docs.css", "docs.js", "favicon-32x32.png"]),
        ("/docs/try", ["swagger-ui.css", "swagger-ui-bundle.js", "try.js", "favicon-32x32.png"]),
    ],
)
async def test_each_page_and_its_files_come_from_this_server_only(serve: Any, path: str, parts: list[str]) -> None:
    api = await start(serve)
    async with api.client.get(path) as answer:
        page = await answer.text()
        policy = answer.headers["Content-Security-Policy"]
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert '<meta charset="utf-8">' in page
    assert "http:" not in page
    assert "https:" not in page
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    for part in parts:
        assert f"/docs/{part}" in page
        async with api.client.get(f"/docs/{part}") as answer:
            assert answer.status == 200
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert len(await answer.read()) > 100


@pytest.mark.parametrize("name", ["docs.html", "LICENSE", "..%2Fdocs.html", "swagger-ui%2FLICENSE", "x"])
async def test_no_other_file_is_served(serve: Any, name: str) -> None:
    api = await start(serve)
    async with api.client.get(f"/docs/{name}") as answer:
        assert answer.status == 404


async def test_the_type_of_every_problem_is_a_page(serve: Any) -> None:
    api = await start(serve)
    for code, entry in CODES.items():
        async with api.client.get(f"/problems/{problem_slug(code)}") as answer:
            page = await answer.text()
            assert (answer.status, code in page, str(entry.status) in page) == (200, True, True)
            assert "max-age" in answer.headers["Cache-Control"]
    async with api.client.get("/problems/no-such-thing") as answer:
        assert answer.status == 404


async def test_a_problem_page_explains_cause_and_remedy_in_the_form_that_is_asked_for(serve: Any) -> None:
    api = await start(serve)
    browser, program, terminal = "text/html,application/xhtml+xml", "application/json", "*/*"
    found = {}
    for accept in (browser, program, terminal):
        async with api.client.get("/problems/window-closed", headers={"Accept": accept}) as answer:
            found[accept] = await answer.text()
            assert answer.headers["Vary"] == "Accept"
    told = orjson.loads(found[program])
    assert told["remedy"] in found[terminal]
    assert "<h2>Cause</h2>" in found[browser]
    assert "<h2>Example</h2>" in found[browser]
    async with api.client.get("/problems", headers={"Accept": browser}) as answer:
        assert "<th>Status</th><th>Code</th><th>Meaning</th>" in await answer.text()
    assert told["example"]["type"] == told["type"] == "https://api.example.com/problems/window-closed"
    async with api.client.get("/problems", headers={"Accept": program}) as answer:
        index = await answer.json()
        assert [item["code"] for item in index["items"]] == list(CODES)
        assert all(item["cause"] and item["remedy"] for item in index["items"])


async def test_the_example_of_a_problem_has_the_errors_and_meta_of_an_occurrence(serve: Any) -> None:
    api = await start(serve)
    async with api.client.get("/problems/reference-not-found", headers={"Accept": "application/json"}) as answer:
        example = (await answer.json())["example"]
    occurs = no_such_reference("templateId", TEMPLATE, "tpl_0Rw5rZ5RJ3h1k2Xb9Qm7T", "test")
    assert example["detail"] == occurs.detail
    assert example["errors"] == [
        {"path": each.path, "code": each.code, "message": each.message} for each in occurs.errors
    ]
    assert example["meta"] == occurs.meta


def test_each_code_has_a_text_and_each_text_a_code() -> None:
    texts = tomllib.loads(files("recado.http.problems").joinpath("problem_texts.toml").read_text())
    assert set(texts) == set(CODES)
    for text in texts.values():
        assert set(text) - {"example", "errors", "meta"} == {"cause", "remedy"}
        assert all(sentence.endswith(".") for sentence in (text["cause"], text["remedy"].rstrip("`")))
