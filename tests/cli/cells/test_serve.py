"""`recado cells serve`: two cells behind one address, a move under load, and a cell that is away."""

import asyncio
import base64
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from tests.acceptance.provider_sides import BridgeSide
from tests.acceptance.sandbox.customer import Customer, phone
from tests.program import Api, Program, Service, free_port, running
from tests.two_cells import Cells, fetch
from tests.waiting import until

from recado.entry.rules import Way, rule_of

PASSWORD = "a long password of the try"


class EntryProgram(Program):
    """`recado cells serve` on a port of its own."""

    def __init__(self, cells: Cells, **settings: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        super().__init__(
            cells.folder, "entry", "cells", "serve", LISTEN=f"127.0.0.1:{self.port}", LOG_FORMAT="json", **settings
        )


@asynccontextmanager
async def serving(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EntryProgram]:
    for name, url in cells.urls.items():
        monkeypatch.setenv(name, url)
    entry = EntryProgram(cells, CELLS_DATABASE_URL=cells.urls["RECADO_CELLS_DATABASE_URL"])
    entry.spawn()
    try:
        async with aiohttp.ClientSession() as session:

            async def ready() -> bool:
                assert entry.running, entry.tail()
                try:
                    async with session.get(f"{entry.url}/readyz") as answer:
                        return answer.status == 200
                except aiohttp.ClientError:
                    return False

            await until(ready, "the entry is ready")
        yield entry
    finally:
        assert entry.end(signal.SIGTERM) == 0, entry.tail()


async def status(session: aiohttp.ClientSession, url: str, token: str | None = None, **options: Any) -> int:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with session.get(url, headers=headers, allow_redirects=False, **options) as answer:
        await answer.read()
        assert answer.status != 503 or "Retry-After" in answer.headers
        return answer.status


class Caller:
    """One who makes contacts without a pause, and knows which of them were made."""

    def __init__(self, api: aiohttp.ClientSession, url: str, token: str) -> None:
        self.made: list[str] = []
        self.statuses: Counter[int] = Counter()
        self._session, self._url = api, url
        self._headers = {"Authorization": f"Bearer {token}"}
        self.ended = False

    async def run(self) -> None:
        number = 0
        while not self.ended:
            number += 1
            body = {"name": f"Contact {number}", "phone": phone()}
            async with self._session.post(f"{self._url}/contacts", json=body, headers=self._headers) as answer:
                content = await answer.json(content_type=None)
                self.statuses[answer.status] += 1
                if answer.status == 201:
                    self.made.append(content["id"])
                else:
                    assert (answer.status, "Retry-After" in answer.headers) == (503, True), content
            await status(self._session, f"{self._url}/numbers", self._headers["Authorization"].removeprefix("Bearer "))


async def account_of(service: Service, organization_id: str, email: str) -> str:
    made = await asyncio.to_thread(
        service.command, "account", "create", "--org", organization_id, "--email", email, "--json"
    )
    return str(made["inviteToken"])


@pytest.mark.long
async def test_whoever_calls_needs_one_address_while_organizations_move_and_cells_are_away(
    cells: Cells, monkeypatch: pytest.MonkeyPatch
) -> None:
    side = BridgeSide(free_port())
    options = {**side.settings, "TRUSTED_PROXIES": "127.0.0.1"}
    async with running(cells.service("a", **options)) as first, running(cells.service("b", **options)) as second:
        org = (await asyncio.to_thread(first.command, "org", "create", "--name", "Padaria", "--json"))["id"]
        near = (await asyncio.to_thread(first.command, "org", "create", "--name", "Near", "--json"))["id"]
        far = (await asyncio.to_thread(second.command, "org", "create", "--name", "Far", "--json"))["id"]
        token, near_token, far_token = (
            first.key("test", org=org),
            first.key("test", org=near),
            second.key("test", org=far),
        )
        await asyncio.to_thread(cells.add_both, a=first.url, b=second.url)
        invites = [await account_of(first, org, "ana@a.example"), await account_of(second, far, "bia@b.example")]
        async with serving(cells, monkeypatch) as entry, aiohttp.ClientSession() as session:
            url = entry.url
            for each in (token, near_token, far_token):
                assert await status(session, f"{url}/numbers", each) == 200
            unknown = token[:-1] + ("a" if token[-1] != "a" else "b")
            assert await status(session, f"{url}/numbers", unknown) == 401
            assert await status(session, f"{url}/numbers") == 401
            for path in ("/console", "/docs", "/v2/openapi.json", "/healthz", "/metrics", "/problems"):
                assert await status(session, url + path) == 200, path
            for path in ("/v2/admin/organizations", "/l/aaaaaaaa", "/c/aaaaaaaa", "/nowhere"):
                assert await status(session, url + path) in (401, 404), path
            assert await status(session, f"{url}/v2/ops/numbers") == 401

            # Whatever needs no key of an organization has a row in the table of rules.
            async with session.get(f"{url}/v2/openapi.json") as answer:
                paths = (await answer.json())["paths"]
            open_to_all = [
                (method.upper(), path)
                for path, operations in paths.items()
                for method, operation in operations.items()
                if operation.get("security") in ([], [{"administrator": []}])
            ]
            assert len(open_to_all) > 10
            for method, path in open_to_all:
                assert rule_of(method, path)[0].way is not Way.CREDENTIAL, (method, path)

            # Invitations and sign-ins of both cells.
            for invite, email in zip(invites, ("ana@a.example", "bia@b.example"), strict=True):
                accepted = {"token": invite, "password": PASSWORD}
                async with session.post(f"{url}/v2/accounts/accept-invite", json=accepted) as answer:
                    assert answer.status == 200, await answer.text()
                async with session.post(f"{url}/v2/sessions", json={"email": email, "password": PASSWORD}) as answer:
                    signed_in = await answer.json()
                    assert answer.status == 201, signed_in
                assert await status(session, f"{url}/numbers", signed_in["tokens"]["test"]) == 200
            for email in ("ana@a.example", "nobody@b.example"):
                async with session.post(f"{url}/v2/sessions", json={"email": email, "password": "wrong one"}) as answer:
                    assert (answer.status, (await answer.json())["code"]) == (401, "INVALID_LOGIN")

            async with Api(url, token) as api:
                customer = await Customer.arrive(api, per_second=4)
                sent = await customer.send(phone())
                await customer.reaches(sent, "read")
                chat = await api.call(
                    "POST",
                    "/v2/origin-links",
                    {"name": "poster", "numberId": customer.number_id, "fonte": "social_ads", "text": "Hi"},
                )
                slug = chat["url"].rpartition("/")[2]
                assert await status(session, f"{url}/c/{slug}") == 302
                picture = {
                    "filename": "note.pdf", "mimeType": "application/pdf",
                    "dataBase64": base64.b64encode(b"%PDF-1.4 a note").decode(),
                }  # fmt: skip
                await api.call("POST", f"/numbers/{customer.number_id}/media", picture)
                # News as they come.
                headers = {"Authorization": f"Bearer {token}"}
                async with session.get(f"{url}/v2/ops/stream", headers=headers) as news:
                    assert news.status == 200
                    async with asyncio.timeout(60):
                        assert await news.content.readline()

            callers = [Caller(session, url, each) for each in (token, token, near_token, far_token)]
            links: Counter[int] = Counter()

            async def opens_links() -> None:
                while not callers[0].ended:
                    links[await status(session, f"{url}/c/{slug}")] += 1
                    await asyncio.sleep(0.05)

            running_callers = [asyncio.create_task(each.run()) for each in callers]
            running_callers.append(asyncio.create_task(opens_links()))
            moved = asyncio.create_task(asyncio.to_thread(cells.said, "move", org, "--to", "b"))
            await asyncio.wait({moved, *running_callers}, return_when=asyncio.FIRST_COMPLETED)
            assert (await moved)["cell"] == "b"
            for each in callers[:2]:
                made_before = len(each.made)
                await until(lambda: len(each.made) > made_before + 5, "it goes on in the other cell", every=0.05)  # noqa: B023
            for each in callers:
                each.ended = True
            await asyncio.gather(*running_callers)
            print([dict(each.statuses) for each in callers], dict(links))
            assert all(set(each.statuses) == {201} for each in callers[2:])  # whoever is not moved notices nothing
            assert callers[0].statuses[503] > 0
            assert set(links) <= {302, 503}
            assert links[302] > 0
            made = sorted(callers[0].made + callers[1].made)
            query = "select id from contacts where organization_id = $1 and name like 'Contact %' order by id"
            assert [row["id"] for row in await fetch(cells, "b", query, org)] == made
            assert await fetch(cells, "a", query, org) == []
            assert await status(session, f"{url}/c/{slug}") == 302

            # What a provider tells comes to the cell that has the organization now.
            body = side.report("delivered", "org_unheard-of")
            path = f"{url}/v2/callbacks/chatapp/bridge"
            async with session.post(path, data=body, headers={**side.signed(body)}) as answer:
                assert answer.status == 200, await answer.text()
            async with session.post(path, data=body + b" ", headers={**side.signed(body)}) as answer:
                assert answer.status == 401
            assert [len(await fetch(cells, each, "select 1 from callbacks")) for each in "ab"] == [1, 1]

            # A cell is away.
            first.end(signal.SIGKILL)
            for each in (token, far_token):
                assert await status(session, f"{url}/numbers", each) == 200
            assert await status(session, f"{url}/numbers", near_token) == 503
            assert await status(session, f"{url}/console") == 200
            late = side.report("read", "org_unheard-of")
            async with session.post(path, data=late, headers={**side.signed(late)}) as answer:
                assert (answer.status, "Retry-After" in answer.headers) == (503, True)
            assert len(await fetch(cells, "b", "select 1 from callbacks")) == 2
        log = entry.log.read_text() + entry.output.read_text()
        assert token not in log
        assert slug not in log
        assert "request_failed" not in log
