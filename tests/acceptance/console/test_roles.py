"""What the console shows of actions that the role of whoever signed in does not allow (C3.3)."""

import asyncio
import secrets
from typing import Any

import pytest
from tests.acceptance.console.conftest import CHROMIUM, Shown, SignIn, console
from tests.program import Api

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="Debian's chromium is not installed"),
]


async def _person(shown: Shown, role: str) -> SignIn:
    email, password = f"{secrets.token_hex(6)}@example.com", secrets.token_urlsafe(18)
    async with Api(shown.url, shown.token) as api:
        owner = await api.call("POST", "/v2/sessions", {"email": shown.email, "password": shown.password})
        new = {"name": role, "email": email, "role": role}
        invited = await api.call("POST", "/v2/accounts", new, token=owner["tokens"]["test"])
        await api.call("POST", "/v2/accounts/accept-invite", {"token": invited["inviteToken"], "password": password})
    return SignIn(shown.url, email, password)


async def test_an_analyst_is_told_by_the_button_which_scope_it_lacks(shown: Shown) -> None:
    await asyncio.to_thread(_press, await _person(shown, "analyst"), shown)


def _press(person: SignIn, shown: Shown) -> None:
    with console(person) as visit:
        page, asked = visit.page, []
        page.on("request", lambda request: asked.append(request.url) if request.method != "GET" else None)
        visit.at(f"/numbers/{shown.number_id}")
        pause = page.get_by_role("button", name="Pause")
        assert pause.get_attribute("aria-disabled") == "true"
        pause.press("Enter")
        dialog = page.get_by_role("dialog", name="You may not do this")
        dialog.get_by_text("ops:write").wait_for()
        dialog.get_by_role("button", name="Close").click()
        dialog.wait_for(state="detached")

        visit.at("/organization")
        page.get_by_label("Time zone").press("Enter")
        save = page.get_by_role("button", name="Save")
        assert save.get_attribute("aria-disabled") == "true"
        save.press("Enter")
        page.get_by_role("dialog").get_by_text("org:write").wait_for()

        for place, button, scope in (
            ("/social/accounts", "Register an account", "social:write"),
            ("/push/apps", "Create an app", "push:send"),
        ):
            visit.at(place)
            page.get_by_role("button", name=button).press("Enter")
            page.get_by_role("dialog").get_by_text(scope).wait_for()
            page.keyboard.press("Escape")
        assert asked == []
        assert visit.complaints == []


async def test_an_operator_pauses_numbers_and_sees_neither_what_it_may_not_read_nor_replays(shown: Shown) -> None:
    await asyncio.to_thread(_operate, await _person(shown, "operator"), shown)


def _operate(person: SignIn, shown: Shown) -> None:
    with console(person) as visit:
        page = visit.page
        menu: Any = page.get_by_role("navigation").get_by_role("link")
        there = menu.all_text_contents()
        assert {"Numbers", "Wallet", "Organization"} <= set(there)
        assert not {"API keys", "People", "Audit"} & set(there)

        visit.at(f"/numbers/{shown.number_id}")
        assert page.get_by_role("button", name="Pause").get_attribute("aria-disabled") is None
        visit.at(f"/webhooks/{shown.webhook_id}")
        replay = page.get_by_role("button", name="Deliver again", exact=True).last
        assert replay.get_attribute("aria-disabled") == "true"
        assert "webhooks:write" in replay.get_attribute("title")
        assert visit.complaints == []
