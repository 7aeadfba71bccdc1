"""Messages over HTTP: sending, lists, force and archive, the sandbox's people, callbacks (C15.1, C28.1, C29.5)."""

import string
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recado.actors.acceptance import Acceptance
from recado.actors.receipts import Receipts
from recado.actors.sending import Sending
from recado.channels.chatapp.bridge import Bridge
from recado.channels.signing import PROVIDER_SIGNATURE, signature, signing_key
from recado.domain.ids import MESSAGE, NUMBER, TEMPLATE, lowest_id
from recado.domain.page import CursorSigner
from recado.domain.scopes import KEY_SCOPES
from recado.domain.template import Language, TemplateCategory, TemplateStatus
from recado.http.key_authenticator import KeyAuthenticator
from recado.http.paging import Cursors
from recado.http.routes.callbacks import LARGEST, callback_routes
from recado.http.routes.message_models import CreateMessage
from recado.http.routes.messages import message_routes
from recado.http.routes.sandbox_inbound import sandbox_inbound_routes
from recado.http.server import HttpServer
from recado.storage import templates
from recado.storage.chat_windows import ChatWindows
from recado.storage.idempotency import IdempotencyKeys
from recado.storage.templates import Template

PHONE = "+5511987654321"
MASKED = "+55*******4321"
SECRET = "whsec_c2VjcmV0IG9mIHRoZSBicmlkZ2U="
LIMITS = dict.fromkeys(("read", "write", "send", "failed"), (100_000.0, 100_000))
BODY = ({"type": "BODY", "payload": {"text": "Hello {{1}}!"}},)
CALLBACK = "/v2/callbacks/chatapp/bridge"


@dataclass
class Mail:
    """A server with the operations on messages, in front of the first organization's sandbox number."""

    api: Any
    template: Template
    forced: list[Any]
    callbacks: list[tuple[str, str, bytes]]
    waiting: dict[str, Any]

    @property
    def organization_id(self) -> str:
        return str(self.api.organizations[0].organization.id)

    @property
    def number_id(self) -> str:
        return str(self.api.organizations[0].number.id)

    def body(self, **changes: Any) -> dict[str, Any]:
        fields = {
            "numberId": self.number_id,
            "to": PHONE,
            "type": "template",
            "templateId": self.template.id,
            "templateVars": ["Ana"],
            **changes,
        }
        return {name: value for name, value in fields.items() if value is not ...}

    def text(self, **changes: Any) -> dict[str, Any]:
        plain = {"type": "text", "payload": {"text": {"body": "hi"}}, "templateId": ..., "templateVars": ...}
        return self.body(**{**plain, **changes})

    async def send(self, **changes: Any) -> dict[str, Any]:
        answer = await self.api.post("/messages", self.body(**changes))
        assert answer.status == 201, answer.body
        body: dict[str, Any] = answer.body
        return body

    async def stored(self) -> int:
        return int(await self.api.database.fetchval("select count(*) from messages"))

    async def refusal(self, body: Any, **how: Any) -> Any:
        before = await self.stored()
        answer = await self.api.post("/messages", body, **how)
        assert answer.status >= 400
        assert await self.stored() == before
        return answer

    async def set_status(self, message_id: str, status: str) -> None:
        database = self.api.database
        if status == "sending":
            await database.execute("update dispatch set claimed_epoch = 1 where id = $1", message_id)
        elif status != "queued":
            await database.execute("delete from dispatch where id = $1", message_id)
        await database.execute("update messages set status = $2 where id = $1", message_id, status)


