"""The interface's pages in a real browser: they show the operations, and call no other host."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recado.http.api.models import ApiModel
from recado.http.routes.service.service import service_routes

CHROMIUM = Path("/usr/bin/chromium")
AXE = Path(__file__).parents[2] / "node" / "node_modules" / "axe-core" / "axe.min.js"
PATIENCE = 90_000  # milliseconds; other tests run beside it

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="Debian's chromium is not installed"),
]


class Thing(ApiModel):
    name: str


async def parts() -> dict[str, bool]:
    return {}


@pytest.fixture
async def address(serve: Any, thing: Any) -> str:
    """Where two operations are served, with their pages."""
    made = {201: Thing}
    others = (thing(summary="List things", responses={200: Thing}), thing("POST", body=Thing, responses=made))
    service = service_routes(others, ready=parts, base_url="https://api.example.com", version="1.2.3")
    api = await serve(*others, *service)
    return f"http://127.0.0.1:{api.server.port}"


async def test_the_reference_shows_an_operation_with_its_samples_and_finds_it_by_its_words(address: str) -> None:
    seen = await asyncio.to_thread(_visited, address, "/docs", _read)
    assert seen["complaints"] == []
    assert {"/".join(url.split("/")[:3]) for url in seen["requests"]} == {address}
    assert seen["found"] == ["List things"]
    assert "things:write" in seen["operation"]
    assert '-d \'{\n  "name": "Ana"\n}\'' in seen["curl"]
    assert 'json={\n        "name": "Ana",\n    },' in seen["python"]
    assert '"code": "SCOPE_REQUIRED"' in seen["problem"]


async def test_the_page_to_try_calls_shows_the_operations_and_calls_no_other_host(address: str) -> None:
    seen = await asyncio.to_thread(_visited, address, "/docs/try", _tried)
    assert seen["complaints"] == []
    assert {"/".join(url.split("/")[:3]) for url in seen["requests"]} == {address}
    assert "List things" in seen["text"]
    assert "things:write" in seen["text"]


@pytest.mark.node
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_reference_has_no_serious_fault_of_accessibility(address: str, scheme: str) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: `make test` installs it where nodejs and npm are")
    seen = await asyncio.to_thread(_visited, address, "/docs", _faults, color_scheme=scheme)
    assert seen["faults"] == []


def _faults(page: Any) -> dict[str, Any]:
    page.locator("nav li a", has_text="POST").first.click()
    page.locator(".samples").wait_for()
    page.evaluate(AXE.read_text("utf-8") + "; null")
    found = page.evaluate("axe.run({ resultTypes: ['violations'] })")["violations"]
    return {"faults": [fault["id"] for fault in found if fault["impact"] in {"serious", "critical"}]}


def _read(page: Any) -> dict[str, Any]:
    page.locator("nav li").first.wait_for()
    page.fill("#search", "list THINGS")
    found = [row.inner_text().split("\n")[-1] for row in page.locator("nav li:visible").all()]
    page.fill("#search", "")
    page.locator("nav li a", has_text="POST").first.click()
    page.locator(".samples").wait_for()
    request = page.get_by_label("Request", exact=True)
    curl = page.locator(".samples pre").first.inner_text()
    request.select_option(label="Python")
    python = page.locator(".samples pre").first.inner_text()
    page.get_by_label("Answer", exact=True).select_option(label="403 SCOPE_REQUIRED")
    problem = page.locator(".samples pre").last.inner_text()
    return {
        "found": found, "operation": page.inner_text("main"), "curl": curl, "python": python, "problem": problem,
    }  # fmt: skip


def _tried(page: Any) -> dict[str, Any]:
    page.wait_for_selector(".opblock-summary-description")
    page.click(".opblock-post .opblock-summary-control")
    # The body of an operation appears empty and is filled once its references are resolved.
    page.locator(".opblock-post .opblock-body").get_by_text("things:write").first.wait_for()
    return {"text": page.inner_text("#interface")}


def _visited(address: str, path: str, look: Callable[[Any], dict[str, Any]], **options: Any) -> dict[str, Any]:
    """What `look` sees, and what the page asks for and complains of meanwhile."""
    from playwright.sync_api import sync_playwright

    requests: list[str] = []
    complaints: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        page = browser.new_page(**options)
        page.set_default_timeout(PATIENCE)
        page.on("request", lambda request: None if request.url.startswith("data:") else requests.append(request.url))
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(address + path)
        seen = look(page)
        browser.close()
    return {**seen, "requests": requests, "complaints": complaints}
