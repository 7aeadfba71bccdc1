"""The routes about the service itself (C2.7)."""

from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from recado.domain.errors import CODES, problem_slug
from recado.http.routes.service import service_routes

PARTS = {"database": True, "migrations": True}


async def parts() -> dict[str, bool]:
    return PARTS


async def start(serve: Any, *others: Any, ready: Any = parts) -> Any:
    service = service_routes(others, ready=ready, base_url="https://api.example.com", version="1.2.3")
    api = await serve(*others, *service)
    api.client.headers.pop("Authorization")
    return api


async def test_health_says_that_the_process_is_up(serve: Any) -> None:
    api = await start(serve)
    async with api.client.get("/healthz") as answer:
        assert (answer.status, await answer.json()) == (200, {"status": "ok"})
        assert "RateLimit" not in answer.headers


async def test_readiness_names_the_part_that_is_missing(serve: Any) -> None:
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


async def test_the_document_describes_the_other_routes_and_these(serve: Any, thing: Any) -> None:
    api = await start(serve, thing())
    async with api.client.get("/v2/openapi.json") as answer:
        found = await answer.json()
        assert answer.headers["Content-Type"] == "application/json"
    OpenAPIV31SpecValidator(found).validate()
    assert set(found["paths"]) == {"/things", "/healthz", "/readyz", "/v2/openapi.json"}
    assert found["info"]["version"] == "1.2.3"


async def test_the_page_and_its_files_come_from_this_server_only(serve: Any) -> None:
    api = await start(serve)
    async with api.client.get("/docs") as answer:
        page = await answer.text()
        policy = answer.headers["Content-Security-Policy"]
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert '<meta charset="utf-8">' in page
    assert "http:" not in page
    assert "https:" not in page
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    for part in ("swagger-ui.css", "swagger-ui-bundle.js", "docs.js", "favicon-32x32.png"):
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
    async with api.client.get("/problems/no-such-thing") as answer:
        assert answer.status == 404
