"""The console in a real browser, as an operator uses it (C34.3)."""

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from tests.acceptance.console.conftest import AXE, CHROMIUM, HOSTILE, Shown, Visit, console

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="Debian's chromium is not installed"),
]

ZONED = """async () => {
    const format = await import(document.querySelector("script").src.replace("app.js", "format.js"));
    return format.instant("2026-01-31T12:00");
}"""
NARROW = {"width": 400, "height": 800}


def views(shown: Shown) -> Iterator[tuple[str, str]]:
    """Each view by its address, and a text that says that it shows what it should."""
    delivery = f"/webhooks/{shown.webhook_id}/deliveries/{shown.delivery_id}"
    yield "/numbers", "Sent per second"
    yield f"/numbers/{shown.number_id}", "Gates"
    yield "/messages", shown.message_id
    yield f"/messages/{shown.message_id}", HOSTILE[:34]
    yield f"/messages/{shown.inbound_id}", "Received"
    yield "/webhooks", "127.0.0.1"
    yield f"/webhooks/{shown.webhook_id}", HOSTILE
    yield delivery, HOSTILE
    yield "/providers", "sandbox"
    yield "/actors", "Actors"
    yield "/wallet", "Ledger"


async def test_an_operator_watches_a_number_pauses_and_resumes_it_and_reads_a_message(shown: Shown) -> None:
    await asyncio.to_thread(_operate, shown)


def _operate(shown: Shown) -> None:
    with console(shown) as visit:
        page = visit.page
        page.locator(".liveness").get_by_text("Live", exact=True).wait_for()
        assert page.locator("header .switch").get_by_label("Test").is_checked()

        page.get_by_text(HOSTILE).first.wait_for()  # the organization's name: its zone is known with it
        assert page.evaluate(ZONED) == "2026-01-31T15:00:00.000Z", "times are in the organization's zone"

        page.locator(f"a[href='#/numbers/{shown.number_id}']").click()
        page.get_by_role("heading", name="Gates").wait_for()
        page.get_by_role("button", name="Pause").click()
        page.get_by_role("dialog").get_by_role("button", name="Pause").click()
        page.get_by_role("button", name="Resume").wait_for()
        page.locator("main p .badge").get_by_text("paused by an operator").first.wait_for()
        page.get_by_role("button", name="Resume").click()
        page.get_by_role("button", name="Pause").wait_for()

        page.get_by_role("link", name="Messages", exact=True).click()
        page.get_by_label("Message id").fill(shown.message_id)
        page.get_by_role("button", name="Search").click()
        timeline = page.locator("ol.timeline")
        for step in ("Accepted", "Sent", "Delivered"):
            timeline.get_by_text(step, exact=True).wait_for()
        page.get_by_role("link", name="message.delivered").wait_for()

        page.locator("header select").select_option("pt")
        page.get_by_role("heading", name=f"Mensagem {shown.message_id}").wait_for()
        assert page.evaluate("document.documentElement.lang") == "pt-BR"

        page.locator("header .switch").get_by_label("Produção").check()
        page.get_by_text("Não existe neste ambiente.").first.wait_for()
        page.get_by_role("link", name="Números", exact=True).click()
        page.get_by_text("Nenhum número neste ambiente.").first.wait_for()
        # The page of the message looks again every few seconds, and is answered 404 as it should be.
        visit.complaints[:] = [each for each in visit.complaints if "status of 404" not in each]

        with page.expect_response("**/v2/sessions/current") as ended:
            page.get_by_role("button", name="Sair").click()
        assert ended.value.status == 204
        page.get_by_role("heading", name="Entrar no Recado").wait_for()
        assert page.evaluate("sessionStorage.length") == 0
        _nothing_odd(visit, shown)


@pytest.mark.long
async def test_the_page_says_when_it_is_stale_and_comes_back_by_itself(shown: Shown) -> None:
    await asyncio.to_thread(_lose_the_stream, shown)


