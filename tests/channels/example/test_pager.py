"""A channel that is entered, and nothing else: its messages go all the way, over HTTP (C15, C16.3, C10.2)."""

import asyncio
import re
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.channels.example.policy import PAGER
from tests.program import Api, Refused, Service
from tests.waiting import until

from recado.loadtest.channels import CHANNELS, ChannelLoad
from recado.loadtest.run import LoadTestOptions, run_load_test

ROOT = Path(__file__).parents[3]
ENTERED = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.channels.example.serve import run; run()"
SOMEBODY = "somebody@pagers.example"
LONG = "x" * 161  # three pages
PRICE = 30  # of a page


class WithPager(Service):
    """The program, with the example entered."""

    starts_with = (sys.executable, "-c", ENTERED)


class Pages:
    """One caller of the example's routes."""

    def __init__(self, api: Api) -> None:
        self.api = api

    async def send(self, to: str, text: str = "come here", *, at: str = "/v2/pages", **more: Any) -> Any:
        return await self.api.call("POST", at, {"to": to, "text": text, **more})

    async def read(self, message_id: str) -> Any:
        return await self.api.call("GET", f"/messages/{message_id}")

    async def comes_to(self, message_id: str, status: str) -> Any:
        async def came() -> bool:
            return bool((await self.read(message_id))["status"] == status)

        await until(came, f"{message_id} is {status}", every=0.05)
        return await self.read(message_id)

    async def balance(self) -> tuple[int, int]:
        wallet = await self.api.call("GET", "/v2/wallet")
        return wallet["balanceCoins"], wallet["heldCoins"]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WithPager]:
    running = WithPager(tmp_path_factory.mktemp("pager"), SANDBOX_TIME_SCALE="0.01", SSRF_ALLOW_CIDRS="127.0.0.0/8")
    try:
        asyncio.run(running.start())
        yield running
    finally:
        asyncio.run(running.wipe())


@pytest.fixture(scope="module")
def caller(program: WithPager) -> tuple[str, str]:
    """The address of the program, and the key of an organization."""
    return program.url, program.key("test", org=None)


@pytest.fixture
async def pages(caller: tuple[str, str]) -> AsyncIterator[Pages]:
    async with Api(*caller) as api:
        yield Pages(api)


async def test_a_page_is_delivered_and_read_in_the_generic_view(pages: Pages) -> None:
    sent = await pages.send(SOMEBODY)
    assert (sent["status"], sent["to"]) == ("queued", "s***@pagers.example")
    delivered = await pages.comes_to(sent["id"], "delivered")
    assert delivered["sentAt"] <= delivered["deliveredAt"]
    listed = await pages.api.call("GET", "/messages", channel="pager", status="delivered")
    assert sent["id"] in [each["id"] for each in listed["items"]]


async def test_it_costs_by_its_pages(pages: Pages) -> None:
    before, held = await pages.balance()
    sent = await pages.send(SOMEBODY, LONG)
    assert sent["billing"] == {"coins": 3 * PRICE}
    await pages.comes_to(sent["id"], "delivered")
    assert await pages.balance() == (before - 3 * PRICE, held)


async def test_a_refused_page_has_failed_and_costs_nothing(pages: Pages) -> None:
    before = await pages.balance()
    sent = await pages.send("the.dead")
    failed = await pages.comes_to(sent["id"], "failed")
    assert failed["lastError"].startswith("battery_empty: ")
    assert await pages.balance() == before


async def test_a_page_of_which_nothing_is_heard_is_undelivered_and_shows_as_failed(pages: Pages) -> None:
    sent = await pages.send("the.lost", patience=0)
    failed = await pages.comes_to(sent["id"], "failed")
    assert failed["lastError"].startswith("indeterminate")
    assert "sentAt" in failed
    heard = await pages.send(SOMEBODY, patience=60)
    await pages.comes_to(heard["id"], "delivered")


async def test_an_answer_that_is_lost_leaves_it_queued_and_uncertain(pages: Pages) -> None:
    sent = await pages.send("the.mute")

    async def uncertain() -> bool:
        read = await pages.read(sent["id"])
        return bool(read["status"] == "queued" and read.get("waiting", {}).get("reason") == "uncertain")

    await until(uncertain, "it is uncertain")
    with pytest.raises(Refused) as refused:
        await pages.api.call("POST", f"/messages/{sent['id']}/archive")
    assert refused.value.status == 409


async def test_the_second_gateway_takes_over_from_the_first(pages: Pages) -> None:
    sent = await pages.send("avoids.it@pagers.example")
    await pages.comes_to(sent["id"], "delivered")


