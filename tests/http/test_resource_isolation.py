"""Every operation on resources at once: who may call it, and that tenants and environments never meet (C2.2, C3)."""

from typing import Any

import pytest
from tests.http.people import person, session
from tests.refusals import comparable

from recado.domain.core.ids import MEDIA
from recado.http.api.route import Access, Route
from recado.storage.media import media
from recado.storage.media.media import KEPT, KeptMedia

OPERATIONS = [
    ("GET", "/v2/organization"),
    ("PATCH", "/v2/organization"),
    ("GET", "/v2/api-keys"),
    ("POST", "/v2/api-keys"),
    ("GET", "/v2/api-keys/{id}"),
    ("PATCH", "/v2/api-keys/{id}"),
    ("POST", "/v2/api-keys/{id}/rotate"),
    ("DELETE", "/v2/api-keys/{id}"),
    ("GET", "/v2/audit"),
    ("GET", "/v2/ops/numbers"),
    ("GET", "/v2/ops/numbers/{id}"),
    ("POST", "/v2/ops/numbers/{id}/pause"),
    ("POST", "/v2/ops/numbers/{id}/resume"),
    ("GET", "/v2/ops/actors"),
    ("POST", "/v2/ops/actors/restart"),
    ("GET", "/v2/ops/webhooks"),
    ("GET", "/v2/ops/providers"),
    ("GET", "/v2/ops/stream"),
    ("GET", "/v2/accounts"),
    ("POST", "/v2/accounts"),
    ("PATCH", "/v2/accounts/{id}"),
    ("DELETE", "/v2/accounts/{id}"),
    ("POST", "/v2/accounts/{id}/invite"),
    ("DELETE", "/v2/sessions/current"),
    ("POST", "/v2/contacts/{id}/documentos/revelar"),
    ("GET", "/numbers"),
    ("POST", "/numbers"),
    ("GET", "/numbers/{id}"),
    ("PATCH", "/numbers/{id}"),
    ("DELETE", "/numbers/{id}"),
    ("POST", "/numbers/{id}/connect"),
    ("POST", "/numbers/{id}/disconnect"),
    ("GET", "/numbers/{id}/health"),
    ("GET", "/numbers/{id}/usage"),
    ("GET", "/numbers/{id}/usage/timeseries"),
    ("POST", "/numbers/{id}/media"),
    ("POST", "/numbers/{id}/media/binary"),
    ("POST", "/v2/social/accounts/{id}/media"),
    ("POST", "/v2/social/accounts/{id}/media/binary"),
    ("GET", "/media/{mediaId}"),
    ("GET", "/contacts"),
    ("POST", "/contacts"),
    ("POST", "/contacts/opt-out"),
    ("GET", "/contacts/fields"),
    ("GET", "/contacts/{id}"),
    ("PATCH", "/contacts/{id}"),
    ("DELETE", "/contacts/{id}"),
    ("GET", "/contacts/{id}/consents"),
    ("GET", "/v2/debtor-groups"),
    ("POST", "/contacts/import"),
    ("GET", "/contacts/imports/{id}"),
    ("GET", "/v2/companies"),
    ("POST", "/v2/companies"),
    ("GET", "/v2/companies/{id}"),
    ("PATCH", "/v2/companies/{id}"),
    ("DELETE", "/v2/companies/{id}"),
    ("GET", "/v2/companies/{id}/contacts"),
    ("GET", "/v2/events"),
    ("POST", "/v2/events"),
    ("GET", "/v2/exports/chatapp"),
    ("GET", "/v2/exports/sms"),
    ("GET", "/v2/exports/rcs"),
    ("GET", "/v2/exports/email"),
    ("GET", "/v2/lists"),
    ("POST", "/v2/lists"),
    ("GET", "/v2/lists/{id}"),
    ("PATCH", "/v2/lists/{id}"),
    ("DELETE", "/v2/lists/{id}"),
    ("POST", "/v2/lists/{id}/members"),
    ("PUT", "/v2/lists/{id}/members"),
    ("POST", "/v2/lists/{id}/members/remove"),
    ("GET", "/v2/segments"),
    ("POST", "/v2/segments"),
    ("POST", "/v2/segments/preview"),
    ("GET", "/v2/segments/{segmentId}"),
    ("PATCH", "/v2/segments/{segmentId}"),
    ("DELETE", "/v2/segments/{segmentId}"),
    ("GET", "/v2/segments/{segmentId}/contacts"),
    ("GET", "/v2/templates"),
    ("POST", "/v2/templates"),
    ("POST", "/v2/templates/sync"),
    ("GET", "/v2/templates/{id}"),
    ("PATCH", "/v2/templates/{id}"),
    ("DELETE", "/v2/templates/{id}"),
    ("POST", "/v2/templates/{id}/submit"),
    ("GET", "/v2/journeys"),
    ("POST", "/v2/journeys"),
    ("GET", "/v2/journeys/{id}"),
    ("PUT", "/v2/journeys/{id}"),
    ("POST", "/v2/journeys/{id}/duplicate"),
    ("POST", "/v2/journeys/{id}/versao"),
    ("POST", "/v2/journeys/{id}/activate"),
    ("POST", "/v2/journeys/{id}/pause"),
    ("POST", "/v2/journeys/{id}/archive"),
    ("POST", "/v2/journeys/{id}/entries"),
    ("POST", "/v2/journeys/{id}/simulate"),
    ("POST", "/v2/journeys/{id}/test"),
    ("GET", "/v2/journeys/{id}/executions"),
    ("GET", "/v2/journeys/{id}/executions/{executionId}"),
    ("GET", "/v2/journeys/{id}/steps"),
    ("POST", "/v2/journeys/{id}/executions/{executionId}/cancel"),
    ("GET", "/v2/origin-links"),
    ("POST", "/v2/origin-links"),
    ("PATCH", "/v2/origin-links/{id}"),
    ("DELETE", "/v2/origin-links/{id}"),
    ("GET", "/v2/email/suppressions"),
    ("POST", "/v2/email/suppressions"),
    ("DELETE", "/v2/email/suppressions/{id}"),
    ("GET", "/v2/flows"),
    ("POST", "/v2/flows"),
    ("GET", "/v2/flows/{id}"),
    ("PATCH", "/v2/flows/{id}"),
    ("DELETE", "/v2/flows/{id}"),
    ("POST", "/v2/flows/{id}/publish"),
    ("POST", "/v2/flows/{id}/pause"),
    ("POST", "/v2/flows/{id}/resume"),
    ("POST", "/v2/flows/{id}/deprecate"),
    ("POST", "/v2/flows/{id}/archive"),
    ("GET", "/v2/email/templates"),
    ("POST", "/v2/email/templates"),
    ("GET", "/v2/email/templates/{id}"),
    ("PATCH", "/v2/email/templates/{id}"),
    ("DELETE", "/v2/email/templates/{id}"),
    ("POST", "/v2/email/templates/{id}/preview"),
    ("GET", "/v2/push/apps"),
    ("POST", "/v2/push/apps"),
    ("GET", "/v2/push/apps/{id}"),
    ("PATCH", "/v2/push/apps/{id}"),
    ("DELETE", "/v2/push/apps/{id}"),
    ("POST", "/v2/push/tokens"),
    ("POST", "/v2/push/tokens/opt-out"),
    ("GET", "/v2/push/devices"),
    ("GET", "/v2/push/devices/summary"),
    ("GET", "/v2/push/messages"),
    ("POST", "/v2/push/messages"),
    ("GET", "/v2/push/messages/{id}"),
    ("POST", "/v2/push/messages/{id}/cancel"),
    ("GET", "/v2/push/messages/{id}/dispatches"),
    ("POST", "/v2/push/preview"),
    ("POST", "/v2/push/dispatches/{id}/opened"),
    ("GET", "/v2/email/senders"),
    ("POST", "/v2/email/senders"),
    ("PATCH", "/v2/email/senders/{id}"),
    ("DELETE", "/v2/email/senders/{id}"),
    ("POST", "/v2/email/senders/{id}/verify"),
    ("GET", "/v2/social/accounts"),
    ("POST", "/v2/social/accounts"),
    ("GET", "/v2/social/accounts/{id}"),
    ("PATCH", "/v2/social/accounts/{id}"),
    ("DELETE", "/v2/social/accounts/{id}"),
    ("POST", "/v2/social/accounts/{id}/connect"),
    ("POST", "/v2/social/accounts/{id}/disconnect"),
    ("POST", "/v2/sandbox/numbers/{id}"),
    ("POST", "/v2/sandbox/templates/{id}"),
    ("GET", "/v2/wallet"),
    ("PATCH", "/v2/wallet"),
    ("GET", "/v2/wallet/ledger"),
    ("GET", "/v2/wallet/prices"),
    ("GET", "/v2/wallet/top-ups"),
    ("POST", "/v2/wallet/top-ups"),
    ("GET", "/v2/wallet/top-ups/{id}"),
    ("GET", "/webhooks"),
    ("POST", "/webhooks"),
    ("GET", "/webhooks/{id}"),
    ("PATCH", "/webhooks/{id}"),
    ("DELETE", "/webhooks/{id}"),
    ("POST", "/webhooks/{id}/rotate"),
    ("POST", "/webhooks/{id}/test"),
    ("POST", "/webhooks/{id}/replay"),
    ("GET", "/webhooks/{id}/deliveries"),
    ("GET", "/webhooks/{id}/deliveries/{deliveryId}"),
    ("POST", "/webhooks/{id}/deliveries/{deliveryId}/replay"),
]
BOTH_ENVIRONMENTS = {"acc_"}
ENVS = ("test", "live")


