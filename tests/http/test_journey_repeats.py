"""A repeat under one key gets the answer of what was committed, whatever became of its first request (C6.2)."""

from typing import Any

import pytest
from tests.http.conftest import Answer, Api

from recado.domain.core.errors import Unavailable
from recado.storage.core.idempotency import IdempotencyKeys

JOURNEYS = "/v2/journeys"
KEY = {"Idempotency-Key": "one"}
END = {"id": "end", "tipo": "fim"}


async def active(api: Api) -> str:
    made = await api.post(JOURNEYS, {"name": "A", "gatilho": {"tipo": "api"}, "inicio": "end", "passos": [END]})
    journey_id = str(made.body["id"])
    assert (await api.post(f"{JOURNEYS}/{journey_id}/activate")).status == 200
    return journey_id


async def person(api: Api) -> str:
    return str((await api.post("/contacts", {"phone": "+5511987650001"})).body["id"])


@pytest.fixture
def answers_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """But by a commit: the process dies right after it, as it were."""

    async def away(*_: Any) -> None:
        raise Unavailable

    monkeypatch.setattr(IdempotencyKeys, "finish", away)


def repeated(first: Answer, second: Answer) -> bool:
    return second.headers.get("Idempotency-Replayed") == "true" and (first.status, first.body) == (
        second.status, second.body,
    )  # fmt: skip


@pytest.mark.parametrize("entered_before", [False, True])
async def test_a_repeat_of_an_entry_gets_its_answer(api: Api, answers_are_not_kept: None, entered_before: bool) -> None:
    journey_id, contact_id = await active(api), await person(api)
    way, body = f"{JOURNEYS}/{journey_id}/entries", {"contato": {"contactId": contact_id}}
    if entered_before:
        assert (await api.post(way, body)).status == 201
    first = await api.post(way, body, headers=KEY)
    assert first.body["entrou"] is not entered_before
    assert repeated(first, await api.post(way, body, headers=KEY))
    other = {"contato": {"externalId": "e-1"}}
    assert (await api.post(way, other, headers=KEY)).code == "IDEMPOTENCY_KEY_REUSED"
    assert await api.database.fetchval("select count(*) from executions") == 1


@pytest.mark.parametrize("what", ["duplicate", "versao"])
async def test_a_repeat_of_a_copy_or_a_version_gets_the_journey_that_was_made(
    api: Api, answers_are_not_kept: None, what: str
) -> None:
    journey_id = await active(api)
    first = await api.post(f"{JOURNEYS}/{journey_id}/{what}", headers=KEY)
    assert first.status == 201
    second = await api.post(f"{JOURNEYS}/{journey_id}/{what}", headers=KEY)
    assert repeated(first, second)
    assert second.etag == first.etag == '"1"'
    assert (await api.get(JOURNEYS)).body["total"] == 2
    assert first.body == (await api.get(f"{JOURNEYS}/{first.body['id']}")).body
