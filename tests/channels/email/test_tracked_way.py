"""A tracked e-mail over HTTP: what is in it is opened, clicked and unsubscribed from (C10.2.7, C10.2.9, C27)."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any, NamedTuple

import aiohttp
import asyncpg
import pytest
from tests.channels.email.caller import Mail, ready_in_live
from tests.channels.email.conftest import MailServer, Peer
from tests.program import Api, Refused, Service, free_port
from tests.waiting import until

ADMIN_TOKEN = "the administrator of these tests"
EXACT = "https://example.com/a/b?x=1&y=%20z#part"
HTML = f'<p>Hi</p><a href="{EXACT.replace("&", "&amp;")}">Look</a>'
TOO_MUCH = "Too much content is in memory: try again shortly."
PERSON = {"User-Agent": "Mozilla/5.0"}


class Running(NamedTuple):
    """The program, whose live e-mails go to a mail server at `port`."""

    service: Service
    test: str
    live: str
    port: int


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    port = free_port()
    service = Service(
        tmp_path_factory.mktemp("tracked"), SANDBOX_TIME_SCALE="0.01", ADMIN_TOKEN=ADMIN_TOKEN,
        SSRF_ALLOW_CIDRS="127.0.0.0/8", ADAPTER_EMAIL="smtp", SMTP_URL=f"smtp://127.0.0.1:{port}",
        SMTP_CONNECTIONS="60",
    )  # fmt: skip
    try:
        asyncio.run(service.start())
        asyncio.run(ready_in_live(service, ADMIN_TOKEN))
        yield Running(service, service.key("test", org=None), service.key("live", org=None), port)
    finally:
        asyncio.run(service.wipe())


@pytest.fixture
async def live(running: Running) -> AsyncIterator[Mail]:
    async with Api(running.service.url, running.live) as api:
        yield Mail(api)


@pytest.fixture
async def mail(running: Running) -> AsyncIterator[Mail]:
    async with Api(running.service.url, running.test) as api:
        yield Mail(api)


@pytest.fixture
async def mail_server(running: Running) -> AsyncIterator[MailServer]:
    server = MailServer({"enable_SMTPUTF8": True}, port=running.port)
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def person() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(headers=PERSON) as session:
        yield session


class Told:
    """What a webhook is told."""

    def __init__(self, api: Api, hook: str) -> None:
        self._api, self._way = api, f"/webhooks/{hook}/deliveries"

    @classmethod
    async def of(cls, api: Api, *events: str) -> "Told":
        hook = await api.call("POST", "/webhooks", {"url": "http://127.0.0.1:1/", "events": list(events)})
        return cls(api, hook["id"])

    async def events(self, count: int) -> list[Any]:
        """So many, oldest first: each its type with its data."""

        async def came() -> bool:
            return len((await self._api.call("GET", self._way))["items"]) >= count

        await until(came, f"{count} events are told", every=0.05)
        items = (await self._api.call("GET", self._way))["items"]
        payloads = [(await self._api.call("GET", f"{self._way}/{each['id']}"))["payload"] for each in items]
        return [(each["type"], each["data"]) for each in reversed(payloads)]


def taken(server: MailServer) -> tuple[EmailMessage, str]:
    """The one e-mail that the server took, and its HTML."""
    (envelope,) = server.taken
    assert isinstance(envelope.content, bytes)
    found: Any = message_from_bytes(envelope.content, policy=policy.default)
    return found, found.get_body(("html",)).get_content()


async def test_a_link_leads_to_the_exact_address_and_tells_of_the_click(
    live: Mail, mail_server: MailServer, person: aiohttp.ClientSession
) -> None:
    told = await Told.of(live.api, "email.clicked")
    sent = await live.send("click@example.com", html=HTML)
    link = re.search(r'href="([^"]+)"', taken(mail_server)[1])
    assert link is not None
    for first in (True, False):
        async with person.get(link[1], allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (302, EXACT)
        kind, data = (await told.events(1 if first else 2))[-1]
        assert (kind, data["id"], data["url"], data["firstClick"]) == ("email.clicked", sent["id"], EXACT, first)
        record = await live.read(sent["id"])
        assert (record["clickedAt"], "openedAt" in record) == ((await told.events(1))[0][1]["clickedAt"], False)


async def test_the_image_tells_of_the_open(live: Mail, mail_server: MailServer, person: aiohttp.ClientSession) -> None:
    told = await Told.of(live.api, "email.opened")
    sent = await live.send("open@example.com", html=HTML)
    image = re.search(r'<img src="([^"]+)"', taken(mail_server)[1])
    assert image is not None
    for first in (True, False):
        async with person.get(image[1]) as answer:
            assert (answer.status, answer.content_type) == (200, "image/gif")
        kind, data = (await told.events(1 if first else 2))[-1]
        assert (kind, data["id"], data["firstOpen"]) == ("email.opened", sent["id"], first)
    (listed,) = (await live.api.call("GET", "/v2/email/messages", to="open@example.com"))["items"]
    assert listed["openedAt"] == (await told.events(2))[0][1]["openedAt"]


async def test_one_click_unsubscribes_and_the_next_send_is_refused(
    live: Mail, mail_server: MailServer, person: aiohttp.ClientSession
) -> None:
    await live.send("leaves@example.com", html=HTML)
    email, _ = taken(mail_server)
    assert email["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    address = str(email["List-Unsubscribe"]).removeprefix("<").removesuffix(">")
    body: Mapping[str, str] = {"List-Unsubscribe": "One-Click"}
    async with person.post(address, data=body) as answer:
        assert answer.status == 200
    told = await live.refused(422, "CONTACT_OPTED_OUT", "Leaves@example.com", html=HTML)
    assert told["meta"] == {"motivo": "opt_out"}
    assert len(mail_server.taken) == 1
    assert (await live.send("leaves@example.com", transactional=True))["status"] == "sent"


async def test_to_what_is_transactional_nothing_is_added(live: Mail, mail_server: MailServer) -> None:
    await live.send("plain@example.com", html=HTML, transactional=True)
    email, html = taken(mail_server)
    assert html.rstrip("\r\n") == HTML
    assert [name for name in email if name.startswith("List-")] == []


async def test_without_tracking_it_can_still_be_unsubscribed_from(live: Mail, mail_server: MailServer) -> None:
    await live.send("untracked@example.com", html=HTML, tracking=False)
    email, html = taken(mail_server)
    assert (html.rstrip("\r\n"), "List-Unsubscribe" in email) == (HTML, True)


async def test_in_test_a_link_tells_of_the_click_too(
    running: Running, mail: Mail, person: aiohttp.ClientSession
) -> None:
    """Nobody gets that e-mail: its link is looked up."""
    told = await Told.of(mail.api, "email.clicked")
    sent = await mail.send(html=HTML)
    database = await asyncpg.connect(**running.service.cluster().connect_arguments)
    codes = await database.fetch("select code from tracked_links where message_id = $1", sent["id"])
    await database.close()
    ((code,),) = codes
    async with person.get(f"{running.service.url}/l/{code}", allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (302, EXACT)
    ((_, data),) = await told.events(1)
    assert (data["id"], data["firstClick"]) == (sent["id"], True)


async def test_the_links_of_a_deleted_contact_go_with_it(running: Running, mail: Mail) -> None:
    contact = await mail.api.call("POST", "/contacts", {"phone": "+5511987651237", "email": "gone@example.com"})
    sent = await mail.send("gone@example.com", html=HTML, contactId=contact["id"])
    database = await asyncpg.connect(**running.service.cluster().connect_arguments)
    try:
        links = "select count(*) from tracked_links where message_id = $1"
        assert await database.fetchval(links, sent["id"]) == 1
        await mail.comes_to(sent["id"], "delivered")
        await mail.api.call("DELETE", f"/contacts/{contact['id']}")

        async def erased() -> bool:
            return not await database.fetchval(links, sent["id"])

        await until(erased, "its links are erased", every=0.1)
    finally:
        await database.close()


async def test_contents_have_a_bound_in_memory_and_what_does_not_fit_leaves_nothing(
    live: Mail, mail_server: MailServer
) -> None:
    """A short request may send a long template. They stall at the mail server: an organization has room for some."""

    async def stall(peer: Peer) -> None:
        await mail_server.released.wait()

    mail_server.at["CONTENT"] = stall
    before = (await live.api.call("GET", "/v2/email/messages", limit=1))["total"]
    made = {"name": "Long", "subject": "Long", "html": f"<p>{'x' * 1_000_000}</p>"}
    template = await live.api.call("POST", "/v2/email/templates", made)
    asked = {"templateId": template["id"], "subject": None, "html": None, "text": None}
    sends: list[asyncio.Task[Any]] = []
    while len(sends) < 20 and not any(each.done() for each in sends):
        sends.append(asyncio.create_task(live.send(f"big{len(sends)}@example.com", **asked)))
        await until(
            lambda: sends[-1].done() or mail_server.heard.count("CONTENT") == len(sends), "it stalls, or is refused"
        )
    refused = sends.pop().exception()
    assert isinstance(refused, Refused)
    assert (refused.status, refused.body["detail"]) == (503, TOO_MUCH)
    assert 5 < len(sends) < 15
    mail_server.released.set()
    assert {each["status"] for each in await asyncio.gather(*sends)} == {"sent"}
    assert (await live.api.call("GET", "/v2/email/messages", limit=1))["total"] - before == len(sends)
    mail_server.at.clear()
    assert (await live.send("after@example.com", **asked))["status"] == "sent"
