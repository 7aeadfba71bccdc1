"""What Prometheus gets of the entry, and who may have it (C34.1)."""

from typing import Any

import aiohttp
import pytest
from aiohttp import web
from prometheus_client.parser import text_string_to_metric_families
from tests.deploy import promtool
from tests.deploy.asked_metrics import all_stand_in
from tests.entry.conftest import Two, bearer, between, echo
from tests.entry.test_entry import cell_of, unknown
from tests.program import free_port
from tests.waiting import until

from recado.entry import followed_map


async def scraped(client: aiohttp.ClientSession, two: Two, **headers: str) -> str:
    async with client.get(f"{two.url}/metrics", headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        assert answer.headers["Content-Type"].startswith("text/plain")
        return await answer.text()


def figures(text: str) -> dict[tuple[Any, ...], float]:
    """By the end of the name and the values of the labels, whose names are in the order of the alphabet."""
    return {
        (sample.name.removeprefix("recado_entry_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if "le" not in sample.labels
    }


async def test_what_is_passed_on_refused_and_broken_off_is_counted_without_saying_whose_it_is(
    two: Two, client: aiohttp.ClientSession
) -> None:
    organization_id, token = await two.a.organization()

    async def breaks_off(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"x" * 10)
        assert request.transport is not None
        request.transport.abort()
        return response

    body = b"x" * 3_000
    async with client.post(f"{two.url}/a/path", headers=bearer(token), data=body) as answer:
        assert answer.status == 200
    two.b.answers = breaks_off
    _, there = await two.b.organization()
    with pytest.raises(aiohttp.ClientPayloadError):
        async with client.get(f"{two.url}/numbers", headers=bearer(there)) as answer:
            await answer.read()
    two.b.answers = echo  # as the cell that refuses those that are nobody's

    async def is_refused() -> bool:
        async with client.get(f"{two.url}/numbers", headers=unknown()) as answer:
            return answer.status == 429

    await until(is_refused, "the share is used up", every=0.0)
    await two.b.stop()
    text = await scraped(client, two)
    found = figures(text)
    assert found["requests_total", "a", "2xx", "credential"] >= 1
    assert found["request_seconds_count", "a", "credential"] >= 1
    assert found["requests_total", "", "4xx", "credential"] == 1
    assert found["refused_total", "failed"] == 1
    assert found["broken_off_total", "b", "cell"] >= 1
    assert (found["body_bytes_total", "request"], found["body_pieces_total", "request"]) == (3_000, 1)
    assert found["body_bytes_total", "answer"] > 100
    assert (found["cells",], found["map_away",], found["connections",]) == (2, 0, 1)
    away = {(cell, part): found["cell_away", cell, part] for cell in "ab" for part in ("database", "service")}
    assert away == {("a", "database"): 0, ("a", "service"): 0, ("b", "database"): 0, ("b", "service"): 1}
    assert found["lookups_total", "a", "answered"] > 0
    assert found["requests_under_way", "a"] == 0
    assert not [shown for shown in (organization_id, token, "127.0.0.1", "path") if shown in text]
    done = promtool.run("check", "metrics", text=text)
    assert done.returncode == 0, done.stdout + done.stderr
    all_stand_in(text, of_entry=True, values={}, least=10)


async def test_a_database_and_a_map_that_are_away_are_told(
    two: Two, client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    two.urls["CELL_B"] = f"postgresql://nobody@127.0.0.1:{free_port()}/nowhere"
    await two.map.add(cell_of(two, "b", media="moved"))

    async def is_told() -> bool:
        found = figures(await scraped(client, two))
        return found["cell_away", "b", "database"] == 1 and found["lookups_total", "b", "failed"] > 0

    await until(is_told, "the database is away", every=0.1)
    monkeypatch.setattr(followed_map, "OLD_AFTER", -1.0)
    assert figures(await scraped(client, two))["map_away",] == 1


async def test_without_a_token_metrics_are_for_this_machine_alone(two: Two, client: aiohttp.ClientSession) -> None:
    for headers in ({"X-Forwarded-For": "127.0.0.1"}, {"Via": "1.1 proxy"}):
        async with client.get(f"{two.url}/metrics", headers=headers) as answer:
            assert (answer.status, (await answer.json())["code"]) == (401, "UNAUTHORIZED")
    async with client.post(f"{two.url}/metrics") as answer:
        assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")


async def test_with_a_token_metrics_are_for_who_shows_it(
    client: aiohttp.ClientSession, cell_urls: dict[str, str]
) -> None:
    async with between(dict(cell_urls), metrics_token="the-token") as guarded:
        for headers in ({}, bearer("another")):
            async with client.get(f"{guarded.url}/metrics", headers=headers) as answer:
                assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
        await scraped(client, guarded, **bearer("the-token"), **{"X-Forwarded-For": "203.0.113.7"})
