"""What an operator does with the console from the first sign-in on, in one story, on a service as it is run (C34.3)."""

import asyncio
import json
import re
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from signal import SIGTERM
from typing import Any

import pytest
from tests.acceptance.console.conftest import CHROMIUM, PATIENCE, console
from tests.acceptance.console.first_start import FirstStart, first_start
from tests.acceptance.console.receiver import Receiver, receiver
from tests.acceptance.sandbox.customer import Customer, approved_template, phone
from tests.program import Api, Program
from tests.waiting import until

pytestmark = [
    pytest.mark.browser,
    pytest.mark.long,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="Debian's chromium is not installed"),
]

PACE, RATE, SECONDS = 20, 40, 6  # of the load: half of it has to wait
STEPS = [
    {"id": "hello", "tipo": "enviar", "canal": "sms", "texto": "Good morning", "proximo": "pause"},
    {"id": "pause", "tipo": "esperar", "minutos": 1_440, "proximo": "end"},
    {"id": "end", "tipo": "fim"},
]
JOURNEY = {"name": "Welcome", "gatilho": {"tipo": "api"}, "inicio": "hello", "passos": STEPS}

SUM = """name => {
    const row = [...document.querySelectorAll(".sums div")].find(each => each.querySelector("dt").textContent === name);
    return Number(row?.querySelector("dd").textContent.replace(/[^0-9]/g, "") ?? 0);
}"""

NOTED = f"""() => {{
    const sum = {SUM};
    window.seen = {{ second: [], minute: [], waiting: [] }};
    setInterval(() => {{
        window.seen.second.push(sum("Sent this second"));
        window.seen.minute.push(sum("Sent this minute"));
        window.seen.waiting.push(sum("Waiting"));
    }}, 100);
}}"""
"""What the page shows from now on is noted in it: who looks late sees it all the same."""

RISES = "() => window.seen.minute.some((each, place, all) => place && 0 < all[place - 1] && all[place - 1] < each)"


async def test_an_operator_goes_from_the_first_sign_in_through_load_pause_restart_and_replay(tmp_path: Path) -> None:
    async with first_start(tmp_path) as started, Api(started.service.url, started.token) as api, receiver() as endpoint:
        number_id = (await api.call("GET", "/numbers"))["items"][0]["id"]
        customer = Customer(api, number_id, await approved_template(api, number_id))
        hook = {"url": endpoint.url, "events": ["message.delivered"], "retry": {"maxAttempts": 1}}
        webhook_id = (await api.call("POST", "/webhooks", hook))["id"]
        loop = asyncio.get_running_loop()

        def do(work: Coroutine[Any, Any, Any]) -> Any:
            """From the browser's thread, which has no event loop of its own."""
            return asyncio.run_coroutine_threadsafe(work, loop).result()

        await asyncio.to_thread(_operate, _Story(started, customer, endpoint, webhook_id, tmp_path, do))


@dataclass(frozen=True, slots=True)
class _Story:
    started: FirstStart
    customer: Customer
    endpoint: Receiver
    webhook_id: str
    folder: Path
    do: Any


def _operate(story: _Story) -> None:
    with console(story.started.owner) as visit:
        page = visit.page
        _watches_the_load(page, story)
        _pauses_and_resumes(page, story)
        _sees_a_restart(page, story)
        _replays_a_delivery(page, story)
        _looks_at_a_journey(page, story)
        refused = "net::ERR_"  # while the service was away
        assert [each for each in visit.complaints if refused not in each] == []
        assert visit.hosts == {story.started.service.url}


def _watches_the_load(page: Any, story: _Story) -> None:
    """Numbers by the second while the command sends, whose own check then finds everything sent once."""
    page.locator(".liveness").get_by_text("Live", exact=True).wait_for()
    load = Program(
        story.folder, "loadtest", "loadtest", story.started.service.url, "--token", story.started.token, "--json",
        "--number", story.customer.number_id, "--template", story.customer.template_id,
        "--per-second", str(PACE), "--rate", str(RATE), "--duration", str(SECONDS),
    )  # fmt: skip
    page.evaluate(NOTED)
    load.spawn()
    try:
        row = page.get_by_role("row").filter(has=page.locator(f"a[href='#/numbers/{story.customer.number_id}']"))
        for kind in ("second", "waiting"):
            page.wait_for_function("kind => window.seen[kind].some(each => each > 0)", arg=kind)
        row.get_by_text(f"/ {PACE}").wait_for()
        page.wait_for_function(RISES)
        page.wait_for_function(f"() => ({SUM})('Waiting') === 0", timeout=180_000)

        async def ended() -> bool:
            return not load.running

        story.do(until(ended, "the load test has ended", limit=PATIENCE))
    finally:
        load.end(SIGTERM)
    report = json.loads(load.output.read_text())
    assert report["ok"], report