def route_of(api: Any, method: str, path: str) -> Route:
    (route,) = [route for route in api.routes if (route.method, route.path) == (method, path)]
    return route  # type: ignore[no-any-return]


def body_for(method: str) -> Any:
    return {} if method in ("POST", "PATCH", "PUT") else None


HEADERS = {  # which such an operation asks for before it looks for its record
    f"{path}/media/binary": {
        "x-filename": "a.pdf", "x-content-type": "application/pdf", "Content-Type": "application/octet-stream",
    }
    for path in ("/numbers/{id}", "/v2/social/accounts/{id}")
}  # fmt: skip


MADE_BY: dict[str, tuple[str, Any]] = {
    "wbh_": ("/webhooks", {"url": "https://hooks.example.com/", "events": ["wallet.depleted"]}),
    "top_": ("/v2/wallet/top-ups", {"coins": 1}),
    "emp_": ("/v2/companies", {"nome": "mine"}),
    "imp_": ("/contacts/import", {"contacts": []}),
    "cnt_": ("/contacts", {"phone": "+5511987650001"}),
    "lst_": ("/v2/lists", {"name": "mine"}),
    "seg_": ("/v2/segments", {"name": "mine", "filters": [{"field": "tag", "operator": "is", "value": "vip"}]}),
    "tpl_": (
        "/v2/templates",
        {"name": "mine", "language": "pt-BR", "category": "utility", "components": []},
    ),
    "flw_": (
        "/v2/flows",
        {"name": "mine", "providerCategories": ["OTHER"], "flowJson": {"screens": [{"id": "END", "terminal": True}]}},
    ),
    "jrn_": (
        "/v2/journeys",
        {"name": "mine", "gatilho": {"tipo": "api"}, "inicio": "end", "passos": [{"id": "end", "tipo": "fim"}]},
    ),
    "sup_": ("/v2/email/suppressions", {"email": "ana@example.com"}),
    "etpl_": ("/v2/email/templates", {"name": "mine", "subject": "Hello", "html": "<p>Hello</p>"}),
    "snd_": ("/v2/email/senders", {"domain": "mine.example.com"}),
    "soc_": ("/v2/social/accounts", {"platform": "page", "externalAccountId": "mine", "displayName": "Mine"}),
    "app_": ("/v2/push/apps", {"name": "mine", "platforms": ["android"]}),
    "olk_": ("/v2/origin-links", {"name": "mine", "text": "Hello", "fonte": "outra"}),
}