def _lose_the_stream(shown: Shown) -> None:
    with console(shown) as visit:
        page, stream = visit.page, "**/v2/ops/stream"
        state = page.locator(".liveness")
        page.route(stream, lambda route: route.abort())
        page.reload()
        state.get_by_text("Stale").first.wait_for()
        page.unroute(stream)
        state.get_by_text("Live", exact=True).wait_for()


@pytest.mark.long
async def test_a_session_that_ended_is_told_and_one_goes_on_where_one_was(shown: Shown) -> None:
    await asyncio.to_thread(_end_the_session, shown)


def _end_the_session(shown: Shown) -> None:
    with console(shown) as visit:
        page = visit.page
        token = page.evaluate("JSON.parse(sessionStorage.getItem('recado.session')).tokens.test")
        headers = {"Authorization": f"Bearer {token}"}
        assert page.request.delete(f"{shown.url}/v2/sessions/current", headers=headers).status == 204
        page.get_by_role("link", name="Wallet").click()
        page.get_by_text("Your session has ended.").first.wait_for()
        visit.sign_in(shown)
        page.get_by_role("heading", name="Wallet").wait_for()
        page.get_by_role("heading", name="Ledger").wait_for()


@pytest.mark.long
async def test_a_delivery_that_comes_after_the_change_is_shown_by_itself(shown: Shown) -> None:
    await asyncio.to_thread(_deliver_late, shown)


def _deliver_late(shown: Shown) -> None:
    with console(shown) as visit:
        page, deliveries = visit.page, "**/webhooks/*/deliveries?*"

        now = page.evaluate("new Date().toISOString()")

        def changed_now(route: Any) -> None:
            answer = route.fetch()
            route.fulfill(response=answer, json={**answer.json(), "updatedAt": now})

        page.route(f"**/messages/{shown.message_id}", changed_now)
        page.route(deliveries, lambda route: route.fulfill(json={"items": [], "nextCursor": None}))
        visit.at(f"/messages/{shown.message_id}")
        page.get_by_text("No webhook was told of this message").first.wait_for()
        page.unroute(deliveries)
        page.get_by_role("link", name="message.delivered").wait_for()


async def test_what_callers_and_strangers_stored_is_shown_as_text(shown: Shown) -> None:
    await asyncio.to_thread(_look_everywhere, shown)


def _look_everywhere(shown: Shown) -> None:
    with console(shown, viewport=NARROW) as visit:
        page = visit.page
        page.get_by_text(HOSTILE).first.wait_for()  # the organization's name
        for place, text in views(shown):
            visit.at(place)
            page.locator("main").get_by_text(text).first.wait_for()
            assert page.evaluate("window.hacked") is None, place
            assert page.locator("img").count() == 0, place
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width <= NARROW["width"], f"{place} is {width} pixels wide"
        _nothing_odd(visit, shown)


def _nothing_odd(visit: Visit, shown: Shown) -> None:
    assert visit.complaints == []
    assert visit.hosts == {shown.url}


@pytest.mark.long
@pytest.mark.node
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_no_view_has_a_serious_fault_of_accessibility(shown: Shown, scheme: str) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: `make test` installs it where nodejs and npm are")
    assert await asyncio.to_thread(partial(_faults, shown, scheme)) == {}


def _faults(shown: Shown, scheme: Any) -> dict[str, list[str]]:
    """What axe finds in each view, if anything is serious; and at last where one signs in."""
    found: dict[str, list[str]] = {}

    def look(place: str) -> None:
        results = visit.page.evaluate("axe.run({ resultTypes: ['violations'] })")
        assert len(results["passes"]) > 10, place
        serious = [
            f"{fault['id']}: {fault['nodes'][0]['html']}"
            for fault in results["violations"]
            if fault["impact"] in ("serious", "critical")
        ]
        if serious:
            found[place] = serious

    with console(shown, color_scheme=scheme) as visit:
        visit.page.evaluate(AXE.read_text("utf-8") + "; null")
        for place, text in views(shown):
            visit.at(place)
            visit.page.locator("main").get_by_text(text).first.wait_for()
            look(place)
        visit.page.get_by_role("button", name="Sign out").click()
        visit.page.get_by_text("I was invited").click()
        visit.page.get_by_label("Invitation code").wait_for()
        look("signing in")
    return found
