"""Webhook subscriptions over HTTP (C23.1, C23.2): what may be set, what is shown once, and what ends."""

import asyncio
import base64
from typing import Any

import pytest

from recado.domain.core.ids import WEBHOOK, is_id
from recado.domain.messages.changes import DeliveriesQueued, SubscriptionChanged

URL = "https://hooks.example.com/recado?shop=1"
NEW = {"url": URL, "events": ["message.sent", "message.failed"]}


async def make(api: Any, **fields: Any) -> Any:
    answer = await api.post("/webhooks", NEW | fields)
    assert answer.status == 201, answer.body
    return answer.body


async def test_a_subscription_is_made_and_its_secret_is_shown_once(api: Any) -> None:
    answer = await api.post("/webhooks", NEW | {"description": " Shop ", "retry": {"maxAttempts": 3}})
    assert answer.status == 201
    made = answer.body
    assert is_id(WEBHOOK, made["id"])
    assert len(base64.b64decode(made["secret"].removeprefix("whsec_"))) == 32
    assert made["secretCipher"].startswith("v1.test.")
    expected = {
        "url": URL,
        "events": NEW["events"],
        "status": "active",
        "secretVersion": 1,
        "headers": [],
        "description": "Shop",
        "retry": {"maxAttempts": 3, "backoffSeconds": 30},
        "includePii": False,
        "consecutiveFailures": 0,
        "createdById": api.organizations[0].keys["test"][0].id,
    }
    assert expected.items() <= made.items()
    read = await api.get(f"/webhooks/{made['id']}")
    assert read.etag == answer.etag == '"1"'
    assert made.pop("secret")
    assert read.body == made
    assert (await api.get("/webhooks")).body == {"items": [made], "total": 1}
    assert (await api.get("/webhooks", env="live")).body["total"] == 0
    assert (await api.get(f"/webhooks/{made['id']}", organization=1)).status == 404
    organization_id = api.organizations[0].organization.id
    assert api.changes == [
        SubscriptionChanged(organization_id, "test", made["id"]),
        DeliveriesQueued(((organization_id, made["id"]),)),
    ]


async def test_lists_are_filtered_by_status_and_by_who_takes_an_event(api: Any) -> None:
    sent, every = await make(api), await make(api, events=["*"])
    await api.patch(f"/webhooks/{sent['id']}", {"status": "paused"})

    async def ids(query: str) -> list[str]:
        return [item["id"] for item in (await api.get(f"/webhooks?{query}")).body["items"]]

    assert await ids("event=message.sent") == [every["id"], sent["id"]]
    assert await ids("event=apikey.created") == [every["id"]]
    assert await ids("status=paused") == [sent["id"]]
    assert (await api.get("/webhooks?event=*")).status == 400
    assert (await api.get("/webhooks?status=ended")).status == 400


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"events": []}, "/events"),
        ({"events": ["message.gone"]}, "/events/0"),
        ({"events": ["*", "message.sent"]}, "/events"),
        ({"events": ["journey.action"]}, "/events/0"),
        ({"events": ["message.sent"] * 34}, "/events"),
        ({"description": "x" * 201}, "/description"),
        ({"retry": {"maxAttempts": 16}}, "/retry/maxAttempts"),
        ({"retry": {"backoffSeconds": 0}}, "/retry/backoffSeconds"),
        ({"retry": {"backoffSeconds": 3601}}, "/retry/backoffSeconds"),
        ({"headers": [{"key": "Host", "value": "x"}]}, "/headers/0/key"),
        ({"headers": [{"key": "content-type", "value": "x"}]}, "/headers/0/key"),
        ({"headers": [{"key": "Transfer-Encoding", "value": "x"}]}, "/headers/0/key"),
        ({"headers": [{"key": "Webhook-Id", "value": "x"}]}, "/headers/0/key"),
        ({"headers": [{"key": "User-Agent", "value": "x"}]}, "/headers/0/key"),
        ({"headers": [{"key": "X-SVC-Signature", "value": "x"}]}, "/headers/0/key"),
        ({"headers": [{"key": "X Y", "value": "x"}]}, "/headers/0/key"),
        ({"headers": [{"key": "X-Y", "value": "a\r\nB: c"}]}, "/headers/0/value"),
        ({"headers": [{"key": "X-Y", "value": "é"}]}, "/headers/0/value"),
        ({"headers": [{"key": "X-Y", "value": "x" * 1025}]}, "/headers/0/value"),
        ({"headers": [{"key": "X-Y", "value": "1"}, {"key": "x-y", "value": "2"}]}, "/headers"),
        ({"headers": [{"key": f"X-{n}", "value": "1"} for n in range(11)]}, "/headers"),
        ({"headers": [{"key": "X-Token", "value": "********"}]}, "/headers/0/value"),
        ({"includePii": "yes"}, "/includePii"),
        ({"url": ""}, "/url"),
    ],
)
async def test_what_cannot_be_subscribed_is_refused_by_its_place(api: Any, fields: Any, path: str) -> None:
    answer = await api.post("/webhooks", NEW | fields)
    assert (answer.status, answer.code) == (422, "VALIDATION_ERROR")
    assert [error["path"] for error in answer.body["errors"]] == [path]
    assert (await api.get("/webhooks")).body["total"] == 0