@pytest.fixture
async def mail(api: Any) -> AsyncIterator[Mail]:
    database, clock, ids, directories = api.database, api.clock, api.ids, api.directories
    forced: list[Any] = []
    callbacks: list[tuple[str, str, bytes]] = []
    waiting: dict[str, Any] = {"reason": "rate"}

    class Explainer:
        async def explain(self, organization_id: str, env: str, message: Any) -> dict[str, Any]:
            return waiting

    async def take(channel: str, adapter: str, body: bytes) -> None:
        callbacks.append((channel, adapter, body))

    sending = Sending(database, clock=clock, tell=lambda number, message: None)
    windows = ChatWindows(database, clock=clock)
    acceptance = Acceptance(
        database,
        numbers=directories.numbers,
        organizations=directories.organizations,
        templates=directories.templates,
        windows=windows,
        sending=sending,
        ids=ids,
        clock=clock,
        sends_in={"test", "live"},
    )
    bridge = Bridge(
        url="http://127.0.0.1:1",
        token="token",
        secret=SECRET,
        callback_url="http://recado.test" + CALLBACK,
        clock=clock,
    )
    routes = (
        *message_routes(
            database=database,
            ids=ids,
            acceptance=acceptance,
            explainer=Explainer(),
            forced=forced.append,
            cursors=Cursors(CursorSigner(b"c" * 32)),
        ),
        *sandbox_inbound_routes(
            database=database, numbers=directories.numbers, receiver=Receipts(database, clock=clock, ids=ids)
        ),
        *callback_routes(providers={("chatapp", "bridge"): bridge}, take=take),
    )
    server = HttpServer(
        routes,
        authenticator=KeyAuthenticator(directories.keys),
        idempotency_store=IdempotencyKeys(database),
        limits=LIMITS,
        clock=clock,
        ids=ids,
        base_url="http://recado.test",
    )
    await database.execute("delete from messages")
    async with database.transaction() as connection:
        template = await templates.insert(
            connection,
            Template(
                organization_id=api.organizations[0].organization.id,
                id=ids.new(TEMPLATE),
                env="test",
                number_id=api.organizations[0].number.id,
                name="hello",
                language=Language.PT_BR,
                category=TemplateCategory.UTILITY,
                status=TemplateStatus.APPROVED,
                components=BODY,
                updated_at=clock.now(),
            ),
        )
    for service in (sending, windows, server):
        await service.start()
    try:
        there = replace(api, base=f"http://127.0.0.1:{server.port}", routes=routes)
        yield Mail(there, template, forced, callbacks, waiting)
    finally:
        for service in (server, windows, sending):
            await service.stop()


# POST /messages ---------------------------------------------------------------------------------------------------


async def test_an_accepted_message_is_shown_as_it_is_stored(mail: Mail) -> None:
    at = (mail.api.clock.now() + timedelta(days=1)).isoformat()
    sent = await mail.send(metadata={"order": "x1", "n": 1.5, "paid": True}, campaignId="spring", scheduledAt=at)
    assert sent.pop("replayed") is False
    read = (await mail.api.get(f"/messages/{sent['id']}")).body
    assert read.pop("waiting") == {"reason": "rate"}
    assert sent == read
    assert sent["metadata"] == {"order": "x1", "n": 1.5, "paid": True}
    assert (sent["status"], sent["priority"], sent["direction"], sent["force"]) == (
        "queued",
        "normal",
        "outbound",
        False,
    )
    assert sent["createdAt"] == sent["updatedAt"]
    assert sent["organizationId"] == mail.organization_id
    [listed] = (await mail.api.get("/messages")).body["items"]
    assert listed == sent


async def test_payload_and_variables_come_back_trimmed_and_without_unknown_fields(mail: Mail) -> None:
    await mail.api.post("/v2/sandbox/inbound", {"numberId": mail.number_id, "from": PHONE, "text": "hello"})
    sent = await mail.api.post(
        "/messages", mail.text(payload={"text": {"body": "  hi ", "previewUrl": True, "color": "red"}, "x": 1})
    )
    assert sent.body["payload"] == {"text": {"body": "hi", "previewUrl": True}}
    assert (await mail.send(templateVars=[" Ana "]))["templateVars"] == ["Ana"]


async def test_the_recipient_is_canonical_and_masked_without_its_scope(mail: Mail) -> None:
    assert (await mail.send(to="+55 (11) 8765-4321"))["to"] == "+5511987654321"
    token = await mail.api.key("messages:send", "messages:read")
    sent = await mail.api.post("/messages", mail.body(), token=token, headers={"Idempotency-Key": "k"})
    again = await mail.api.post("/messages", mail.body(), token=token, headers={"Idempotency-Key": "k"})
    read = await mail.api.get(f"/messages/{sent.body['id']}", token=token)
    listed = await mail.api.get("/messages", token=token)
    assert [answer.body["to"] for answer in (sent, again, read)] == [MASKED] * 3
    assert {item["to"] for item in listed.body["items"]} == {MASKED}


