"""One real service for the tests of the console, with what its views show; and Debian's Chromium."""

import asyncio
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.acceptance.sandbox.customer import Customer, phone
from tests.program import Api, Service
from tests.waiting import PATIENCE, until

CHROMIUM = Path("/usr/bin/chromium")
AXE = Path(__file__).parents[2] / "node" / "node_modules" / "axe-core" / "axe.min.js"

HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
"""What a caller or a stranger stores in the hope that a page takes it for markup."""


@dataclass(frozen=True, slots=True)
class SignIn:
    """Where somebody signs in, and as whom."""

    url: str
    email: str
    password: str


@dataclass(frozen=True, slots=True)
class Shown(SignIn):
    """What the views find for the owner of the organization: `token` and the ids are of the test environment."""

    token: str
    number_id: str
    message_id: str
    inbound_id: str
    webhook_id: str
    delivery_id: str


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("console")
    running = Service(folder, SSRF_ALLOW_CIDRS="127.0.0.0/8", SANDBOX_TIME_SCALE="0.1")
    try:
        asyncio.run(running.start())
        yield running
    finally:
        asyncio.run(running.wipe())


@pytest.fixture(scope="session")
def shown(service: Service) -> Shown:
    return asyncio.run(_seeded(service))


async def _seeded(service: Service) -> Shown:
    email, password = f"{secrets.token_hex(6)}@example.com", secrets.token_urlsafe(18)
    invited = service.command("account", "create", "--email", email, "--name", HOSTILE, "--json")
    token = service.key("test")

    async def refuse(_: web.BaseRequest) -> web.Response:
        return web.Response(status=500, text=HOSTILE)

    endpoint = web.ServerRunner(web.Server(refuse), shutdown_timeout=0)
    await endpoint.setup()
    await web.TCPSite(endpoint, "127.0.0.1", 0).start()
    try:
        async with Api(service.url, token) as api:
            await api.call(
                "POST", "/v2/accounts/accept-invite", {"token": invited["inviteToken"], "password": password}
            )
            await api.call("PATCH", "/v2/organization", {"name": HOSTILE})
            hook = {"url": f"http://127.0.0.1:{endpoint.addresses[0][1]}/hook", "events": ["*"], "description": HOSTILE}
            webhook = await api.call("POST", "/webhooks", hook)
            customer = await Customer.arrive(api)
            metadata = {"note": HOSTILE}
            message = await customer.send(phone(), templateVars=[HOSTILE], campaignId=HOSTILE[:34], metadata=metadata)
            await customer.reaches(message, "read")
            stranger = {"numberId": customer.number_id, "from": phone(), "text": HOSTILE}
            inbound = await api.call("POST", "/v2/sandbox/inbound", stranger)
            deliveries = f"/webhooks/{webhook['id']}/deliveries"

            async def tried() -> Any:
                page = await api.call("GET", deliveries)
                return next((each for each in page["items"] if each["attemptCount"]), None)

            delivery = await until(tried, "a delivery was tried")
        return Shown(
            service.url, email, password, token, customer.number_id, message["id"], inbound["messageId"],
            webhook["id"], delivery["id"],
        )  # fmt: skip
    finally:
        await endpoint.cleanup()


@dataclass
class Visit:
    """A page in the browser. `complaints`: what it had to complain of, also what its policy forbade."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def sign_in(self, person: SignIn) -> None:
        self.page.get_by_label("E-mail").fill(person.email)
        self.page.get_by_label("Password", exact=True).fill(person.password)
        self.page.get_by_role("button", name="Sign in").click()

    def at(self, place: str) -> None:
        """Go to a view, and wait until its heading is there and nothing is read any more."""
        self.page.evaluate(
            """place => new Promise(gone => {
                if (location.hash === `#${place}`) return gone();
                addEventListener("hashchange", () => gone(), { once: true });  // behind the page's own
                location.hash = place;
            })""",
            place,
        )
        self.page.wait_for_function(
            "place => location.hash === `#${place}` && document.querySelector('h1') && "
            "!document.querySelector('main p.quiet[role=status]')",
            arg=place,
        )


@contextmanager
def console(person: SignIn, **context: Any) -> Iterator[Visit]:
    """Signed in, in English, at the numbers of the test environment. Only in a thread without an event loop."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        page = browser.new_page(locale="en-US", **context)
        page.set_default_timeout(1_000 * PATIENCE)
        visit = Visit(page)
        page.on("request", lambda request: visit.hosts.add("/".join(request.url.split("/")[:3])))
        page.on("console", lambda said: visit.complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: visit.complaints.append(str(error)))
        page.goto(f"{person.url}/console")
        visit.sign_in(person)
        page.get_by_role("heading", name="Numbers").wait_for()
        try:
            yield visit
        finally:
            browser.close()