@pytest.mark.parametrize(
    "url",
    [
        "https://private.example.com/", "https://unknown.example.org/", "https://10.0.0.1/", "https://[::1]/",
        "https://localhost/", "https://user@hooks.example.com/", "https://hooks.example.com:22/", "ftp://x.example.com/",
        "https://2130706433/", "https://0177.0.0.1/", "https://0xa.1/", "https://10.1/", "https://[::ffff:10.0.0.1]/",
        "https://[64:ff9b::a9fe:a9fe]/", "https://[2002:a00:1::]/", "https://169.254.169.254/", "https://①⓪.⓪.⓪.①/",
    ],
)  # fmt: skip
async def test_urls_that_are_not_of_the_open_internet_are_refused_everywhere(api: Any, url: str) -> None:
    answer = await api.post("/webhooks", NEW | {"url": url})
    assert (answer.status, answer.code) == (422, "URL_NOT_ALLOWED")
    assert answer.body["errors"][0]["path"] == "/url"
    made = await make(api)
    assert (await api.patch(f"/webhooks/{made['id']}", {"url": url})).code == "URL_NOT_ALLOWED"


async def test_plain_http_is_for_test(api: Any) -> None:
    plain = NEW | {"url": "http://hooks.example.com/"}
    assert (await api.post("/webhooks", plain)).status == 201
    assert (await api.post("/webhooks", plain, env="live")).code == "URL_NOT_ALLOWED"


async def test_credentials_in_headers_are_masked_and_kept_by_their_mask(api: Any) -> None:
    headers = [
        {"key": "Authorization", "value": "Basic abc"},
        {"key": "X-Api-Key", "value": "k"},
        {"key": "X-Shop", "value": "7"},
    ]
    made = await make(api, headers=headers)
    masked = [{**header, "value": "********"} for header in headers[:2]] + headers[2:]
    assert made["headers"] == masked
    stored = await api.database.fetchval("select headers_cipher from webhook_subscriptions")
    assert "Basic" not in stored
    path = f"/webhooks/{made['id']}"
    same = await api.patch(path, {"headers": masked})
    assert same.etag == '"1"'
    changed = await api.patch(path, {"headers": [*masked[:1], {"key": "X-Shop", "value": "8"}]})
    assert changed.body["headers"] == [masked[0], {"key": "X-Shop", "value": "8"}]
    # A body that is wrong is told of before a version or a state that does not fit (C2.6).
    lost = await api.patch(path, {"headers": masked[1:2]}, headers={"If-Match": '"1"'})
    assert [error["path"] for error in lost.body["errors"]] == ["/headers/0/value"]
    assert (await api.patch(path, {"headers": None})).body["headers"] == []


