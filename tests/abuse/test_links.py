"""Links that people open, by callers who are none: codes that are guessed, and clicks without end (C27)."""

import asyncio
import base64
import itertools
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import orjson
import pytest
from tests.abuse.attacker import Attacker
from tests.abuse.neighbour import Neighbour
from tests.program import Api, Service

from recado.config.limits import DEFAULT_LIMITS
from recado.domain.core.ids import MESSAGE, IdSource, lowest_id
from recado.domain.email.public_tokens import EmailKey, PublicTokens, Unsubscription
from recado.domain.links.codes import link_code
from recado.engine.clock import SystemClock
from recado.http.routes.links.opened_emails import REFUSALS_OF_ADDRESS
from recado.http.routes.links.opened_links import CODES_OF_ADDRESS

pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("memory_returns")]

ADDRESSES = [f"127.0.3.{1 + number}" for number in range(50)]
LINKS = """
insert into tracked_links (code, organization_id, env, channel, message_id, url)
select lpad(place::text, 8, 'a'), $1, 'test', 'sms', $2, 'https://example.com/' from generate_series(1, $3::int) place
on conflict do nothing
"""
LINKED = 2_000
GUESSERS = 5  # addresses
FREE = DEFAULT_LIMITS["public"].capacity / 2  # the test before may have used some of them


@pytest.fixture
async def database(service: Service) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(**service.cluster().connect_arguments)
    yield connection
    await connection.close()


@pytest.fixture
def tokens(service: Service) -> PublicTokens:
    keys = orjson.loads((service.data_dir / "keys.json").read_bytes())
    return PublicTokens(base64.b64decode(keys["index_key"]))


async def flood(
    attacker: Attacker,
    paths: Iterator[str],
    seconds: float,
    addresses: Sequence[str] = ADDRESSES,
    method: str = "GET",
    free: float = 0,
) -> Counter[int]:
    """Open links on a connection from each of the addresses, one after the other; the statuses.

    `free`: so many requests of an address are not refused, however fast the machine is.
    """
    loop = asyncio.get_running_loop()
    end, answers, asked = loop.time() + seconds, Counter[int](), Counter[str]()

    async def open_on(source: str) -> None:
        async with attacker.without_credential(source).line() as line:
            while loop.time() < end:
                status, _ = await line.ask(method, next(paths))
                assert status != 429 or asked[source] >= free
                answers[status] += 1
                asked[source] += 1

    await asyncio.gather(*map(open_on, addresses))
    return answers


@pytest.mark.long
async def test_whoever_guesses_codes_keeps_nobody_waiting(
    attacker: Attacker, neighbour: Neighbour, seconds: float
) -> None:
    chance = random.Random(7).randbytes
    guesses = (f"/l/{link_code(chance)}" for _ in itertools.count())
    guessers = ADDRESSES[:GUESSERS]
    began = asyncio.get_running_loop().time()
    async with neighbour.held():
        answers = await flood(attacker, guesses, seconds, guessers * (len(ADDRESSES) // GUESSERS))
    lasted = asyncio.get_running_loop().time() - began
    refill, capacity = DEFAULT_LIMITS["public"]
    assert set(answers) == {404, 429}, answers
    assert answers[404] <= GUESSERS * (capacity + refill * (lasted + 1)) + len(ADDRESSES)


async def test_a_burst_of_clicks_keeps_nobody_waiting(
    attacker: Attacker, api: Api, database: asyncpg.Connection, neighbour: Neighbour, seconds: float
) -> None:
    organization_id = (await api.call("GET", "/v2/organization"))["id"]
    await database.execute(LINKS, organization_id, lowest_id(MESSAGE, datetime.now(UTC)), LINKED)
    codes = [f"/l/{place:a>8}" for place in range(1, LINKED + 1)]
    async with neighbour.held():
        answers = await flood(attacker, itertools.cycle(codes), seconds, free=FREE)
    assert answers.keys() - {429} == {302}


@pytest.mark.long
async def test_a_burst_of_opens_keeps_nobody_waiting(
    attacker: Attacker, api: Api, tokens: PublicTokens, neighbour: Neighbour, seconds: float
) -> None:
    organization_id = (await api.call("GET", "/v2/organization"))["id"]
    ids = IdSource(SystemClock(), random.Random(7))
    images = [f"/o/{tokens.of_open(EmailKey(organization_id, 'test', ids.new(MESSAGE)))}.gif" for _ in range(LINKED)]
    async with neighbour.held():
        answers = await flood(attacker, itertools.cycle(images), seconds, free=FREE)
    assert answers.keys() - {429} == {200}


@pytest.mark.long
async def test_whoever_unsubscribes_without_end_keeps_nobody_waiting(
    attacker: Attacker, api: Api, tokens: PublicTokens, neighbour: Neighbour, seconds: float
) -> None:
    organization_id = (await api.call("GET", "/v2/organization"))["id"]
    message = EmailKey(organization_id, "test", lowest_id(MESSAGE, datetime.now(UTC)))
    ways_out = (f"/u/{tokens.of_unsubscription(Unsubscription(message, None, each))}" for each in hashes())
    few = ADDRESSES[:GUESSERS]
    began = asyncio.get_running_loop().time()
    async with neighbour.held():
        answers = await flood(attacker, ways_out, seconds, few * (len(ADDRESSES) // GUESSERS), "POST")
    lasted = asyncio.get_running_loop().time() - began
    refill, capacity = REFUSALS_OF_ADDRESS
    assert set(answers) <= {200, 429}, answers
    assert 0 < answers[200] <= GUESSERS * (capacity + refill * (lasted + 1))


def hashes() -> Iterator[bytes]:
    chance = random.Random(7)
    while True:
        yield chance.randbytes(32)


async def test_a_link_to_a_chat_that_is_opened_without_end_stores_few_codes(
    attacker: Attacker, api: Api, database: asyncpg.Connection, neighbour: Neighbour, seconds: float
) -> None:
    number: Any = (await api.call("GET", "/numbers"))["items"][0]["id"]
    new = {"name": "Burst", "numberId": number, "text": "Hello", "fonte": "outra"}
    path = urlsplit((await api.call("POST", "/v2/origin-links", new))["url"]).path
    before = await database.fetchval("select count(*) from origin_codes")
    began = asyncio.get_running_loop().time()
    async with neighbour.held():
        answers = await flood(attacker, itertools.repeat(path), seconds, free=FREE)
    lasted = asyncio.get_running_loop().time() - began
    refill, capacity = CODES_OF_ADDRESS
    assert answers.keys() - {429} == {302}
    codes = await database.fetchval("select count(*) from origin_codes") - before
    assert codes <= len(ADDRESSES) * (capacity + refill * (lasted + 1))
