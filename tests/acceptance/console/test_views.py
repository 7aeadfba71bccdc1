"""The views of the console on what is sent, to whom, and with what, in a real browser (C34.3)."""

import asyncio
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.acceptance.console.conftest import AXE, CHROMIUM, HOSTILE, Shown, Visit, console
from tests.acceptance.console.records import BOUNCED, MAIL, SHORT, SUPPRESSED, TAKEN, make_records, named
from tests.media_files import PNG

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="Debian's chromium is not installed"),
]

NARROW = {"width": 400, "height": 800}


@pytest.fixture(scope="module")
def ids(shown: Shown) -> dict[str, str]:
    """Of one record of each kind."""
    return asyncio.run(make_records(shown))


def views(ids: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Each view by its address, and a text of somebody else's that it shows."""
    journey = f"/journeys/{ids['journey']}"
    yield "/batches", named("failed")
    yield f"/batches/{ids['failed']}", named("failed")
    yield "/campaigns", named("campaign")
    yield f"/campaigns/one?tag={quote(named('campaign'))}", named("campaign")
    yield "/journeys", named("journey")
    yield journey, named("about")
    yield f"/journeys/{ids['draft']}", named("draft")
    yield f"{journey}/executions", ids["execution"]
    yield f"{journey}/executions/{ids['execution']}", named("entry")
    yield "/contacts", HOSTILE
    yield f"/contacts/{ids['contact']}", named("agent")
    yield "/templates", named("template")
    yield f"/templates/{ids['template']}", named("button")
    yield "/email/templates", named("mail")
    yield f"/email/templates/{ids['mail']}", f"subject value {SHORT}"
    yield "/email/senders", named("sender")
    yield "/email/suppressions", "gone50@example.com"
    yield f"/messages/{ids['bounced']}", named("bounced")
    yield f"/messages/{ids['delivered']}", named("delivered")
    yield "/messages?channel=rcs", ids["silent"]
    yield f"/messages/{ids['by sms']}?channel=rcs", f"<b>Yes</b> → {named('yes')}"
    yield f"/messages/{ids['refused']}?channel=rcs", named("rcs")
    yield f"/messages/{ids['wrote']}", named("asks")
    yield f"/messages/{ids['answer']}", named("answer")
    yield "/push/messages", named("push")
    yield f"/push/messages/{ids['push']}", named("notice")
    yield "/push/devices", named("topic")
    yield "/push/apps", named("app")
    yield "/social/accounts", named("account")
    yield f"/social/accounts/{ids['account']}", named("person 1")
    yield "/media", named("file")
    yield f"/media/{ids['upload']}", named("upload")
    yield f"/messages/{ids['file']}", named("file")
    yield f"/messages/{ids['sent file']}", HOSTILE
    yield "/api-keys", named("key")
    yield "/accounts", named("person")
    yield "/audit", "api_key.create"
    yield "/organization", "America/Sao_Paulo"


Acting = Callable[[str, Callable[[Any], None]], None]


@pytest.fixture(scope="module")
def acting(shown: Shown) -> Iterator[Acting]:
    """Does something in a view, in which nothing odd may happen: all in one browser, in a thread of its own."""
    with ThreadPoolExecutor(1) as thread, ExitStack() as stack:
        visit = thread.submit(lambda: stack.enter_context(console(shown))).result()

        def do(place: str, act: Callable[[Any], None]) -> None:
            visit.complaints.clear()
            visit.at(place)
            act(visit.page)
            _nothing_odd(visit, shown)

        yield lambda place, act: thread.submit(do, place, act).result()
        thread.submit(stack.close).result()


@pytest.mark.long
def test_lists_go_on_by_skip_and_by_cursor(acting: Acting, ids: dict[str, str]) -> None:
    def all_suppressed(page: Any) -> None:
        page.get_by_text(f"50 of {SUPPRESSED}").first.wait_for()
        page.get_by_role("button", name="Show more").click()
        page.get_by_text(f"{SUPPRESSED} of {SUPPRESSED}").first.wait_for()
        assert page.locator("tbody tr").count() == SUPPRESSED
        assert page.get_by_role("button", name="Show more").count() == 0

    def more_of_the_audit(page: Any) -> None:
        page.get_by_label("Action", exact=True).fill("email_suppression.create")
        page.get_by_role("button", name="Filter").click()
        page.get_by_role("button", name="Show more").click()
        page.get_by_text(f"{SUPPRESSED} shown").first.wait_for()
        assert page.locator("tbody tr").count() == SUPPRESSED

    acting("/email/suppressions", all_suppressed)
    acting("/audit", more_of_the_audit)


async def test_what_somebody_stored_is_shown_as_text_in_each_view(shown: Shown, ids: dict[str, str]) -> None:
    await asyncio.to_thread(_look_everywhere, shown, ids)


def _look_everywhere(shown: Shown, ids: dict[str, str]) -> None:
    with console(shown, viewport=NARROW) as visit:
        page = visit.page
        for place, text in views(ids):
            visit.at(place)
            page.get_by_text(text).first.wait_for(state="attached")
            assert page.evaluate("window.hacked") is None, place
            assert page.locator("img").count() == 0, place
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width <= NARROW["width"], f"{place} is {width} pixels wide"
        _nothing_odd(visit, shown)


def _nothing_odd(visit: Visit, shown: Shown) -> None:
    assert [each for each in visit.complaints if "status of 422" not in each] == []  # what was to be refused
    assert {host for host in visit.hosts if not host.startswith("blob:")} == {shown.url}


@pytest.mark.long
@pytest.mark.node
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_no_view_has_a_serious_fault_of_accessibility(shown: Shown, ids: dict[str, str], scheme: str) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: `make test` installs it where nodejs and npm are")
    assert await asyncio.to_thread(partial(_faults, shown, ids, scheme)) == {}


def _faults(shown: Shown, ids: dict[str, str], scheme: Any) -> dict[str, list[str]]:
    """What axe finds in each view, if anything is serious."""
    found: dict[str, list[str]] = {}
    with console(shown, color_scheme=scheme) as visit:
        visit.page.evaluate(AXE.read_text("utf-8") + "; null")
        for place, text in views(ids):
            visit.at(place)
            visit.page.get_by_text(text).first.wait_for(state="attached")
            results = visit.page.evaluate("axe.run({ resultTypes: ['violations'] })")
            serious = [
                f"{fault['id']}: {fault['nodes'][0]['html']}"
                for fault in results["violations"]
                if fault["impact"] in ("serious", "critical")
            ]
            if serious:
                found[place] = serious
    return found


def test_a_batch_is_paused_resumed_and_canceled_for_good(acting: Acting, ids: dict[str, str]) -> None:
    def act(page: Any) -> None:
        press(page, "Pause")
        page.get_by_role("button", name="Resume").click()
        page.get_by_role("button", name="Pause", exact=True).wait_for()
        press(page, "Cancel the batch", "Cancel this batch?")
        page.locator("main p .badge").get_by_text("canceled").first.wait_for()
        assert page.get_by_role("button", name="Pause", exact=True).count() == 0

    acting(f"/batches/{ids['held']}", act)


@pytest.mark.long
def test_failed_messages_are_sent_again_after_it_is_shown_what_that_does(acting: Acting, ids: dict[str, str]) -> None:
    def act(page: Any) -> None:
        page.get_by_role("button", name="See what would be sent").click()
        page.get_by_text("Would be sent again", exact=True).wait_for()
        press(page, "Send again", "Send again")
        page.get_by_text("Being sent again as the batch").get_by_role("link").click()
        page.get_by_text("Requested").first.wait_for()

    acting(f"/batches/{ids['failed']}", act)


def test_a_journey_shows_its_graph_and_who_goes_through_it_and_is_paused(acting: Acting, ids: dict[str, str]) -> None:
    def act(page: Any) -> None:
        assert page.locator(".graph .node").count() == 5
        assert page.locator(".graph .edge").count() == 6
        assert page.locator(".graph .node title").all_text_contents()[0].startswith("split\nsplit")
        press(page, "Pause", "Pause this journey?")
        page.get_by_role("button", name="Resume").click()
        page.get_by_role("button", name="Pause", exact=True).wait_for()
        page.get_by_role("link", name="See all executions").click()
        page.get_by_role("link", name=ids["execution"]).click()
        page.get_by_role("heading", name="Trail").wait_for()
        page.get_by_role("cell", name="split").first.wait_for()

    acting(f"/journeys/{ids['journey']}", act)


@pytest.mark.long
def test_documents_of_a_contact_are_revealed_for_a_reason_and_a_contact_is_found(
    acting: Acting, ids: dict[str, str]
) -> None:
    def act(page: Any) -> None:
        assert page.get_by_text("52998224725").count() == 0
        page.get_by_role("button", name="Reveal documents").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Reason").fill("The customer asks on the phone")
        dialog.get_by_role("button", name="Reveal documents").click()
        page.get_by_text("52998224725").first.wait_for()
        page.get_by_role("button", name="Hide documents").click()
        page.get_by_role("button", name="Reveal documents").wait_for()
        assert page.get_by_text("52998224725").count() == 0

        page.get_by_role("link", name="Contacts", exact=True).click()
        page.get_by_label("Name, phone or e-mail").fill(TAKEN)
        page.get_by_role("button", name="Filter").click()
        page.get_by_text("1 of 1").first.wait_for()
        assert TAKEN not in page.url

    acting(f"/contacts/{ids['contact']}", act)


@pytest.mark.long
def test_a_refusal_is_recorded(acting: Acting, ids: dict[str, str]) -> None:
    def act(page: Any) -> None:
        press(page, "Record a refusal", "Record that this contact wants no more messages?")
        page.locator("main > p .badge").get_by_text("denied").first.wait_for()
        page.get_by_role("cell", name="denied").wait_for()
        assert page.get_by_role("button", name="Record a refusal").count() == 0

    acting(f"/contacts/{ids['other']}", act)


@pytest.mark.long
def test_templates_are_read_anew_and_what_the_review_would_refuse_is_told(acting: Acting, ids: dict[str, str]) -> None:
    def read_anew(page: Any) -> None:
        press(page, "Synchronize", "Synchronize")
        page.get_by_text("It has begun.").first.wait_for()
        page.get_by_role("dialog").get_by_role("button", name="Close").click()

    def hand_in(page: Any) -> None:
        press(page, "Submit for review", "Submit this template for review?")
        page.get_by_role("alert").wait_for()
        page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        page.locator("main > p .badge").get_by_text("draft").first.wait_for()

    acting("/templates", read_anew)
    acting(f"/templates/{ids['template']}", hand_in)


def test_an_email_is_shown_with_values_and_neither_runs_nor_calls_anything(acting: Acting, ids: dict[str, str]) -> None:
    def act(page: Any) -> None:
        page.get_by_label("order").fill(named("given"))
        page.get_by_role("button", name="See it with these values").click()
        page.wait_for_function(
            "text => document.querySelector('iframe.mail')?.contentDocument.body.innerText.includes(text)",
            arg=f"Order {named('given')}",
        )
        shown_mail = page.evaluate("""() => {
            const { body, defaultView } = document.querySelector("iframe.mail").contentDocument;
            const styled = defaultView.getComputedStyle(body.querySelector("p"));
            return {
                paper: defaultView.getComputedStyle(body).backgroundColor, color: styled.color, size: styled.fontSize,
                acting: body.querySelectorAll("script, iframe, [src], [href], [action], [onload]").length,
            };
        }""")
        assert shown_mail == {"paper": "rgb(1, 2, 3)", "color": "rgb(4, 5, 6)", "size": "40px", "acting": 0}
        page.get_by_text("Stored HTML").click()
        assert page.get_by_role("region", name="Stored HTML").text_content() == MAIL

    acting(f"/email/templates/{ids['mail']}", act)


@pytest.mark.long
def test_an_email_is_found_by_its_address_and_tells_what_its_channel_knows(acting: Acting, ids: dict[str, str]) -> None:
    def timeline(page: Any) -> Any:
        return page.locator("ol.timeline .badge").all_text_contents()

    def find_one_that_bounced(page: Any) -> None:
        page.get_by_label("Phone or e-mail").fill(BOUNCED)
        page.get_by_label("Status").select_option("failed")
        page.get_by_role("button", name="Search").click()
        page.get_by_text("clear the other filters").first.wait_for()
        page.get_by_label("Status").select_option("")
        page.get_by_role("button", name="Search").click()
        row = page.get_by_role("row").filter(has_text=named("bounced"))
        row.get_by_text("invalid address").first.wait_for()
        row.get_by_role("link", name=ids["bounced"]).click()
        page.locator("main > p .badge").get_by_text("bounced").first.wait_for()
        page.get_by_text("invalid address").first.wait_for()
        assert timeline(page) == ["Accepted", "Sent", "Bounced"]
        for name in ("Archive", "Send again"):
            assert page.get_by_role("button", name=name).count() == 0, "neither is possible"

    def opened(route: Any) -> None:
        answer = route.fetch()
        email = answer.json()
        route.fulfill(response=answer, json={**email, "openedAt": email["sentAt"], "clickedAt": email["sentAt"]})

    def read_one_that_was_opened(page: Any) -> None:
        page.route("**/v2/email/messages/*", opened)
        page.get_by_label("Message id").fill(ids["delivered"])
        page.get_by_role("button", name="Search").click()
        page.locator("main > p .badge").get_by_text("delivered").first.wait_for()
        assert timeline(page) == ["Accepted", "Sent", "Delivered", "Opened", "Clicked"]
        page.unroute("**/v2/email/messages/*")

    acting("/messages", find_one_that_bounced)
    acting("/messages", read_one_that_was_opened)


@pytest.mark.long
def test_an_address_is_suppressed_and_released(acting: Acting) -> None:
    def act(page: Any) -> None:
        page.get_by_role("button", name="Suppress an address").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Address", exact=True).fill("never@example.com")
        dialog.get_by_role("button", name="Suppress an address").click()
        page.get_by_text("never@example.com").first.wait_for()
        press(page, "Release never@example.com", "Release never@example.com", act="Release")
        page.get_by_role("rowheader", name="never@example.com").wait_for(state="detached")

    acting("/email/suppressions", act)


@pytest.mark.long
def test_a_sender_is_added_and_deleted(acting: Acting) -> None:
    def act(page: Any) -> None:
        page.get_by_role("button", name="Add a sender").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Domain or address").fill("no domain")
        dialog.get_by_role("button", name="Add a sender").click()
        dialog.get_by_role("alert").wait_for()  # it says what is wrong, and stays open
        dialog.get_by_label("Domain or address").fill("other.example.com")
        dialog.get_by_role("button", name="Add a sender").click()
        page.get_by_role("heading", name="other.example.com").wait_for()
        press(page, "Delete: other.example.com", "Delete: other.example.com", act="Delete")
        page.get_by_role("heading", name="other.example.com", exact=True).wait_for(state="detached")

    acting("/email/senders", act)


@pytest.mark.long
def test_the_token_of_a_key_is_shown_once(acting: Acting) -> None:
    def act(page: Any) -> None:
        page.get_by_role("button", name="Create a key").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Name").fill("from the console")
        dialog.get_by_label("messages:read").check()
        dialog.get_by_role("button", name="Create a key").click()
        token = page.get_by_label("Key", exact=True).input_value()
        assert token.startswith("svc_test_")
        page.get_by_role("dialog").get_by_role("button", name="Close").click()

        page.get_by_role("button", name="Rotate the key from the console").click()
        page.get_by_role("dialog").get_by_role("button", name="Rotate").click()
        other = page.get_by_label("Key", exact=True).input_value()
        assert other.startswith("svc_test_")
        assert other != token
        page.get_by_role("dialog").get_by_role("button", name="Close").click()
        assert token not in page.content()
        assert other not in page.content()

        press(page, "Revoke the key from the console", "Revoke the key from the console", act="Revoke")
        page.get_by_text("revoked").first.wait_for()

    acting("/api-keys", act)


@pytest.mark.long
def test_a_person_is_invited_given_another_role_and_disabled(acting: Acting) -> None:
    def act(page: Any) -> None:
        page.get_by_role("button", name="Invite", exact=True).click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Name").fill("Bia")
        dialog.get_by_label("E-mail").fill("bia@example.com")
        dialog.get_by_role("button", name="Invite", exact=True).click()
        assert len(page.get_by_label("Invitation", exact=True).input_value()) > 20
        page.get_by_role("dialog").get_by_role("button", name="Close").click()

        row = page.get_by_role("row").filter(has_text="bia@example.com")
        row.get_by_text("operator").first.wait_for()
        page.get_by_role("button", name="Change the role of Bia").click()
        page.get_by_role("dialog").get_by_label("Role", exact=True).select_option("analyst")
        page.get_by_role("dialog").get_by_role("button", name="Save").click()
        row.get_by_text("analyst").first.wait_for()
        press(page, "Disable Bia", "Disable Bia", act="Disable")
        row.get_by_text("disabled").first.wait_for()

    acting("/accounts", act)


@pytest.mark.long
def test_settings_are_kept_and_what_is_refused_stands_at_its_field(acting: Acting) -> None:
    def act(page: Any) -> None:
        page.get_by_label("Quiet hours: begin").fill("22:00")
        page.get_by_label("Quiet hours: end").fill("08:00")
        page.get_by_label("Time zone").fill("Nowhere/City")
        page.get_by_role("button", name="Save").click()
        page.locator(".field", has_text="Time zone").locator(".fault").wait_for()
        page.get_by_label("Time zone").fill("America/Manaus")
        page.get_by_role("button", name="Save").click()
        page.get_by_text("Saved.").first.wait_for()
        page.reload()
        page.get_by_label("Time zone").wait_for()
        assert page.get_by_label("Time zone").input_value() == "America/Manaus"
        assert page.get_by_label("Quiet hours: end").input_value() == "08:00"
        page.get_by_label("Quiet hours: begin").fill("")
        page.get_by_label("Quiet hours: end").fill("")
        page.get_by_label("Time zone").fill("America/Sao_Paulo")
        page.get_by_role("button", name="Save").click()
        page.get_by_text("Saved.").first.wait_for()

    acting("/organization", act)


@pytest.mark.long
def test_an_execution_is_ended(acting: Acting, ids: dict[str, str]) -> None:
    def act(page: Any) -> None:
        press(page, "End it", "End this execution?")
        page.locator("main > p .badge").get_by_text("canceled").first.wait_for()
        page.get_by_text("ended by a person").first.wait_for()

    acting(f"/journeys/{ids['waiting']}/executions/{ids['standing']}", act)


@pytest.mark.long
def test_an_rcs_message_tells_what_carried_it_and_why_it_failed(acting: Acting, ids: dict[str, str]) -> None:
    def timeline(page: Any) -> Any:
        page.locator("ol.timeline").wait_for()
        return page.locator("ol.timeline .badge").all_text_contents()

    def find(page: Any) -> None:
        page.get_by_label("Channel").select_option("rcs")
        page.get_by_label("Phone or e-mail").fill(TAKEN)
        page.get_by_role("button", name="Search").click()
        page.get_by_text("RCS is looked for by campaign and by status").first.wait_for()
        page.get_by_label("Phone or e-mail").fill("")
        page.get_by_label("Status").select_option("failed")
        page.get_by_role("button", name="Search").click()
        row = page.get_by_role("row").filter(has_text=ids["refused"])
        row.get_by_text("number blacklisted").first.wait_for()
        assert page.get_by_role("link", name=ids["silent"]).count() == 0
        row.get_by_role("link", name=ids["refused"]).click()
        assert timeline(page) == ["Accepted", "Failed"]
        page.locator("ol.timeline").get_by_text("number blacklisted").wait_for()

    def by_sms(page: Any) -> None:
        assert timeline(page) == ["Accepted", "SMS in its place", "Sent", "Delivered"]
        for name in ("Archive", "Send again"):
            assert page.get_by_role("button", name=name).count() == 0, "neither is possible"

    def silent(page: Any) -> None:
        assert timeline(page) == ["Accepted", "Sent", "May leave as an SMS"]

    acting("/messages", find)
    acting(f"/messages/{ids['by sms']}?channel=rcs", by_sms)
    acting(f"/messages/{ids['silent']}?channel=rcs", silent)


@pytest.mark.long
async def test_an_id_of_rcs_is_found_where_nobody_said_its_channel(shown: Shown, ids: dict[str, str]) -> None:
    await asyncio.to_thread(_find_by_id, shown, ids["by sms"])


def _find_by_id(shown: Shown, message_id: str) -> None:
    with console(shown) as visit:
        visit.at("/messages")
        visit.page.get_by_label("Message id").fill(message_id)
        visit.page.get_by_role("button", name="Search").click()
        visit.page.locator("ol.timeline").get_by_text("SMS in its place", exact=True).wait_for()


@pytest.mark.long
def test_a_push_message_tells_of_each_platform_and_is_canceled(acting: Acting, ids: dict[str, str]) -> None:
    def result(page: Any) -> None:
        result = page.get_by_role("region", name="Result by platform")
        rows = [each.split("\t") for each in result.locator("tbody").inner_text().split("\n")]
        assert [row for row in rows if row[0] in ("iOS", "Android")] == [
            ["iOS", "1", "0", "0", "–", "0", "1"],
            ["Android", "1", "1", "0", "0%", "0", "0"],
        ]
        page.get_by_role("region", name="Devices of this message").get_by_text("unregistered").wait_for()
        assert page.get_by_role("button", name="Cancel the push").count() == 0

    def cancel(page: Any) -> None:
        press(page, "Cancel the push", "Cancel this push message?")
        page.locator("main > p .badge").get_by_text("canceled").first.wait_for()
        assert page.get_by_role("button", name="Cancel the push").count() == 0

    acting(f"/push/messages/{ids['push']}", result)
    acting(f"/push/messages/{ids['later']}", cancel)


@pytest.mark.long
def test_devices_are_searched_by_app_and_status(acting: Acting, ids: dict[str, str]) -> None:
    def act(page: Any) -> None:
        page.get_by_label("App").select_option(label=named("app"))
        page.get_by_label("Status").select_option("invalid")
        page.get_by_role("button", name="Filter").click()
        page.get_by_text("1 of 1").first.wait_for()
        page.get_by_role("cell", name="iOS").wait_for()
        page.get_by_role("link", name=ids["other"]).click()
        page.get_by_role("link", name="Devices of this contact").click()
        page.get_by_text("2 of 2").first.wait_for()

    acting("/push/devices", act)


@pytest.mark.long
def test_a_push_app_is_made_changed_and_deleted(acting: Acting) -> None:
    def act(page: Any) -> None:
        page.get_by_role("button", name="Create an app").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Name").fill("from the console")
        for platform in ("iOS", "Android", "browser"):
            dialog.get_by_label(platform).uncheck()
        dialog.get_by_role("button", name="Create an app").click()
        dialog.get_by_text("Choose one platform at least.").wait_for()
        dialog.get_by_label("Android").check()
        dialog.get_by_label("Android").press("Enter")
        row = page.get_by_role("row").filter(has_text="from the console")
        row.get_by_role("cell", name="Android", exact=True).wait_for()
        page.get_by_role("button", name="Change the app from the console").click()
        page.get_by_role("dialog").get_by_label("iOS").check()
        page.get_by_role("dialog").get_by_role("button", name="Save").click()
        row.get_by_role("cell", name="iOS, Android").wait_for()
        press(page, "Delete the app from the console", "Delete the app from the console", act="Delete")
        row.wait_for(state="detached")

    acting("/push/apps", act)


@pytest.mark.long
def test_a_social_account_is_registered_connected_disconnected_and_deleted(acting: Acting) -> None:
    def act(page: Any) -> None:
        page.get_by_role("button", name="Register an account").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Name").fill("From the console")
        dialog.get_by_label("Identifier at the platform").fill("console-1")
        dialog.get_by_role("button", name="Register an account").click()
        page.get_by_text("Nothing leaves from this account.").first.wait_for()
        page.get_by_text("Nobody wrote in the last 24 hours").wait_for()
        press(page, "Connect")
        page.locator("main > p .badge").get_by_text("connected", exact=True).wait_for()
        page.get_by_role("button", name="Change", exact=True).click()
        page.get_by_role("dialog").get_by_label("Name").fill("Another name")
        page.get_by_role("dialog").get_by_role("button", name="Save").click()
        page.get_by_role("heading", name="Another name").wait_for()
        press(page, "Disconnect", "Disconnect Another name?")
        page.locator("main > p .badge").get_by_text("disconnected").wait_for()
        press(page, "Delete", "Delete Another name?")
        page.get_by_role("heading", name="Social accounts").wait_for()
        assert page.get_by_role("link", name="Another name").count() == 0

    acting("/social/accounts", act)


def test_media_that_came_is_downloaded_under_its_name(acting: Acting, ids: dict[str, str]) -> None:
    def act(page: Any) -> None:
        row = page.get_by_role("row").filter(has_text=ids["file"])
        row.get_by_text("stored").first.wait_for()
        with page.expect_download() as started:
            row.get_by_role("button", name=f"Download the media of {ids['file']}").press("Enter")
        assert started.value.suggested_filename.removesuffix(".png").strip("_ ").startswith("file")
        assert Path(started.value.path()).read_bytes() == PNG

    acting("/media", act)


EMPTY = {
    "/push/messages": "No push message here.",
    "/push/devices": "No device here.",
    "/push/apps": "No app in this environment.",
    "/social/accounts": "No account here.",
    "/media": "No media here.",
    "/messages?channel=rcs": "No such message.",
}


@pytest.mark.long
async def test_where_nothing_is_and_where_reading_fails_it_is_said_what_to_do(shown: Shown) -> None:
    await asyncio.to_thread(_look_at_nothing, shown)


def _look_at_nothing(shown: Shown) -> None:
    refused = {"status": 503, "json": {"code": "UNAVAILABLE", "detail": "Not now.", "requestId": "req_1"}}
    with console(shown, viewport=NARROW) as visit:
        page = visit.page
        page.locator("header .switch").get_by_label("Live").check()
        for place, text in EMPTY.items():
            visit.at(place)
            page.locator("main").get_by_text(text).wait_for()
        visit.at("/wallet")
        listed = re.compile(r"/(push/(messages|devices|apps)|social/accounts|rcs/messages|messages)\?")
        page.route(listed, lambda route: route.fulfill(**refused))
        for place, text in EMPTY.items():
            visit.at(place)
            page.locator("main").get_by_role("alert").get_by_text("Not now.").first.wait_for()
            assert page.locator("main").get_by_text(text).count() == 0, place
        page.unroute(listed)
        page.locator("main").get_by_role("button", name="Try again").first.click()
        page.locator("main").get_by_text(text).wait_for()


def press(page: Any, button: str, title: str = "", *, act: str = "") -> None:
    """Press a button, and in the dialog `title`, where it asks, the button `act`: the same one unless said."""
    page.get_by_role("button", name=button, exact=True).click()
    if title:
        page.get_by_role("dialog", name=title).get_by_role("button", name=act or button, exact=True).click()
