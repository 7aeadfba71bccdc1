"""Ids of another organization, on every operation and at full pace: nobody learns whether they are somebody's."""

import asyncio
import itertools
import json
import re
import urllib.request
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from tests.abuse.attacker import Attacker
from tests.abuse.conftest import ADMIN_TOKEN
from tests.abuse.neighbour import Neighbour
from tests.acceptance.tenants import CAMPAIGN, Tenant, settle
from tests.program import Service

pytestmark = [pytest.mark.alone, pytest.mark.long, pytest.mark.usefixtures("memory_returns")]

AT_ONCE = 16
PREFIX = re.compile(r"\^([a-z]+_)\[")
BUSY = {429, 503}
COMPARED = ("status", "code", "title", "detail", "errors", "meta")


@pytest.fixture(scope="session")
def foreign(service: Service) -> Tenant:
    """Another organization, which has one of everything."""
    return asyncio.run(settle(service.url, ADMIN_TOKEN, "Foreign"))


@pytest.fixture(scope="session")
def operations(service: Service) -> list[tuple[str, str, list[str]]]:
    """Method, path and the kinds of its ids, of each operation on a record that a key may ask for."""
    with urllib.request.urlopen(f"{service.url}/v2/openapi.json", timeout=30) as answer:
        document = json.load(answer)
    return [
        (method.upper(), path, list(kinds_of(operation)))
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if "{" in path and "x-required-scope" in operation and "x-session-only" not in operation
    ]


@pytest.fixture(scope="session")
def files(service: Service) -> set[tuple[str, str]]:
    """Method and path of each operation whose body is a file: JSON is refused there for its type."""
    with urllib.request.urlopen(f"{service.url}/v2/openapi.json", timeout=30) as answer:
        document = json.load(answer)
    return {
        (method.upper(), path)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if "requestBody" in operation and "application/json" not in operation["requestBody"]["content"]
    }


def kinds_of(operation: Any) -> Iterator[str]:
    """The prefix of each id in its path, in their order; the tag of campaigns has none."""
    for parameter in operation["parameters"]:
        if parameter.get("in") == "path":
            found = PREFIX.match(parameter["schema"].get("pattern", ""))
            yield found[1] if found else CAMPAIGN


async def test_ids_of_others_keep_nobody_waiting_and_tell_nothing(
    attacker: Attacker,
    foreign: Tenant,
    operations: list[tuple[str, str, list[str]]],
    files: set[tuple[str, str]],
    neighbour: Neighbour,
    seconds: float,
) -> None:
    loop = asyncio.get_running_loop()
    told: dict[tuple[str, str, bool], set[str]] = {}
    statuses: Counter[int] = Counter()
    turns = itertools.cycle([(*operation, known) for operation in operations for known in (True, False)])

    async def pry(end: float) -> None:
        async with attacker.line() as line:
            while loop.time() < end:
                method, path, kinds, known = next(turns)
                ids = [foreign.ids[kind] if known else never(kind) for kind in kinds]
                target = re.sub(r"{\w+}", "%s", path) % tuple(quote(each) for each in ids)
                status, document = await line.ask(method, target, None if method in ("GET", "DELETE") else {})
                if status == 415:
                    assert (method, path) in files
                    status = 422
                statuses[status] += 1
                if status not in BUSY:
                    told.setdefault((method, path, known), set()).add(comparable(status, document, ids))

    async with neighbour.held():
        began = loop.time()
        await asyncio.gather(*(pry(began + seconds) for _ in range(AT_ONCE)))
    print(f"{sum(statuses.values()) / seconds:.0f} a second: {dict(statuses)}")
    assert len({(method, path) for method, path, _ in told}) == len(operations)
    assert set(statuses) <= {404, 422} | BUSY
    for method, path, _ in told:
        assert told[method, path, True] == told[method, path, False], f"{method} {path}"
        assert len(told[method, path, True]) == 1


def never(kind: str) -> str:
    """What was never given out."""
    return "a campaign of nobody" if kind == CAMPAIGN else kind + "0" * 21


def comparable(status: int, document: Any, ids: list[str]) -> str:
    """What an answer says apart from the ids that were asked for."""
    said = json.dumps([status, *(document.get(member) for member in COMPARED)])
    for each in ids:
        said = said.replace(each, "<id>")
    return said