@pytest.mark.parametrize(
    ("changes", "code", "paths"),
    [
        ({"to": ...}, "RECIPIENT_MISSING", []),
        ({"to": "11987654321"}, "PHONE_INVALID", ["/to"]),
        ({"numberId": ...}, "VALIDATION_ERROR", ["/numberId"]),
        ({"templateId": ...}, "VALIDATION_ERROR", ["/templateId"]),
        ({"type": ...}, "VALIDATION_ERROR", ["/type"]),
        ({"type": "carrier-pigeon"}, "VALIDATION_ERROR", ["/type"]),
        ({"type": "text"}, "VALIDATION_ERROR", ["/payload"]),
        (
            {"type": "text", "payload": {"text": {"body": "x"}}},
            "VALIDATION_ERROR",
            ["/templateId", "/templateVars"],
        ),
        ({"templateVars": ["x" * 1025]}, "VALIDATION_ERROR", ["/templateVars/0"]),
        ({"templateVars": ["x"] * 61}, "VALIDATION_ERROR", ["/templateVars"]),
        ({"templateVars": [" "]}, "TEMPLATE_VARS_MISMATCH", ["/templateVars/0"]),
        ({"metadata": {"1": "x"}}, "METADATA_INVALID", ["/metadata"]),
        ({"metadata": {"k": ["x"]}}, "METADATA_INVALID", ["/metadata/k"]),
        ({"metadata": []}, "METADATA_INVALID", ["/metadata"]),
        ({"campaignId": "x" * 65}, "VALIDATION_ERROR", ["/campaignId"]),
        ({"ttlSeconds": 59}, "VALIDATION_ERROR", ["/ttlSeconds"]),
        ({"ttlSeconds": 2_592_001}, "VALIDATION_ERROR", ["/ttlSeconds"]),
        ({"scheduledAt": "2026-11-20T10:00:00"}, "VALIDATION_ERROR", ["/scheduledAt"]),
        ({"scheduledAt": "2099-01-01T00:00:00Z"}, "SCHEDULE_TOO_FAR", []),
        ({"priority": "urgent"}, "VALIDATION_ERROR", ["/priority"]),
        ({"force": "yes"}, "VALIDATION_ERROR", ["/force"]),
        ({"contactId": "cnt_1"}, "REFERENCE_NOT_FOUND", []),
        ({"channel": "social"}, "ROUTE_NOT_AVAILABLE", []),
        ({"channel": "sms"}, "VALIDATION_ERROR", ["/channel"]),
        ({"numberId": "num_1"}, "REFERENCE_NOT_FOUND", []),
        ({"metadata": {"k": "\0"}}, "INVALID_CHARACTER", ["/metadata/k"]),
    ],
)
async def test_a_refusal_names_its_rule_and_its_place(
    mail: Mail, changes: dict[str, Any], code: str, paths: list[str]
) -> None:
    refused = await mail.refusal(mail.body(**changes))
    assert (refused.status, refused.code) == (422, code)
    assert [error["path"] for error in refused.body.get("errors", [])] == paths
    assert PHONE not in str(refused.body)


async def test_force_needs_its_scope(mail: Mail) -> None:
    token = await mail.api.key(*(KEY_SCOPES - {"messages:force"}))
    refused = await mail.refusal(mail.body(force=True), token=token)
    assert (refused.status, refused.code, refused.body["meta"]) == (
        403,
        "SCOPE_REQUIRED",
        {"requiredScope": "messages:force"},
    )
    sent = await mail.send(force=True)
    assert sent["force"] is True
    audited = await mail.api.database.fetchrow("select * from audit")
    assert (audited["action"], audited["target_id"], audited["ip"]) == ("message.force", sent["id"], "127.0.0.1")


async def test_a_create_takes_no_if_match(mail: Mail) -> None:
    refused = await mail.refusal(mail.body(), headers={"If-Match": "*"})
    assert (refused.status, refused.code) == (412, "VERSION_MISMATCH")