async def test_whose_pages_never_get_an_answer_holds_up_only_its_own(program: WithPager, pages: Pages) -> None:
    """Its circuit opens at both gateways, and no other's; a page that waits says for what (C16.3, C14.6)."""
    program.command("org", "create", "--name", "Unheard", "--json")
    async with Api(program.url, program.key("test", org="Unheard")) as api:
        theirs = Pages(api)
        last = [(await theirs.send("the.mute"))["id"] for _ in range(40)][-1]

        async def others_leave_meanwhile() -> bool:
            waiting = (await theirs.read(last)).get("waiting", {})
            sent = await pages.comes_to((await pages.send(SOMEBODY))["id"], "delivered")
            held = waiting.get("reason") == "no_connection" and "until" in waiting
            return held and bool(sent["sentAt"] < waiting["until"])

        await until(others_leave_meanwhile, "the pages of one wait, and those of another leave meanwhile")


@pytest.mark.parametrize("at", ["/v2/pages", "/v2/urgent-pages"])
async def test_whoever_opted_out_is_not_paged(pages: Pages, at: str) -> None:
    name = f"leaver{at.count('-')}"
    await pages.api.call("POST", "/contacts/opt-out", {"email": f"{name}@pagers.example"})
    before = await pages.balance()
    with pytest.raises(Refused) as refused:
        await pages.send(f"{name.title()}@pagers.example", at=at)
    assert refused.value.status == 422
    assert refused.value.body["code"] == "CONTACT_OPTED_OUT"
    assert await pages.balance() == before


async def test_whoever_never_consented_is_paged_though_the_organization_asks_for_a_grant(pages: Pages) -> None:
    await pages.api.call("PATCH", "/v2/organization", {"requireGrantedForMarketing": True})
    sent = await pages.send("stranger@pagers.example")
    await pages.api.call("PATCH", "/v2/organization", {"requireGrantedForMarketing": False})
    assert sent["status"] == "queued"


async def test_an_urgent_page_is_answered_with_what_became_of_it(pages: Pages) -> None:
    at = "/v2/urgent-pages"
    taken = await pages.send(SOMEBODY, at=at)
    assert taken["status"] in ("sent", "delivered")
    assert "payload" not in taken
    refused = await pages.send("the.dead", at=at)
    assert (refused["status"], refused["attempts"]) == ("failed", 1)
    with pytest.raises(Refused) as again:  # its content was never stored
        await pages.api.call("POST", f"/messages/{refused['id']}/reprocess")
    assert (again.value.status, again.value.body["code"]) == (409, "INVALID_STATE")


async def test_a_repeat_with_the_same_key_is_the_same_page(pages: Pages) -> None:
    body = {"to": SOMEBODY, "text": "once"}
    first = await pages.api.call("POST", "/v2/pages", body, key="a page")
    again = await pages.api.call("POST", "/v2/pages", body, key="a page")
    assert (again["id"], again["replayed"]) == (first["id"], True)


async def test_a_link_of_a_page_leads_on_and_its_clicks_are_told_and_counted(pages: Pages) -> None:
    url = "https://example.com/a?b=c"
    hook = await pages.api.call("POST", "/webhooks", {"url": "http://127.0.0.1:1/", "events": ["email.clicked"]})
    sent = await pages.send(SOMEBODY, f"see {url} or {url}", campaignId="spring")
    await pages.comes_to(sent["id"], "delivered")
    text = (await pages.read(sent["id"]))["payload"]["text"]
    short = re.findall(r"http\S+/l/\w{8}", text)
    assert (len(short), len(set(short)), url in text) == (2, 1, False)
    async with aiohttp.ClientSession() as people:
        for _ in range(3):
            async with people.get(short[0], allow_redirects=False) as answer:
                assert (answer.status, answer.headers["Location"]) == (302, url)

    async def counted() -> bool:
        return bool((await pages.api.call("GET", "/v2/campaigns/spring"))["clicks"] == 3)

    await until(counted, "the clicks are counted", every=0.05)
    deliveries = f"/webhooks/{hook['id']}/deliveries"
    told = [
        (await pages.api.call("GET", f"{deliveries}/{each['id']}"))["payload"]["data"]
        for each in (await pages.api.call("GET", deliveries))["items"]
    ]
    assert [(each["url"], each["status"], each["campaignId"]) for each in told] == [(url, "delivered", "spring")] * 3
    in_order = sorted(told, key=lambda each: (each["clickedAt"], not each["firstClick"]))  # two in one millisecond
    assert [each["firstClick"] for each in in_order] == [True, False, False]
    assert all(each["sentAt"] <= each["clickedAt"] for each in told)


async def test_a_load_test_knows_the_channel_by_its_entry(
    caller: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    load = ChannelLoad(
        path="/v2/pages", priced_as="email", body={"text": "load"}, recipients=b"p%04d%04d@pagers.example"
    )  # fmt: skip
    monkeypatch.setitem(CHANNELS, PAGER, load)
    target, token = caller
    try:
        report = await run_load_test(
            LoadTestOptions(target=target, token=token, mix={PAGER: 1}, rate=20.0, duration=1.0, connections=2)
        )
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().remove_signal_handler(number)
    assert (report["ok"], report["problems"], report["refusals"]) == (True, [], {})
    assert 10 <= report["accepted"] == report["left"]
    assert [(each["numberId"], each["perSecond"], each["left"]) for each in report["numbers"]] == [
        (PAGER, None, report["left"])
    ]
