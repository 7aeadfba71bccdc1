"""The interface's page in a real browser: it shows the operations, and calls no other host."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from recado.http.api.models import ApiModel
from recado.http.routes.service.service import service_routes

CHROMIUM = Path("/usr/bin/chromium")
PATIENCE = 90_000  # milliseconds; other tests run beside it

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="Debian's chromium is not installed"),
]


class Thing(ApiModel):
    name: str


async def parts() -> dict[str, bool]:
    return {}


async def test_the_page_shows_the_operations_and_calls_no_other_host(serve: Any, thing: Any) -> None:
    others = (thing(summary="List things"), thing("POST", body=Thing, responses={201: Thing}, summary="Make a thing"))
    service = service_routes(others, ready=parts, base_url="https://api.example.com", version="1.2.3")
    api = await serve(*others, *service)
    address = f"http://127.0.0.1:{api.server.port}"
    seen = await asyncio.to_thread(_visit, f"{address}/docs")
    assert seen["complaints"] == []
    assert {url.split("/docs")[0].split("/v2")[0] for url in seen["requests"]} == {address}
    assert "List things" in seen["text"]
    assert "Make a thing" in seen["text"]
    assert "things:write" in seen["text"]


def _visit(url: str) -> dict[str, Any]:
    from playwright.sync_api import sync_playwright

    requests: list[str] = []
    complaints: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("request", lambda request: None if request.url.startswith("data:") else requests.append(request.url))
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(url)
        page.wait_for_selector(".opblock-summary-description")
        page.click(".opblock-post .opblock-summary-control")
        # The body of an operation appears empty and is filled once its references are resolved.
        page.locator(".opblock-post .opblock-body").get_by_text("things:write").first.wait_for()
        text = page.inner_text("#interface")
        browser.close()
    return {"requests": requests, "complaints": complaints, "text": text}