def _pauses_and_resumes(page: Any, story: _Story) -> None:
    """What waits says why, and leaves once the number is resumed; its timeline then tells all of it."""
    page.locator(f"a[href='#/numbers/{story.customer.number_id}']").click()
    page.get_by_role("heading", name="Gates").wait_for()
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Resume").wait_for()
    page.get_by_role("row", name="Operator").get_by_text("paused").wait_for()

    message = story.do(story.customer.send(phone()))
    story.do(story.customer.waits(message, "operator_paused"))
    page.get_by_role("link", name="Messages", exact=True).click()
    page.get_by_label("Message id").fill(message["id"])
    page.get_by_role("button", name="Search").click()
    timeline = page.locator("ol.timeline")
    timeline.get_by_text("paused by an operator", exact=True).wait_for()
    timeline.get_by_text("Resume the number").wait_for()
    assert timeline.locator(".badge").all_text_contents() == ["Accepted", "Waits"]

    page.locator(f"main a[href='#/numbers/{story.customer.number_id}']").click()
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("button", name="Pause").wait_for()
    page.go_back()
    for step in ("Sent", "Delivered", "Read"):
        timeline.get_by_text(step, exact=True).wait_for()
    assert timeline.locator(".badge").all_text_contents() == ["Accepted", "Sent", "Delivered", "Read"]


def _sees_a_restart(page: Any, story: _Story) -> None:
    """The stream ends with the service: the page says so, and goes on in the same session when it is back."""
    page.get_by_role("link", name="Numbers", exact=True).click()
    liveness = page.locator(".liveness")
    liveness.get_by_text("Live", exact=True).wait_for()
    story.started.service.end(SIGTERM)
    liveness.get_by_text("Stale", exact=True).wait_for()
    liveness.get_by_text("The connection was lost").wait_for()
    story.do(story.started.service.start())
    liveness.get_by_text("Live", exact=True).wait_for(timeout=120_000)
    liveness.get_by_text("Stale", exact=True).wait_for(state="detached")
    page.locator(f"a[href='#/numbers/{story.customer.number_id}']").wait_for()


def _replays_a_delivery(page: Any, story: _Story) -> None:
    """One that the endpoint refused is delivered once more, from the list of those that were dropped."""
    page.get_by_role("link", name="Webhooks", exact=True).click()
    page.locator(f"main a[href='#/webhooks/{story.webhook_id}']").click()
    page.get_by_label("Status").select_option("dropped")
    page.get_by_role("button", name="Search").click()
    dropped = page.get_by_role("row").filter(has=page.get_by_text("dropped", exact=True))
    dropped.get_by_role("link", name="message.delivered").first.click()
    page.get_by_role("heading", name="Attempts").wait_for()
    page.get_by_role("cell", name="500", exact=True).wait_for()
    refused = page.url
    story.endpoint.answer = 204
    page.locator("main header").get_by_role("button").click()
    page.get_by_role("dialog").get_by_role("button", name="Deliver again", exact=True).click()
    page.wait_for_url(lambda url: url != refused)
    again = page.url.rpartition("/")[2]

    async def took() -> bool:
        return again in story.endpoint.took

    story.do(until(took, "the endpoint takes the delivery", limit=PATIENCE))
    page.locator("main p .badge").get_by_text("delivered", exact=True).wait_for()
    page.get_by_role("cell", name="204", exact=True).wait_for()


def _looks_at_a_journey(page: Any, story: _Story) -> None:
    """Its graph, with who stands where."""
    story.do(_journey(story.customer.api))
    page.get_by_role("link", name="Journeys", exact=True).click()
    page.locator("main").get_by_role("link", name="Welcome").click()
    page.get_by_role("heading", name="Welcome").wait_for()
    nodes = page.locator(".graph .node")
    nodes.nth(len(STEPS) - 1).wait_for()
    assert nodes.count() == len(STEPS)
    # Its numbers are written every five seconds; the contact may still stand at the step before.
    pause = nodes.filter(has=page.locator("title", has_text=re.compile(r"^pause\b")))
    pause.filter(has=page.locator("text", has_text="wait 1")).wait_for()


async def _journey(api: Api) -> None:
    """With one contact in it."""
    contact = await api.call("POST", "/contacts", {"phone": phone()})
    await api.call("PATCH", f"/contacts/{contact['id']}", {"optIn": {"status": "granted", "source": "form"}})
    made = await api.call("POST", "/v2/journeys", JOURNEY)
    await api.call("POST", f"/v2/journeys/{made['id']}/activate")
    await api.call("POST", f"/v2/journeys/{made['id']}/entries", {"contato": {"contactId": contact["id"]}})