async def test_credentials_in_headers_go_to_no_other_origin_unless_they_are_given_anew(api: Any) -> None:
    """Whoever may change a subscription may still not read them (C23.1)."""
    headers = [{"key": "Authorization", "value": "Basic abc"}, {"key": "X-Shop", "value": "7"}]
    made = await make(api, headers=headers)
    path = f"/webhooks/{made['id']}"
    elsewhere = {"url": "https://other.example.com/recado"}
    for origin in ("https://other.example.com/", "https://hooks.example.com:8443/", "http://hooks.example.com/"):
        refused = await api.patch(path, {"url": origin})
        assert (refused.status, refused.code) == (422, "VALIDATION_ERROR")
        assert [error["path"] for error in refused.body["errors"]] == ["/headers"]
    kept = await api.patch(path, elsewhere | {"headers": made["headers"]})
    assert [error["path"] for error in kept.body["errors"]] == ["/headers/0/value"]
    assert (await api.get(path)).body == {name: made[name] for name in made if name != "secret"}

    assert (await api.patch(path, {"url": "https://HOOKS.example.com:443/new"})).body["headers"] == made["headers"]
    moved = await api.patch(path, elsewhere | {"headers": headers})
    assert (moved.body["url"], moved.body["headers"]) == (elsewhere["url"], made["headers"])
    assert (await api.patch(path, {"url": URL, "headers": headers[1:]})).body["headers"] == headers[1:]
    assert (await api.patch(path, elsewhere)).body["headers"] == headers[1:]


async def test_phones_in_the_clear_need_the_scope_wherever_they_would_go(api: Any) -> None:
    low = await api.key("webhooks:read", "webhooks:write")
    refused = await api.post("/webhooks", NEW | {"includePii": True}, token=low)
    assert (refused.code, refused.body["meta"]) == ("SCOPE_REQUIRED", {"requiredScope": "pii:full"})
    made = await make(api, includePii=True)
    path = f"/webhooks/{made['id']}"
    assert (await api.patch(path, {"url": "https://other.example.com/"}, token=low)).code == "SCOPE_REQUIRED"
    assert (await api.patch(path, {"description": "mine"}, token=low)).status == 200
    assert (await api.patch(path, {"includePii": False}, token=low)).status == 200
    wrong = {"includePii": True, "url": "https://10.0.0.1/"}
    assert (await api.patch(path, wrong, token=low, headers={"If-Match": '"1"'})).code == "SCOPE_REQUIRED"
    audit = (await api.get("/v2/audit?action=pii_full.grant")).body["items"]
    assert [entry["targetId"] for entry in audit] == [made["id"]]


async def test_a_patch_changes_what_it_names_and_raises_the_version(api: Any) -> None:
    made = await make(api, description="first", headers=[{"key": "X-Shop", "value": "7"}])
    path = f"/webhooks/{made['id']}"
    changed = await api.patch(
        path, {"events": ["*"], "retry": {"backoffSeconds": 5}, "description": None}, headers={"If-Match": '"1"'}
    )
    assert (changed.status, changed.etag) == (200, '"2"')
    assert changed.body["events"] == ["*"]
    assert changed.body["retry"] == {"maxAttempts": 8, "backoffSeconds": 5}
    assert "description" not in changed.body
    assert changed.body["headers"] == made["headers"]
    assert (await api.patch(path, {}, headers={"If-Match": '"1"'})).status == 412
    assert (await api.patch(path, {})).etag == '"2"'
    for wrong in ({"url": None}, {"events": None}, {"status": "failing"}, {"status": None}, {"retry": None}):
        assert (await api.patch(path, wrong)).status == 422


async def test_a_subscription_is_paused_and_resumed(api: Any) -> None:
    path = f"/webhooks/{(await make(api))['id']}"
    await api.database.execute("update webhook_subscriptions set consecutive_failures = 5")
    assert (await api.patch(path, {"status": "active"})).etag == '"1"'
    paused = await api.patch(path, {"status": "paused"})
    assert (paused.body["status"], paused.body["consecutiveFailures"]) == ("paused", 5)
    assert (await api.patch(path, {"status": "active"})).body["consecutiveFailures"] == 0


async def test_what_failures_revoked_can_be_resumed_and_what_was_deleted_cannot(api: Any) -> None:
    made = await make(api)
    path = f"/webhooks/{made['id']}"
    await api.database.execute("update webhook_subscriptions set status = 'revoked', consecutive_failures = 40")
    assert (await api.patch(path, {"status": "paused"})).code == "INVALID_STATE"
    assert (await api.patch(path, {"status": "active"})).body["status"] == "active"
    assert (await api.delete(path)).status == 204
    assert (await api.delete(path)).status == 204
    assert (await api.get(path)).body["status"] == "revoked"
    for change in ({"status": "active"}, {"description": "x"}):
        refused = await api.patch(path, change)
        assert (refused.status, refused.code, refused.body["meta"]) == (409, "INVALID_STATE", {"status": "revoked"})
    assert (await api.post(f"{path}/rotate")).code == "INVALID_STATE"
    assert (await api.post(f"{path}/test")).code == "INVALID_STATE"