async def owned_by(api: Any, organization: int, prefix: str) -> str:
    """The id of a record of that kind that the organization owns in test."""
    made = api.organizations[organization]
    match prefix:
        case "num_":
            return str(made.number.id)
        case "key_":
            return str(made.keys["test"][0].id)
        case "acc_":
            return (await person(api, "analyst", organization=organization)).id
        case "psh_" | "dsp_":
            return await pushed(api, organization, prefix)
        case "med_":
            return await uploaded(api, organization)
    path, body = MADE_BY[prefix]
    named = {"numberId": made.number.id} if prefix in ("tpl_", "olk_", "flw_") else {}
    if prefix == "soc_":
        named = {"externalAccountId": f"of {organization}"}
    answer = await api.post(path, {**body, **named}, organization=organization)
    return str(answer.body["id"])


async def uploaded(api: Any, organization: int) -> str:
    """The id of a file that the organization uploaded in test."""
    number = api.organizations[organization].number
    new = KeptMedia(
        organization_id=number.organization_id, env="test", id=api.ids.new(MEDIA), number_id=number.id, kind="image",
        mime_type="image/png", filename="dot.png", size=1, sha256="0" * 64, voice=False, blob_key=f"of {organization}",
        social_account_id=None, provider_ids={number.id: "theirs"}, expires_at=api.clock.now() + KEPT,
    )  # fmt: skip
    await media.insert(api.database, new)
    return new.id