async def test_a_repeat_is_replayed_and_another_request_with_its_key_refused(mail: Mail) -> None:
    key = {"Idempotency-Key": "order 7"}
    first = await mail.api.post("/messages", mail.body(), headers=key)
    await mail.set_status(first.body["id"], "delivered")
    # The same document with its members in another order is the same request.
    again = await mail.api.post("/messages", dict(reversed(mail.body().items())), headers=key)
    assert (first.status, again.status) == (201, 201)
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.body == {**first.body, "status": "delivered", "replayed": True}
    refused = await mail.refusal(mail.body(to="+5511987650000"), headers=key)
    assert (refused.status, refused.code) == (422, "IDEMPOTENCY_KEY_REUSED")


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.sampled_from([PHONE, "text", "template", "interactive", "2027-01-01T00:00:00Z"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(string.ascii_letters, max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
_FIELDS = [field.alias or name for name, field in CreateMessage.model_fields.items()]
_BUTTONS = {"type": "button", "body": "x", "action": {"buttons": [{"id": "1", "title": "t"}]}}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    changes=st.dictionaries(st.sampled_from(_FIELDS), _JSON | st.just(...), max_size=4),
    free_form=st.none() | st.sampled_from([{"text": {"body": "x"}}, {"interactive": _BUTTONS}]),
    whole=st.none() | _JSON,
)
async def test_no_body_is_answered_with_a_server_error_and_what_is_refused_changes_nothing(
    mail: Mail, changes: dict[str, Any], free_form: dict[str, Any] | None, whole: Any
) -> None:
    if free_form is not None:
        changes = {
            "type": next(iter(free_form)),
            "payload": free_form,
            "templateId": ...,
            "templateVars": ...,
            **changes,
        }
    before = await mail.stored()
    answer = await mail.api.post("/messages", mail.body(**changes) if whole is None else whole)
    assert answer.status in {201, 400, 403, 422}
    if answer.status != 201:
        assert answer.body["code"]
    assert await mail.stored() == before + (answer.status == 201)


# Reading ----------------------------------------------------------------------------------------------------------


async def test_lists_filter_and_page(mail: Mail) -> None:
    sent = [await mail.send(campaignId="spring" if n % 2 else "autumn") for n in range(7)]
    newest_first = [message["id"] for message in reversed(sent)]
    whole = (await mail.api.get("/messages?limit=200")).body
    assert [item["id"] for item in whole["items"]] == newest_first
    assert whole["total"] == 7
    assert "nextCursor" not in whole
    assert "totalEstimated" not in whole

    skipped = (await mail.api.get("/messages?limit=2&skip=4")).body
    assert [item["id"] for item in skipped["items"]] == newest_first[4:6]
    campaign = (await mail.api.get("/messages?campaignId=spring&channel=chatapp&channel=sms&status=queued")).body
    assert campaign["total"] == 3
    assert (await mail.api.get("/messages?channel=email")).body == {"items": [], "total": 0}
    assert (await mail.api.get(f"/messages?numberId={mail.number_id}&direction=outbound")).body["total"] == 7
    assert (await mail.api.get("/messages?unknown=1&status=failed")).body["total"] == 0

    walked: list[str] = []
    path = "/messages?limit=3"
    while True:
        page = (await mail.api.get(path)).body
        walked += [item["id"] for item in page["items"]]
        if "nextCursor" not in page:
            break
        await mail.send()  # what is new never appears on later pages
        path = f"/messages?limit=3&cursor={page['nextCursor']}"
    assert walked == newest_first


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("limit=0", "INVALID_PARAMETER"),
        ("limit=201", "INVALID_PARAMETER"),
        ("skip=10001", "INVALID_PARAMETER"),
        ("status=lost", "INVALID_PARAMETER"),
        ("channel=rcs", "INVALID_PARAMETER"),
        ("from=2026-11-01T00:00:00", "INVALID_PARAMETER"),
        ("from=2026-11-02T00:00:00Z&to=2026-11-01T00:00:00Z", "INVALID_PERIOD"),
        ("cursor=abc", "INVALID_CURSOR"),
    ],
)
async def test_a_bad_parameter_is_answered_with_400(mail: Mail, query: str, code: str) -> None:
    answer = await mail.api.get(f"/messages?{query}")
    assert (answer.status, answer.code) == (400, code)


async def test_a_cursor_is_bound_to_its_filters_and_its_owner(mail: Mail) -> None:
    for _ in range(3):
        await mail.send(campaignId="spring")
    cursor = (await mail.api.get("/messages?limit=1&campaignId=spring")).body["nextCursor"]
    assert (await mail.api.get(f"/messages?limit=2&campaignId=spring&cursor={cursor}")).status == 200
    for query, how in (
        ("campaignId=autumn", {}),
        ("", {}),
        ("campaignId=spring", {"env": "live"}),
        ("campaignId=spring", {"organization": 1}),
    ):
        answer = await mail.api.get(f"/messages?{query}&cursor={cursor}", **how)
        assert (answer.status, answer.code) == (400, "INVALID_CURSOR")


