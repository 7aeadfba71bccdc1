"""Changes whose commit is not answered: the caller gets a 503, and whoever holds a copy reads the record again."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.http.conftest import ADMIN_TOKEN
from tests.http.test_numbers import available, register

from recado.domain.changes import NumberChanged, OrganizationChanged
from recado.domain.errors import Unavailable
from recado.storage.postgres import Database

Change = Callable[[Any, str], Awaitable[Any]]


@asynccontextmanager
async def answers_are_lost(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    transaction = Database.transaction

    @asynccontextmanager
    async def lost(database: Database) -> AsyncIterator[Any]:
        async with transaction(database) as connection:
            yield connection
        raise Unavailable

    with monkeypatch.context() as patch:
        patch.setattr(Database, "transaction", lost)
        yield


async def patches(api: Any, number_id: str) -> Any:
    return await api.patch(f"/numbers/{number_id}", {"rateLimit": {"perSecond": 7}})


async def connects(api: Any, number_id: str) -> Any:
    return await api.post(f"/numbers/{number_id}/connect")


async def deletes(api: Any, number_id: str) -> Any:
    return await api.delete(f"/numbers/{number_id}")


async def simulates(api: Any, number_id: str) -> Any:
    return await api.post(f"/v2/sandbox/numbers/{number_id}", {"qualityRating": "red"})


@pytest.mark.parametrize("change", [patches, connects, deletes, simulates])
async def test_a_change_of_a_number_whose_answer_is_lost_is_told(
    api: Any, monkeypatch: pytest.MonkeyPatch, change: Change
) -> None:
    number = await available(api, "test")
    api.changes.clear()
    async with answers_are_lost(monkeypatch):
        assert (await change(api, number["id"])).status == 503
    assert api.changes == [NumberChanged(number["organizationId"], "test", number["id"])]


async def test_a_verification_whose_answer_is_lost_is_told(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    number = await register(api, "test")
    api.clock.shift(2)
    api.changes.clear()
    async with answers_are_lost(monkeypatch):
        await api.refresh.run("test")
    assert api.changes == [NumberChanged(number["organizationId"], "test", number["id"])]
    assert (await api.get(f"/numbers/{number['id']}")).body["status"] == "available"


async def test_a_change_of_the_organization_whose_answer_is_lost_is_told(
    api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    organization_id = api.organizations[0].organization.id
    async with answers_are_lost(monkeypatch):
        quiet = await api.patch("/v2/organization", {"quietHours": {"start": "21:00", "end": "08:30"}})
        suspended = await api.patch(
            f"/v2/admin/organizations/{organization_id}", {"status": "suspended"}, token=ADMIN_TOKEN
        )
    assert (quiet.status, suspended.status) == (503, 503)
    assert api.changes == [OrganizationChanged(organization_id)] * 2


async def test_a_change_that_is_refused_is_not_told(api: Any) -> None:
    number = await available(api, "test")
    api.changes.clear()
    assert (await api.post(f"/numbers/{number['id']}/disconnect")).status == 409
    assert api.changes == []