async def pushed(api: Any, organization: int, prefix: str) -> str:
    """The id of a push message to one device, or of its dispatch."""
    app_id = await owned_by(api, organization, "app_")
    device = {"appId": app_id, "token": app_id, "platform": "android"}
    await api.post("/v2/push/tokens", device, organization=organization)
    body = {"title": "Hello", "body": "News", "platforms": ["android"], "tokenIds": [app_id]}
    made = await api.post("/v2/push/messages", body, organization=organization, headers={"Idempotency-Key": app_id})
    if prefix == "psh_":
        return str(made.body["id"])
    path = f"/v2/push/messages/{made.body['id']}/dispatches"
    return str((await api.get(path, organization=organization)).body["items"][0]["id"])


def under(path: str, record: str) -> str:
    """The path of that record, and of nothing that belongs to it."""
    within = {"{deliveryId}": "dlv_" + "0" * 21, "{executionId}": "exe_" + "0" * 21}
    path = path.replace("{id}", record).replace("{segmentId}", record).replace("{mediaId}", record)
    for name, nothing in within.items():
        path = path.replace(name, nothing)
    return path


async def rows(api: Any) -> Any:
    """Everything that a foreign caller could have changed."""
    return [
        await api.database.fetch(f"select * from {table} order by id")
        for table in (
            "organizations",
            "numbers",
            "media",
            "templates",
            "flows",
            "origin_links",
            "email_templates",
            "email_senders",
            "social_accounts",
            "email_suppressions",
            "push_apps",
            "push_devices",
            "push_messages",
            "journeys",
            "executions",
            "accounts",
            "contacts",
            "companies",
            "contact_imports",
            "static_lists",
            "segments",
            "api_keys",
            "webhook_subscriptions",
            "delivery_queue",
            "wallets",
            "top_ups",
        )
    ]


def test_the_table_names_every_operation_that_takes_a_key(api: Any) -> None:
    served = {(route.method, route.path) for route in api.routes if route.access is Access.KEY}
    assert served == set(OPERATIONS)