async def test_a_period_holds_what_was_created_in_it(mail: Mail) -> None:
    sent = await mail.send()
    at = sent["createdAt"]
    later = "2999-01-01T00:00:00Z"
    assert (await mail.api.get(f"/messages?from={at}&to={later}")).body["total"] == 1
    assert (await mail.api.get(f"/messages?to={at}")).body["total"] == 0


async def test_only_what_waits_says_why(mail: Mail) -> None:
    sent = await mail.send()
    mail.waiting.update(reason="scheduled", until=mail.api.clock.now())
    for status in ("queued", "sending", "sent", "failed"):
        await mail.set_status(sent["id"], status)
        body = (await mail.api.get(f"/messages/{sent['id']}")).body
        assert ("waiting" in body) == (status in {"queued", "sending"})


# Force and archive ------------------------------------------------------------------------------------------------


async def test_force_and_archive_answer_the_message_as_it_is_now(mail: Mail) -> None:
    at = (mail.api.clock.now() + timedelta(days=1)).isoformat()
    sent = await mail.send(scheduledAt=at)
    forced = await mail.api.post(f"/messages/{sent['id']}/force")
    assert (forced.status, forced.body["force"], forced.body["status"]) == (200, True, "queued")
    assert forced.body["scheduledAt"] < sent["scheduledAt"]
    assert mail.forced == [(mail.organization_id, "test", mail.number_id)]
    archived = await mail.api.post(f"/messages/{sent['id']}/archive")
    assert (archived.status, archived.body["status"]) == (200, "archived")


async def test_what_has_moved_on_is_a_conflict(mail: Mail) -> None:
    sent = await mail.send()
    for status in ("sending", "sent", "delivered", "read", "archived", "failed"):
        await mail.set_status(sent["id"], status)
        refused = await mail.api.post(f"/messages/{sent['id']}/force")
        assert (refused.status, refused.code, refused.body["meta"]) == (409, "INVALID_STATE", {"status": status})
        archived = await mail.api.post(f"/messages/{sent['id']}/archive")
        assert archived.status == (200 if status == "failed" else 409)
    assert mail.forced == []


async def test_a_repeated_archive_gives_its_answer_again_masked_for_whoever_asks(mail: Mail) -> None:
    sent = await mail.send()
    key = {"Idempotency-Key": "a"}
    first = await mail.api.post(f"/messages/{sent['id']}/archive", headers=key)
    token = await mail.api.key("messages:send")
    again = await mail.api.post(f"/messages/{sent['id']}/archive", headers=key, token=token)
    assert (first.status, again.status) == (200, 200)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.body == {**first.body, "to": MASKED}


# Who may see and do what ------------------------------------------------------------------------------------------


async def test_messages_of_others_do_not_exist(mail: Mail) -> None:
    sent = await mail.send()
    for how in ({"organization": 1}, {"env": "live"}, {"organization": 1, "env": "live"}):
        for method, path in (("GET", ""), ("POST", "/force"), ("POST", "/archive")):
            foreign = await mail.api.call(method, f"/messages/{sent['id']}{path}", **how)
            missing = await mail.api.call(method, f"/messages/{lowest_id(MESSAGE, mail.api.clock.now())}{path}", **how)
            assert foreign.status == missing.status == 404
            assert foreign.body["detail"] == missing.body["detail"]
        assert (await mail.api.get("/messages", **how)).body == {"items": [], "total": 0}
        refused = await mail.refusal(mail.body(), **how)
        assert (refused.status, refused.code) == (422, "REFERENCE_NOT_FOUND")
    assert (await mail.api.get("/messages/msg_1")).status == 404
    assert (await mail.api.get(f"/messages/{sent['id']}")).body["status"] == "queued"


