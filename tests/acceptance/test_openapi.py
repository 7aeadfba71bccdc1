"""The document of the whole application against its route table, and the pages that show it in a real browser.

Validators from other hands read the document in test_document.py.
"""

import asyncio
import gzip
import re
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.acceptance.served import Served

from recado.http.api.route import Access, Idempotency
from recado.http.openapi.document_texts import GROUPS
from recado.http.openapi.problem_codes import problem_codes
from recado.http.problems.usual_words import MEANT

CHROMIUM = Path("/usr/bin/chromium")
PATIENCE = 90_000  # milliseconds; other tests run beside it
LOOK_EVERY = 100  # milliseconds
# Events that webhooks tell of stand on the page too, below the operations.
# The page holds the rows that are near what is seen of it, once there are many: each look goes on by half a window.
_LOOKS = """
window.shown = new Map();
window.goOn = () => {
    const end = document.body.scrollHeight - window.innerHeight;
    window.scrollTo(0, window.scrollY >= end ? 0 : window.scrollY + window.innerHeight / 2);
    return false;
};
"""
_ALL_SHOWN = """wanted => {
    const rows = [...document.querySelectorAll(".opblock-summary")].filter(row => !row.closest(".webhooks"));
    for (const row of rows) {
        const method = row.querySelector(".opblock-summary-method")?.innerText;
        const path = row.querySelector(".opblock-summary-path")?.dataset.path;
        if (method && path) window.shown.set(`${method} ${path}`, [method, path]);
    }
    return window.shown.size === wanted || window.goOn();
}"""
_THERE = """kind => document.querySelector(`.opblock-${kind} .opblock-summary-control`) !== null || window.goOn()"""

_ALL_READ = """async () => {
    const headings = [], broken = [];
    for (const link of document.querySelectorAll("nav li a")) {
        const shown = new Promise(done => addEventListener("hashchange", done, {once: true}));
        location.hash = link.hash;
        await shown;
        const main = document.querySelector("main");
        for (const folded of main.querySelectorAll("details")) {
            const opened = new Promise(done => folded.addEventListener("toggle", done, {once: true}));
            folded.open = true;
            await opened;
        }
        headings.push(main.querySelector("h1").textContent);
        if (/undefined|[[]object/.test(main.innerText)) broken.push(link.hash);
    }
    return [headings, broken];
}"""


def operations(document: Any) -> dict[str, tuple[str, str, Any]]:
    """Method, path and description by operation id."""
    return {
        described["operationId"]: (method.upper(), path, described)
        for path, methods in document["paths"].items()
        for method, described in methods.items()
    }


def test_the_document_holds_every_route_and_nothing_else(served: Served, served_document: Any) -> None:
    told = {name: (method, path) for name, (method, path, _) in operations(served_document).items()}
    assert told == {route.operation_id: (route.method, route.path) for route in served.routes if route.documented}
    hidden = {route.path for route in served.routes if not route.documented}
    pages = {"/docs", "/docs/{file}", "/problems", "/problems/{code}"}
    assert {path for path in hidden if not path.startswith("/console")} == pages, (
        "only pages for people stay out of the document"
    )
    assert served_document["servers"] == [{"url": served.url}]


def name_of(parameter: Any) -> str:
    """The name of a parameter, or of the one that is referred to."""
    return str(parameter.get("name") or parameter["$ref"].rpartition("/")[2])


def test_the_document_tells_what_each_route_asks_for(served: Served, served_document: Any) -> None:
    told = operations(served_document)
    schemes = {Access.KEY: ["bearer"], Access.ADMIN: ["administrator"], Access.PUBLIC: [], Access.CALLBACK: []}
    for route in (route for route in served.routes if route.documented):
        _, _, described = told[route.operation_id]
        headers = {name_of(given) for given in described.get("parameters", ())}
        asked = schemes[route.access] + (["administrator"] if route.administered else [])
        assert [name for scheme in described["security"] for name in scheme] == asked
        assert described.get("x-required-scope") == route.scope
        assert ("requestBody" in described) == (route.body is not None or route.raw_body or bool(route.spooled))
        assert ("Idempotency-Key" in headers) == (route.idempotency is not Idempotency.NONE)
        changes = route.matches or (route.versioned and route.method != "GET" and not route.creates)
        assert ("If-Match" in headers) == changes
        unchanged = {304} if route.versioned and route.method == "GET" else set()
        promised = {*route.responses, *problem_codes(route)} | unchanged
        assert {int(status) for status in described["responses"]} == promised
        assert described["summary"]
        assert described.get("description"), route.operation_id


