"""For each operation, a request that succeeds. What an operation changes or ends is made for it first.

A route without a sample fails the walk (test_walk.py): add one in the file of its resource, and every rule of the
walk holds for the route. Here are the table, and what belongs to no resource.
"""

import itertools
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from tests.acceptance.caller import Request
from tests.acceptance.served import BRIDGE_SECRET
from tests.acceptance.tenants import Tenant
from tests.program import Api

from recado.channels.core.signing import PROVIDER_SIGNATURE, signature, signing_key
from recado.http.routes.service.console import console

Sample = Callable[[Api, Tenant], Awaitable[Request]]

SAMPLES: dict[str, Sample] = {}

_serial = itertools.count(1)


def sample(*operations: str) -> Callable[[Sample], Sample]:
    """Register a sample of operations."""

    def register(make: Sample) -> Sample:
        SAMPLES.update(dict.fromkeys(operations, make))
        return make

    return register


def fresh() -> int:
    """A number that nothing has yet."""
    return next(_serial)


def new(word: str) -> str:
    """A name that nothing has yet."""
    return f"{word}{fresh()}"


@sample(
    "getHealth", "getReadiness", "getOpenApiDocument", "getDocs", "getConsole", "getProblemIndex",
    "listMessages", "listNumbers", "listTemplates", "listApiKeys", "listAudit", "listWebhooks", "getOrganization",
    "listCampaigns", "listBatches", "listAccounts",
    "getWallet", "getPrices", "listLedger", "listTopUps",
    "getMetrics", "streamOperations", "listNumberStates", "listActors", "listWebhookStates", "listProviderStates",
)  # fmt: skip
async def nothing(api: Api, tenant: Tenant) -> Request:
    return Request()


@sample("getDocsFile")
async def file_of_the_docs(api: Api, tenant: Tenant) -> Request:
    return Request({"file": "docs.js"})


@sample("getConsoleFile1")
async def file_of_the_console(api: Api, tenant: Tenant) -> Request:
    return Request({"build": console().build, "part1": "app.js"})


@sample("getConsoleFile2")
async def view_of_the_console(api: Api, tenant: Tenant) -> Request:
    return Request({"build": console().build, "part1": "views", "part2": "numbers.js"})


@sample("getConsoleFile3")
async def library_of_the_console(api: Api, tenant: Tenant) -> Request:
    return Request({"build": console().build, "part1": "vendor", "part2": "htm", "part3": "htm.mjs"})


@sample("getProblemPage")
async def problem_page(api: Api, tenant: Tenant) -> Request:
    return Request({"code": "not-found"})


@sample("receiveCallback")
async def callback(api: Api, tenant: Tenant) -> Request:
    body = f'{{"events": [], "serial": {fresh()}}}'.encode()
    signed = signature([signing_key(BRIDGE_SECRET)], body, datetime.now(UTC))
    return Request({"channel": "chatapp", "adapter": "bridge"}, headers={PROVIDER_SIGNATURE: signed}, raw=body)
