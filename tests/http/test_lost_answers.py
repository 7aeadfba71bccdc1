"""Changes whose commit is not answered: the caller gets a 503, and whoever holds a copy reads the record again."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from tests.http.conftest import ADMIN_TOKEN
from tests.http.people import person, session
from tests.http.registering import available, register
from tests.http.template_drafts import create, live_number, set_status
from tests.http.webhooks.conftest import emit, listed
from tests.waiting import until

from recado.channels.core.provider import ProviderTemplate
from recado.domain.core.errors import Unavailable
from recado.domain.core.timestamps import format_timestamp
from recado.domain.messages.changes import NumberChanged, OrganizationChanged, SubscriptionChanged, TemplateChanged
from recado.http.wire.deadlines import WRITE_SECONDS, Deadlines
from recado.storage.core.connections.postgres import Database
from recado.storage.core.idempotency import IdempotencyKeys
from recado.storage.senders import numbers

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


async def test_a_change_that_is_committed_when_its_caller_gives_up_is_told(
    api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = await register(api, "test")
    api.clock.shift(2)
    committed, transaction = asyncio.Event(), Database.transaction

    @asynccontextmanager
    async def lingers(database: Database) -> AsyncIterator[Any]:
        async with transaction(database) as connection:
            yield connection
        committed.set()
        await asyncio.get_running_loop().create_future()

    found = await numbers.get(api.database, number["organizationId"], "test", number["id"])
    api.changes.clear()
    with monkeypatch.context() as patch:
        patch.setattr(Database, "transaction", lingers)
        checking = asyncio.create_task(api.refresh.check(found))
        await committed.wait()
        checking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await checking
    assert api.changes == [NumberChanged(number["organizationId"], "test", number["id"])]
    assert (await api.get(f"/numbers/{number['id']}")).body["status"] == "available"


async def edits_template(api: Any, path: str, token: str) -> Any:
    return await api.patch(path, {"components": [{"type": "BODY", "payload": {"text": "Hi."}}]})


async def submits_template(api: Any, path: str, token: str) -> Any:
    return await api.post(f"{path}/submit", token=token)


async def deletes_template(api: Any, path: str, token: str) -> Any:
    return await api.delete(path)


async def decides_template(api: Any, path: str, token: str) -> Any:
    return await api.post(path.replace("/v2/", "/v2/sandbox/"), {"status": "approved"})


def changed(template: Any, env: str = "test") -> TemplateChanged:
    return TemplateChanged(template["organizationId"], env, template["numberId"], template["id"])


@pytest.mark.parametrize("change", [edits_template, submits_template, deletes_template, decides_template])
async def test_a_change_of_a_template_whose_answer_is_lost_is_told(
    api: Any, monkeypatch: pytest.MonkeyPatch, change: Callable[[Any, str, str], Awaitable[Any]]
) -> None:
    template, token = await create(api), await session(api)
    api.changes.clear()
    async with answers_are_lost(monkeypatch):
        assert (await change(api, f"/v2/templates/{template['id']}", token)).status == 503
    assert api.changes == [changed(template)]


async def test_a_step_of_a_review_whose_answer_is_lost_is_told(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    template = await create(api)
    await set_status(api, template, "submitted")
    api.changes.clear()
    async with answers_are_lost(monkeypatch):
        await api.review.run("test")
    assert api.changes == [changed(template)]
    assert (await api.get(f"/v2/templates/{template['id']}")).body["status"] == "pending"


async def test_templates_that_are_brought_over_are_told_when_the_answer_is_lost(
    api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    number_id = await live_number(api)
    theirs = ProviderTemplate(
        provider_template_id="p1", name="hi", language="pt-BR", category="utility", status="approved",
        components=[{"type": "BODY", "payload": {"text": "Hi."}}],
    )  # fmt: skip
    api.providers["live"].templates = [theirs]
    api.changes.clear()
    async with answers_are_lost(monkeypatch):
        await api.post("/v2/templates/sync", {"numberId": number_id}, env="live")
        await api.sync.settled()
    (template,) = (await api.get("/v2/templates", env="live")).body["items"]
    assert api.changes == [changed(template, "live")]


async def makes_webhook(api: Any, path: str) -> Any:
    return await api.post("/webhooks", {"url": "http://127.0.0.1:1/", "events": ["*"]})


async def edits_webhook(api: Any, path: str) -> Any:
    return await api.patch(path, {"status": "paused"})


async def rotates_webhook(api: Any, path: str) -> Any:
    return await api.post(f"{path}/rotate")


async def deletes_webhook(api: Any, path: str) -> Any:
    return await api.delete(path)


@pytest.mark.parametrize("change", [makes_webhook, edits_webhook, rotates_webhook, deletes_webhook])
async def test_a_change_of_a_subscription_whose_answer_is_lost_is_told(
    api: Any, monkeypatch: pytest.MonkeyPatch, change: Change
) -> None:
    made = (await makes_webhook(api, "")).body
    api.changes.clear()
    async with answers_are_lost(monkeypatch):
        assert (await change(api, f"/webhooks/{made['id']}")).status == 503
    newest = max(item["id"] for item in (await api.get("/webhooks")).body["items"])
    assert api.changes == [SubscriptionChanged(made["organizationId"], "test", newest)]


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


async def test_a_key_that_is_revoked_counts_no_more_though_the_answer_is_lost(
    api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = (await api.post("/v2/api-keys", {"name": "Shop", "scopes": ["contacts:read"]})).body
    assert (await api.get("/contacts", token=made["token"])).status == 200
    async with answers_are_lost(monkeypatch):
        assert (await api.delete(f"/v2/api-keys/{made['id']}")).status == 503
    assert (await api.get("/contacts", token=made["token"])).code == "API_KEY_REVOKED"


@pytest.mark.parametrize("way", ["disabled", "signed out"])
async def test_a_session_that_is_ended_counts_no_more_though_the_answer_is_lost(
    api: Any, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    account, owner = await person(api, "operator"), await session(api)
    token = await session(api, account)
    assert (await api.get("/contacts", token=token)).status == 200
    path, by = (f"/v2/accounts/{account.id}", owner) if way == "disabled" else ("/v2/sessions/current", token)
    async with answers_are_lost(monkeypatch):
        assert (await api.delete(path, token=by)).status == 503
    assert (await api.get("/contacts", token=token)).status == 401


async def test_a_change_that_is_refused_is_not_told(api: Any) -> None:
    number = await available(api, "test")
    api.changes.clear()
    assert (await api.post(f"/numbers/{number['id']}/disconnect")).status == 409
    assert api.changes == []


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v2/wallet/top-ups", {"coins": 1_000}),
        ("/v2/companies", {"nome": "Padaria Central"}),
        ("/v2/segments", {"name": "All", "filters": [{"field": "tag", "operator": "is", "value": "VIP"}]}),
        ("/v2/lists", {"name": "Spring"}),
        ("/webhooks", {"url": "https://hooks.example.com/", "events": ["*"]}),
    ],
)
async def test_what_was_made_is_not_made_once_more_though_the_answer_is_lost(
    api: Any, monkeypatch: pytest.MonkeyPatch, path: str, body: Any
) -> None:
    how: dict[str, Any] = {"headers": {"Idempotency-Key": "once"}}
    before = (await api.get(path)).body["total"]
    async with answers_are_lost(monkeypatch):
        assert (await api.post(path, body, **how)).status == 503
    assert (await api.post(path, body, **how)).code == "IDEMPOTENCY_IN_PROGRESS"
    api.clock.shift(61)
    repeated = await api.post(path, body, **how)
    assert (repeated.status, repeated.code) == (409, "CONFLICT")
    assert "look for what it made" in repeated.body["detail"]
    assert (await api.get(path)).body["total"] == before + 1


@pytest.mark.parametrize("of", ["a period", "one delivery"])
async def test_events_are_not_replayed_once_more_though_the_answer_is_lost(
    api: Any, monkeypatch: pytest.MonkeyPatch, of: str
) -> None:
    once = {"url": "http://127.0.0.1:1/", "events": ["*"], "retry": {"maxAttempts": 1}}
    path = f"/webhooks/{(await api.post('/webhooks', once)).body['id']}"
    await emit(api)
    [first] = await listed(api, path, "dropped")
    now = api.clock.now()
    period = {"from": format_timestamp(now - timedelta(hours=1)), "to": format_timestamp(now + timedelta(hours=1))}
    route, body = ("/replay", period) if of == "a period" else (f"/deliveries/{first['id']}/replay", None)
    how: dict[str, Any] = {"headers": {"Idempotency-Key": "once"}}

    async with answers_are_lost(monkeypatch):
        assert (await api.post(f"{path}{route}", body, **how)).status == 503

    again = next(each["id"] for each in await listed(api, path, "dropped", 2) if each["id"] != first["id"])
    for later in (0, 61, 3600):
        api.clock.shift(later)
        repeated = await api.post(f"{path}{route}", body, **how)
        assert (repeated.status, repeated.headers.get("Idempotency-Replayed")) == (202, "true")
        assert repeated.body == {"queued": 1} or repeated.body["id"] == again
    assert len((await api.get(f"{path}/deliveries")).body["items"]) == 2


async def works(api: Any, token: str) -> bool:
    return bool((await api.get("/v2/organization", token=token)).status == 200)


async def rotated_unheard(api: Any, monkeypatch: pytest.MonkeyPatch, path: str, **how: Any) -> None:
    """A rotation that is committed and answered with 503; its key can be repeated."""
    async with answers_are_lost(monkeypatch):
        assert (await api.post(path, **how)).status == 503
    assert (await api.post(path, **how)).code == "IDEMPOTENCY_IN_PROGRESS"
    api.clock.shift(61)


ONCE: dict[str, Any] = {"headers": {"Idempotency-Key": "rotate-november"}}


async def test_a_repeated_rotation_of_a_key_replaces_the_token_that_nobody_saw(
    api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = (await api.post("/v2/api-keys", {"name": "Shop", "scopes": ["org:read"]})).body
    path = f"/v2/api-keys/{made['id']}"
    await rotated_unheard(api, monkeypatch, f"{path}/rotate", **ONCE)
    unseen = (await api.get(path)).body
    repeated = await api.post(f"{path}/rotate", **ONCE)
    assert (repeated.status, repeated.body["prefix"]) == (200, repeated.body["token"][:13])
    for field in ("rotatedAt", "previousValidUntil"):
        assert repeated.body[field] == unseen[field]
    assert [await works(api, token) for token in (made["token"], repeated.body["token"])] == [True, True]
    tokens = await api.database.fetchval("select count(*) from api_key_tokens where key_id = $1", made["id"])
    assert tokens == 2
    again = await api.post(f"{path}/rotate", **ONCE)
    assert (again.headers["Idempotency-Replayed"], "token" in again.body) == ("true", False)
    api.clock.shift(86_400)
    assert [await works(api, token) for token in (made["token"], repeated.body["token"])] == [False, True]


async def test_a_rotation_whose_repeats_are_lost_too_is_repeated_once_more(
    api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = (await api.post("/v2/api-keys", {"name": "Shop", "scopes": ["org:read"]})).body
    path = f"/v2/api-keys/{made['id']}/rotate"
    for _ in range(3):
        await rotated_unheard(api, monkeypatch, path, **ONCE)
    repeated = await api.post(path, **ONCE)
    assert [await works(api, token) for token in (made["token"], repeated.body["token"])] == [True, True]


async def test_a_repeated_rotation_leaves_the_token_of_a_later_one(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = (await api.post("/v2/api-keys", {"name": "Shop", "scopes": ["org:read"]})).body
    path = f"/v2/api-keys/{made['id']}/rotate"
    await rotated_unheard(api, monkeypatch, path, **ONCE)
    later = (await api.post(path)).body
    for _ in range(2):  # nor does the refusal free the key
        repeated = await api.post(path, **ONCE)
        assert (repeated.status, repeated.code) == (409, "CONFLICT")
        assert await works(api, later["token"])
        api.clock.shift(61)


async def test_a_repeated_rotation_of_a_webhook_replaces_the_secret_that_nobody_saw(
    api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = (await makes_webhook(api, "")).body
    path = f"/webhooks/{made['id']}"
    how: dict[str, Any] = {"headers": ONCE["headers"] | {"If-Match": '"1"'}}
    await rotated_unheard(api, monkeypatch, f"{path}/rotate", **how)
    unseen = await api.database.fetchrow("select * from webhook_subscriptions where id = $1", made["id"])
    repeated = await api.post(f"{path}/rotate", **how)
    assert (repeated.status, repeated.body["secretVersion"], repeated.etag) == (200, 2, '"3"')
    assert repeated.body["secret"] != made["secret"]
    row = await api.database.fetchrow("select * from webhook_subscriptions where id = $1", made["id"])
    assert row["secret_cipher"] == repeated.body["secretCipher"] != unseen["secret_cipher"]
    assert row["previous_secret_cipher"] == made["secretCipher"]
    assert row["previous_secret_until"] == unseen["previous_secret_until"]


async def test_a_repeated_rotation_leaves_the_secret_of_a_later_one(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = (await makes_webhook(api, "")).body
    path = f"/webhooks/{made['id']}"
    await rotated_unheard(api, monkeypatch, f"{path}/rotate", **ONCE)
    later = (await api.post(f"{path}/rotate")).body
    repeated = await api.post(f"{path}/rotate", **ONCE)
    assert (repeated.status, repeated.code) == (409, "CONFLICT")
    assert (await api.get(path)).body["secretCipher"] == later["secretCipher"]


async def key_to_rotate(api: Any) -> tuple[str, str]:
    made = (await api.post("/v2/api-keys", {"name": "Shop", "scopes": ["org:read"]})).body
    return f"/v2/api-keys/{made['id']}/rotate", "token"


async def webhook_to_rotate(api: Any) -> tuple[str, str]:
    return f"/webhooks/{(await makes_webhook(api, '')).body['id']}/rotate", "secret"


ROTATED = pytest.mark.parametrize("of", [key_to_rotate, webhook_to_rotate])
Rotated = Callable[[Any], Awaitable[tuple[str, str]]]


async def shows_another(api: Any, path: str, field: str) -> None:
    """The repeat of a rotation that was not answered: refused for a minute, then answered with what is shown once."""
    assert (await api.post(path, **ONCE)).code == "IDEMPOTENCY_IN_PROGRESS"
    api.clock.shift(61)
    repeated = await api.post(path, **ONCE)
    assert (repeated.status, field in repeated.body) == (200, True)
    again = await api.post(path, **ONCE)
    assert (again.headers["Idempotency-Replayed"], field in again.body) == ("true", False)


@ROTATED
@pytest.mark.parametrize("stored", [False, True])
async def test_a_rotation_is_not_answered_whose_answer_is_not_known_to_be_kept(
    api: Any, monkeypatch: pytest.MonkeyPatch, of: Rotated, stored: bool
) -> None:
    path, field = await of(api)
    finish = IdempotencyKeys.finish

    async def unknown(*arguments: Any) -> None:
        if stored:
            await finish(*arguments)
        raise Unavailable

    with monkeypatch.context() as patch:
        patch.setattr(IdempotencyKeys, "finish", unknown)
        assert (await api.post(path, **ONCE)).status == 503  # else the repeat would end what was shown
    await shows_another(api, path, field)


@ROTATED
@pytest.mark.parametrize("stored", [False, True])
async def test_a_rotation_whose_time_ends_while_its_answer_is_kept_is_repeated_with_another(
    api: Any, monkeypatch: pytest.MonkeyPatch, of: Rotated, stored: bool
) -> None:
    path, field = await of(api)
    asked, goes_on, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
    finish, begin = IdempotencyKeys.finish, Deadlines.begin
    counted: list[Deadlines] = []

    async def late(*arguments: Any) -> None:
        if stored:
            await finish(*arguments)
        asked.set()
        await goes_on.wait()
        await finish(*arguments)
        ended.set()

    def counts(deadlines: Deadlines, *arguments: Any) -> None:
        counted.append(deadlines)
        begin(deadlines, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(IdempotencyKeys, "finish", late)
        patch.setattr(Deadlines, "begin", counts)
        first = asyncio.create_task(api.post(path, **ONCE))
        await asked.wait()
        api.clock.shift(WRITE_SECONDS + 1)
        counted[0].hurry(WRITE_SECONDS)  # it looks at once at what is overdue
        assert (await first).status == 503
        goes_on.set()
        await ended.wait()
    kept = "select count(*) from idempotency where status is not null"
    await until(lambda: nothing_is(api.database, kept), "the answer is taken back")
    await shows_another(api, path, field)


async def nothing_is(database: Database, counting: str) -> bool:
    return bool(await database.fetchval(counting) == 0)
