"""docs/cells.md: what it shows of nginx leads each organization to its cell, and links to whichever cell knows them.

What it grants is enough for the entry, and no more.
"""

import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import asyncpg
import pytest
from aiohttp import web
from tests.deploy import proxies
from tests.deploy.proxies import Proxy, certificate
from tests.program import free_port

from recado.storage.cells import whereabouts
from recado.storage.cells.whereabouts import Shows
from recado.storage.core.connections.postgres import Database

PAGE = (Path(__file__).parents[2] / "docs" / "cells.md").read_text("utf-8")
(SHOWN,) = re.findall(r"```nginx\n(.*?)```", PAGE, re.DOTALL)
(GRANTS,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)


@asynccontextmanager
async def cell(name: str, port: int, link: str) -> AsyncIterator[None]:
    """A server that says who it is, and knows one link."""

    async def answer(request: web.Request) -> web.Response:
        known = request.path[3:] == link if request.path[:3] in {"/l/", "/c/", "/u/"} else True
        return web.Response(text=f"{name} {request.method} {request.host}", status=200 if known else 404)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield
    finally:
        await runner.cleanup()


def nginx(folder: Path, ports: tuple[int, int]) -> Proxy:
    port, made = free_port(), certificate(folder)
    text = proxies.replaced(
        SHOWN,
        {
            r"listen 443 ssl;": f"listen 127.0.0.1:{port};",
            r"10\.0\.0\.1:8080": f"127.0.0.1:{ports[0]}",
            r"10\.0\.0\.2:8080": f"127.0.0.1:{ports[1]}",
        },
    )
    places = "".join(
        f"{kind}_temp_path {folder / kind}; " for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    main = folder / "nginx.conf"
    main.write_text(
        f"daemon off; pid {folder / 'pid'}; error_log stderr warn; worker_processes 1;\nevents {{}}\n"
        f"http {{ access_log off; {places} {text} }}\n" + ("user root;\n" if os.geteuid() == 0 else "")
    )
    run = (proxies.program("nginx", "/usr/sbin/nginx"), "-e", "stderr", "-c", str(main))
    return Proxy("", f"http://127.0.0.1:{port}", made, (*run, "-t"), run, {})


async def test_nginx_leads_each_host_to_its_cell_and_links_to_the_one_that_knows_them(tmp_path: Path) -> None:
    ports = free_port(), free_port()
    proxy = nginx(tmp_path, ports)
    async with cell("a", ports[0], "old"), cell("b", ports[1], "new"):
        with proxies.running(proxy, tmp_path):
            await proxies.listening(proxy.plain)
            async with aiohttp.ClientSession() as session:

                async def said(method: str, path: str, host: str) -> tuple[int, str]:
                    async with session.request(method, proxy.plain + path, headers={"Host": host}) as answer:
                        return answer.status, await answer.text()

                for host, name in (("padaria.api.example.com", "b"), ("other.api.example.com", "a")):
                    assert await said("POST", "/messages", host) == (200, f"{name} POST {host}")
                for method, kind in (("GET", "l"), ("GET", "c"), ("POST", "u")):
                    for link, name in (("old", "a"), ("new", "b")):
                        for _ in range(2):  # nginx takes them in turns
                            found = await said(method, f"/{kind}/{link}", "l.api.example.com")
                            assert found == (200, f"{name} {method} l.api.example.com")
                    assert (await said(method, f"/{kind}/nobodys", "l.api.example.com"))[0] == 404


async def test_what_is_granted_shows_whose_a_token_or_a_code_is_and_no_more(database: Database) -> None:
    async with database.hot.acquire() as connection:
        undone = connection.transaction()
        await undone.start()
        try:
            await connection.execute(GRANTS)
            await connection.execute("set local role entry")
            for shows in Shows:
                shown = [b"0" * 32] if shows in (Shows.KEY, Shows.SESSION, Shows.INVITE) else ["nothing"]
                assert await whereabouts.having(connection, shows, shown) == {}
            for secret in ("password_hash from accounts", "name from organizations", "scopes from api_keys"):
                with pytest.raises(asyncpg.InsufficientPrivilegeError):
                    async with connection.transaction():
                        await connection.execute(f"select {secret}")
        finally:
            await undone.rollback()