def test_each_group_has_an_introduction_and_stands_in_the_order_of_a_newcomer(served_document: Any) -> None:
    told = [tag["name"] for tag in served_document["tags"]]
    assert told == [name for name in GROUPS if name in told]
    used = {tag for _, _, described in operations(served_document).values() for tag in described["tags"]}
    assert set(told) == used
    assert [name for name in told if len(GROUPS[name].split("\n\n")) != 2] == []


def test_the_names_of_schemas_are_those_of_things(served_document: Any) -> None:
    names = served_document["components"]["schemas"]
    assert [name for name in names if not re.fullmatch(r"([A-Z][a-z0-9]*)+", name)] == []
    assert [name for name in names if re.search(r"Model$|[0-9]$", name)] == []


def test_the_document_stays_small_enough_to_be_fetched_at_each_look(served_document: Any) -> None:
    whole = orjson.dumps(served_document)
    assert len(whole) < 1_200_000
    assert len(gzip.compress(whole)) < 100_000


def test_the_usual_words_of_others_lead_to_operations_that_are_there(served: Served, served_document: Any) -> None:
    there = {(method, path) for method, path, _ in operations(served_document).values()}
    administrator = {(route.method, route.path) for route in served.routes if route.access is Access.ADMIN}
    assert {tuple(meant.split()) for meant in MEANT.values()} <= there - administrator
    assert not {tuple(asked.split()) for asked in MEANT} & there
    fixed = {path for _, path in there if "{" not in path}
    assert not {path for _, path in map(str.split, MEANT)} & fixed


def test_a_route_without_a_declared_answer_is_a_page_for_people(served: Served) -> None:
    silent = {route.operation_id for route in served.routes if not route.responses}
    assert silent == {route.operation_id for route in served.routes if not route.documented}


@pytest.mark.long
@pytest.mark.browser
@pytest.mark.skipif(not CHROMIUM.exists(), reason="Debian's chromium is not installed: the page was seen by nobody")
async def test_the_page_to_try_calls_shows_every_operation_and_calls_no_other_host(
    served: Served, served_document: Any
) -> None:
    shown = operations(served_document).values()
    seen = await asyncio.to_thread(visited, f"{served.url}/docs/try", len(shown))
    assert seen["complaints"] == []
    assert {"/".join(url.split("/")[:3]) for url in seen["requests"]} == {served.url}
    assert sorted(seen["operations"]) == sorted((method, path) for method, path, _ in shown)


@pytest.mark.long
@pytest.mark.browser
@pytest.mark.skipif(not CHROMIUM.exists(), reason="Debian's chromium is not installed: the page was seen by nobody")
async def test_the_reference_has_a_page_for_every_operation_and_every_event(
    served: Served, served_document: Any
) -> None:
    seen = await asyncio.to_thread(read, f"{served.url}/docs")
    told = [described["summary"] for _, _, described in operations(served_document).values()]
    assert seen["complaints"] == []
    assert seen["hosts"] == {served.url}
    assert sorted(seen["headings"]) == sorted([*told, *served_document["webhooks"]])
    assert seen["broken"] == []


def read(url: str) -> dict[str, Any]:
    """The headings of all pages that the reference links to, with their parts open, and which of them are broken."""
    from playwright.sync_api import sync_playwright

    hosts: set[str] = set()
    complaints: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("request", lambda request: hosts.add("/".join(request.url.split("/")[:3])))
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(url)
        page.locator("nav li").first.wait_for()
        headings, broken = page.evaluate(_ALL_READ)
        browser.close()
    return {"hosts": hosts, "complaints": complaints, "headings": headings, "broken": broken}


def visited(url: str, wanted: int) -> dict[str, Any]:
    """What a browser shows and asks for at `url` when there are as many operations as `wanted`, and one of each kind
    is open."""
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
        page.add_init_script(_LOOKS)
        page.goto(url)
        page.wait_for_function(_ALL_SHOWN, arg=wanted, polling=LOOK_EVERY)
        for kind in ("get", "post", "patch", "delete"):
            page.wait_for_function(_THERE, arg=kind, polling=LOOK_EVERY)
            page.locator(f".opblock-{kind} .opblock-summary-control").first.click()
            page.locator(f".opblock-{kind}.is-open .opblock-body").first.wait_for()
        operations = [(method, path) for method, path in page.evaluate("[...window.shown.values()]")]
        browser.close()
    return {"requests": requests, "complaints": complaints, "operations": operations}