async def test_a_rotation_shows_a_new_secret_and_the_former_signs_for_the_grace(api: Any) -> None:
    made = await make(api)
    path = f"/webhooks/{made['id']}"
    rotated = await api.post(f"{path}/rotate", headers={"Idempotency-Key": "once"})
    assert (rotated.status, rotated.body["secretVersion"], rotated.etag) == (200, 2, '"2"')
    assert rotated.body["secret"] != made["secret"]
    row = await api.database.fetchrow("select * from webhook_subscriptions")
    assert row["previous_secret_cipher"] == made["secretCipher"]
    again = await api.post(f"{path}/rotate", headers={"Idempotency-Key": "once"})
    assert again.headers["Idempotency-Replayed"] == "true"
    assert "secret" not in again.body
    at_once = await api.post(f"{path}/rotate", {"graceHours": 0})
    assert at_once.body["secretVersion"] == 3
    row = await api.database.fetchrow("select * from webhook_subscriptions")
    assert (row["previous_secret_cipher"], row["previous_secret_until"]) == (None, None)
    for wrong in (-1, 169, 1.5, "24"):
        assert (await api.post(f"{path}/rotate", {"graceHours": wrong})).status == 422


async def test_an_environment_holds_twenty(api: Any) -> None:
    made = [await make(api) for _ in range(20)]
    full = await api.post("/webhooks", NEW)
    assert (full.status, full.code, full.body["meta"]) == (409, "LIMIT_REACHED", {"limit": 20})
    assert (await api.post("/webhooks", NEW, env="live")).status == 201
    await api.delete(f"/webhooks/{made[0]['id']}")
    await make(api)


async def test_who_races_for_the_last_places_gets_no_more_than_there_are(api: Any) -> None:
    answers = await asyncio.gather(*(api.post("/webhooks", NEW) for _ in range(24)))
    assert sorted(answer.status for answer in answers) == [201] * 20 + [409] * 4


async def test_every_change_is_in_the_audit_without_the_address(api: Any) -> None:
    made = await make(api)
    path = f"/webhooks/{made['id']}"
    await api.patch(path, {"description": "x", "url": "https://other.example.com/"})
    await api.post(f"{path}/rotate")
    await api.delete(path)
    entries = (await api.get(f"/v2/audit?targetId={made['id']}")).body["items"]
    actions = ["webhook.delete", "webhook.rotate", "webhook.update", "webhook.create"]
    assert [entry["action"] for entry in entries] == actions
    assert entries[2]["details"] == {"fields": ["description", "url"]}
    assert "example.com" not in str(entries)


async def test_headers_that_were_altered_are_never_answered_and_are_in_the_audit(api: Any) -> None:
    header = [{"key": "Authorization", "value": "hush"}]
    mine, other = [(await api.post("/webhooks", NEW | {"headers": header})).body["id"] for _ in range(2)]
    await api.database.execute(
        "update webhook_subscriptions w set headers_cipher = o.headers_cipher from webhook_subscriptions o "
        "where w.id = $1 and o.id = $2",
        mine,
        other,
    )
    one = "select * from webhook_subscriptions where id = $1"
    stored = await api.database.fetchrow(one, mine)

    answers = [
        await api.get(f"/webhooks/{mine}"),
        await api.get("/webhooks"),
        await api.patch(f"/webhooks/{mine}", {"description": "x"}),
        await api.post(f"/webhooks/{mine}/rotate", {}),
    ]

    assert [(answer.status, answer.code) for answer in answers] == [(500, "INTERNAL_ERROR")] * 4
    assert await api.database.fetchrow(one, mine) == stored
    rows = await api.database.fetch("select target_id from audit where action = 'record.tampered'")
    assert [row["target_id"] for row in rows] == [mine] * 4