@pytest.mark.long
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
async def test_a_credential_and_its_scope_are_required(api: Any, method: str, path: str) -> None:
    route = route_of(api, method, path)
    target = under(path, "x")
    nobody = await api.call(method, target, body_for(method), token="")
    assert (nobody.status, nobody.code, nobody.headers["WWW-Authenticate"]) == (401, "UNAUTHORIZED", "Bearer")
    forged = api.token()[:-1] + ("0" if api.token()[-1] != "0" else "1")
    assert (await api.call(method, target, body_for(method), token=forged)).status == 401
    scope = route.scope or "none"
    without = await api.key(*sorted({"org:read", "audit:read", "apikeys:read", "numbers:read"} - {scope}))
    refused = await api.call(method, target, body_for(method), token=without)
    if route.session_only:
        assert (refused.status, refused.code) == (403, "SESSION_ONLY")
    else:
        assert (refused.status, refused.code, refused.body["meta"]) == (
            403, "SCOPE_REQUIRED", {"requiredScope": scope},
        )  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(("method", "path"), [pair for pair in OPERATIONS if "{" in pair[1]])
async def test_foreign_ids_answer_like_missing_ones_and_change_nothing(api: Any, method: str, path: str) -> None:
    route, headers = route_of(api, method, path), HEADERS.get(path)
    prefix = next(iter(route.path_ids.values()))
    foreign = await owned_by(api, 1, prefix)
    mine = await owned_by(api, 0, prefix)
    owner = await person(api)
    here, live = [await session(api, owner, env=env) if route.session_only else api.token(0, env) for env in ENVS]
    if prefix == "med_":
        assert (await api.get(under(path, mine), token=here)).body["mediaId"] == mine
    before = await rows(api)
    answers = [
        await api.call(method, under(path, foreign), body_for(method), token=here, headers=headers),
        await api.call(method, under(path, prefix + "0" * 21), body_for(method), token=here, headers=headers),
    ]
    malformed = [
        await api.call(method, under(path, value), body_for(method), token=here, headers=headers)
        for value in ("no-id", "msg_" + "0" * 21)
    ]
    pairs = [answers]
    if prefix not in BOTH_ENVIRONMENTS:
        others = (mine, prefix + "0" * 21)
        pairs.append(
            [
                await api.call(method, under(path, each), body_for(method), token=live, headers=headers)
                for each in others
            ]
        )
    for foreign_answer, missing_answer in pairs:
        for answer in (foreign_answer, missing_answer):
            assert (answer.status, answer.code) == (404, "NOT_FOUND")
        assert comparable(foreign_answer.body) == comparable(missing_answer.body)
    assert {(answer.status, answer.code) for answer in malformed} == {(404, "NOT_FOUND")}
    assert await rows(api) == before


@pytest.mark.parametrize(
    ("path", "prefix"),
    [
        ("/v2/api-keys", "key_"),
        ("/numbers", "num_"),
        ("/v2/companies", "emp_"),
        ("/v2/templates", "tpl_"),
        ("/v2/flows", "flw_"),
        ("/v2/origin-links", "olk_"),
        ("/v2/email/templates", "etpl_"),
        ("/v2/email/senders", "snd_"),
        ("/v2/email/suppressions", "sup_"),
        ("/v2/push/apps", "app_"),
        ("/v2/push/messages", "psh_"),
        ("/v2/journeys", "jrn_"),
        ("/v2/wallet/top-ups", "top_"),
        ("/webhooks", "wbh_"),
    ],
)
async def test_lists_hold_nothing_of_others(api: Any, path: str, prefix: str) -> None:
    for organization in (1, 0):
        await owned_by(api, organization, prefix)
    seen = [(await api.get(path, organization=o, env=e)).body["items"] for o in (0, 1) for e in ("test", "live")]
    owned = [{item["id"] for item in items} for items in seen]
    assert sum(len(part) for part in owned) == len(set().union(*owned))
    assert owned[0]
    assert owned[2]