async def test_each_operation_asks_for_its_scope(mail: Mail) -> None:
    sent = await mail.send()
    for method, path, scope in (
        ("POST", "/messages", "messages:send"),
        ("GET", "/messages", "messages:read"),
        ("GET", f"/messages/{sent['id']}", "messages:read"),
        ("POST", f"/messages/{sent['id']}/force", "messages:force"),
        ("POST", f"/messages/{sent['id']}/archive", "messages:send"),
        ("POST", "/v2/sandbox/inbound", "messages:send"),
    ):
        token = await mail.api.key(*(KEY_SCOPES - {scope}))
        answer = await mail.api.call(method, path, token=token)
        assert (answer.status, answer.body["meta"]) == (403, {"requiredScope": scope})
        assert (await mail.api.call(method, path, token="")).status == 401


# The sandbox's people ---------------------------------------------------------------------------------------------


async def test_an_inbound_message_opens_the_window(mail: Mail) -> None:
    assert (await mail.refusal(mail.text())).code == "WINDOW_CLOSED"
    came = await mail.api.post(
        "/v2/sandbox/inbound", {"numberId": mail.number_id, "from": "+55 11 8765-4321", "text": "hello"}
    )
    assert came.status == 202
    inbound = (await mail.api.get(f"/messages/{came.body['messageId']}")).body
    assert (inbound["direction"], inbound["status"], inbound["to"]) == ("inbound", "delivered", PHONE)
    assert inbound["payload"] == {"text": {"body": "hello"}}
    assert (await mail.api.post("/messages", mail.text(priority="critical"))).status == 201


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"text": ...}, "VALIDATION_ERROR"),
        ({"from": "hello"}, "PHONE_INVALID"),
        ({"numberId": "num_1"}, "REFERENCE_NOT_FOUND"),
        ({"media": {"mimeType": "image/png", "dataBase64": ""}}, "MEDIA_NOT_FOUND"),
        ({"quoted": "msg_000000000000000000000"}, "REFERENCE_NOT_FOUND"),
        ({"channel": "sms"}, "VALIDATION_ERROR"),
    ],
)
async def test_a_bad_simulation_is_refused(mail: Mail, changes: dict[str, Any], code: str) -> None:
    body = {"numberId": mail.number_id, "from": PHONE, "text": "hello", **changes}
    answer = await mail.api.post("/v2/sandbox/inbound", {k: v for k, v in body.items() if v is not ...})
    assert (answer.status, answer.code) == (422, code)
    assert await mail.stored() == 0


async def test_the_simulation_does_not_exist_with_a_live_key(mail: Mail) -> None:
    body = {"numberId": mail.number_id, "from": PHONE, "text": "hello"}
    for sent in (body, {}):
        assert (await mail.api.post("/v2/sandbox/inbound", sent, env="live")).status == 404
    other = {**body, "numberId": lowest_id(NUMBER, mail.api.clock.now())}
    assert (await mail.api.post("/v2/sandbox/inbound", other)).code == "REFERENCE_NOT_FOUND"


# Callbacks --------------------------------------------------------------------------------------------------------


def signed(mail: Mail, body: bytes, *, ahead: float = 0) -> dict[str, str]:
    at = mail.api.clock.now() + timedelta(seconds=ahead)
    return {PROVIDER_SIGNATURE: signature([signing_key(SECRET)], body, at)}


async def test_a_signed_callback_is_stored_and_answered(mail: Mail) -> None:
    body = b'{"events": []}'
    answer = await mail.api.post(CALLBACK, raw=body, headers=signed(mail, body), token="")
    assert (answer.status, answer.body) == (200, {})
    assert mail.callbacks == [("chatapp", "bridge", body)]


async def test_a_callback_of_another_hand_is_not_stored(mail: Mail) -> None:
    body = b'{"events": []}'
    for headers in ({}, signed(mail, b"{}"), signed(mail, body, ahead=-301), signed(mail, body, ahead=301)):
        answer = await mail.api.post(CALLBACK, raw=body, headers=headers, token="")
        assert (answer.status, answer.code) == (401, "INVALID_SIGNATURE")
    for path in ("/v2/callbacks/chatapp/sandbox", "/v2/callbacks/sms/bridge"):
        assert (await mail.api.post(path, raw=body, headers=signed(mail, body), token="")).status == 404
    large = b" " * (LARGEST + 1)
    assert (await mail.api.post(CALLBACK, raw=large, headers=signed(mail, large), token="")).status == 413
    assert mail.callbacks == []
