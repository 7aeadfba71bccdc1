"""Mistakes of an API user: each answer says what is wrong, where, and what to do (C4.1)."""

import asyncio
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson
import pytest
from tests.acceptance.sandbox.customer import approved_template
from tests.acceptance.served import ADMIN_TOKEN, Served
from tests.acceptance.tenants import CUSTOMER, Tenant, later, settle, template
from tests.program import Api

from recado.domain.core.errors import CODES, problem_slug
from recado.domain.core.ids import LIST, NUMBER, TEMPLATE
from recado.domain.core.tokens import mint_token

_USED = "a key that was used"


@dataclass(frozen=True, slots=True)
class Slip:
    """A request and what it is answered. `<name>` in it is one of `places`; `body` bytes go as they are."""

    name: str
    request: str  # method and path
    status: int
    code: str
    sentence: str
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    credential: str | None = "<key>"
    path: str | None = None  # of the field errors, a space between two


JSON = {"Content-Type": "application/json"}
TEXT = {"numberId": "<number>", "to": CUSTOMER, "type": "text", "payload": {"text": {"body": "Bom dia"}}}
FORM = {"numberId": "<number>", "to": CUSTOMER, "type": "template", "templateId": "<approved>", "templateVars": ["Ana"]}


ODD_KEY = "Key 1 is not a letter followed by up to 63 letters, digits, _, . or -."


def text(**changed: Any) -> dict[str, Any]:
    return {**TEXT, **changed}


def form(**changed: Any) -> dict[str, Any]:
    return {**FORM, **changed}


def without(body: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in names}


MISSING = [
    Slip(
        "the sandbox with a live key",
        "POST /v2/sandbox/inbound",
        404,
        "NOT_FOUND",
        "The sandbox works with test keys only.",
        {},
        credential="<live key>",
    ),
    Slip(
        "a sandbox number with a live key",
        "POST /v2/sandbox/numbers/<number>",
        404,
        "NOT_FOUND",
        "The sandbox works with test keys only.",
        {},
        credential="<live key>",
    ),
    Slip(
        "a sandbox template with a live key",
        "POST /v2/sandbox/templates/<template>",
        404,
        "NOT_FOUND",
        "The sandbox works with test keys only.",
        {"status": "approved"},
        credential="<live key>",
    ),
    Slip("an unknown campaign", "GET /v2/campaigns/nope", 404, "NOT_FOUND", "No campaign nope in test."),
    Slip(
        "an unknown campaign that could be a phone",
        "GET /v2/campaigns/+5511987654321",
        404,
        "NOT_FOUND",
        "No such campaign in test.",
    ),
]

CREDENTIALS = [
    # First: the key of it may ask again after 90 seconds.
    Slip(
        "too many requests", "GET /messages", 429, "RATE_LIMITED",
        "Too many requests of the class read: try again after the seconds in Retry-After.", credential="<slow key>",
    ),
    Slip(
        "no header", "GET /messages", 401, "UNAUTHORIZED",
        "The Authorization header is missing. Send: Authorization: Bearer <API key>.", credential=None,
    ),
    Slip(
        "another scheme", "GET /messages", 401, "UNAUTHORIZED",
        "The Authorization header must have the form: Bearer <API key>.",
        headers={"Authorization": "Basic c2VjcmV0"}, credential=None,
    ),
    Slip(
        "no scheme", "GET /messages", 401, "UNAUTHORIZED",
        "The Authorization header must have the form: Bearer <API key>.",
        headers={"Authorization": "<key>"}, credential=None,
    ),
    Slip(
        "a cut key", "GET /messages", 401, "UNAUTHORIZED",
        "Unknown API key: keys begin with svc_test_ or svc_live_, and this one is cut or misspelled.",
        credential="svc_test_abc",
    ),
    Slip(
        "a key of another installation", "GET /messages", 401, "UNAUTHORIZED",
        "Unknown API key: this installation has none such. Was it made in another data folder or environment?",
        credential=mint_token("svc_test_", lambda size: b"a" * size),
    ),
    Slip(
        "a revoked key", "GET /messages", 401, "API_KEY_REVOKED",
        "The API key was revoked: use another one.", credential="<revoked>",
    ),
    Slip(
        "a key without the scope", "POST /messages", 403, "SCOPE_REQUIRED",
        "This operation needs the scope messages:send, which the credential does not hold.",
        text(), credential="<reader>",
    ),
    Slip(
        "a key where a person is needed", "GET /v2/accounts", 403, "SESSION_ONLY",
        "This operation needs a dashboard session, which POST /v2/sessions opens; an API key cannot call it.",
    ),
    Slip(
        "an API key for the administrator's operations", "POST /v2/admin/organizations", 401, "UNAUTHORIZED",
        "This operation needs the token of the administrator, the setting RECADO_ADMIN_TOKEN of the installation; "
        "an API key cannot call it.",
    ),
    Slip(
        "a test key for a live record", "GET /numbers/<live number>", 404, "NOT_FOUND",
        "No number <live number> in test.",
    ),
    Slip(
        "a live number in a body of test", "POST /messages", 422, "REFERENCE_NOT_FOUND",
        "numberId: no number <live number> in test.", text(numberId="<live number>"), path="/numberId",
    ),
]  # fmt: skip

ADDRESSES = [
    Slip(
        "a misspelled path", "GET /mesages", 404, "ROUTE_NOT_FOUND",
        "There is no such route. Did you mean /messages? GET /v2/openapi.json lists all routes.",
    ),
    Slip(
        "a version too many", "GET /v2/messages", 404, "ROUTE_NOT_FOUND",
        "There is no such route. Did you mean /messages? GET /v2/openapi.json lists all routes.",
    ),
    Slip(
        "a version too few", "GET /templates/<template>", 404, "ROUTE_NOT_FOUND",
        "There is no such route. Did you mean /v2/templates/{id}? GET /v2/openapi.json lists all routes.",
    ),
    Slip(
        "another version", "GET /v1/segments", 404, "ROUTE_NOT_FOUND",
        "There is no such route. Did you mean /v2/segments? GET /v2/openapi.json lists all routes.",
    ),
    Slip(
        "a path of nothing", "GET /favicon", 404, "ROUTE_NOT_FOUND",
        "There is no such route. GET /v2/openapi.json lists all routes.",
    ),
    Slip(
        "the cancel of a message", "POST /messages/<sent>/cancel", 404, "ROUTE_NOT_FOUND",
        "There is no such route. Did you mean POST /messages/{id}/archive? GET /v2/openapi.json lists all routes.",
    ),
    Slip(
        "the deletion of a message", "DELETE /messages/<sent>", 405, "METHOD_NOT_ALLOWED",
        "This route takes only GET. Did you mean POST /messages/{id}/archive?",
    ),
    Slip(
        "another method", "DELETE /messages", 405, "METHOD_NOT_ALLOWED", "This route takes only GET and POST.",
    ),
    Slip(
        "an id that is unknown", "GET /v2/templates/<unknown template>", 404, "NOT_FOUND",
        "No template <unknown template> in test.",
    ),
    Slip(
        "an id of another kind", "GET /v2/templates/<number>", 404, "NOT_FOUND",
        "<number> is not a template id: those begin with tpl_. This looks like a number id.",
    ),
    Slip(
        "no id at all", "GET /messages/12345", 404, "NOT_FOUND",
        "The given text is not a message id: those are msg_ and 21 letters or digits.",
    ),
]  # fmt: skip

BODIES = [
    Slip(
        "no content type", "POST /messages", 415, "UNSUPPORTED_MEDIA_TYPE",
        "The body must be sent with the header Content-Type: application/json, in UTF-8.",
        b"{}", {"Content-Type": "application/x-www-form-urlencoded"},
    ),
    Slip(
        "JSON with a trailing comma", "POST /messages", 400, "MALFORMED_JSON",
        "The body is not valid JSON (line 1, column 15).", b'{"type":"text",}', JSON,
    ),
    Slip(
        "a body in Latin-1", "POST /messages", 400, "MALFORMED_JSON",
        "The body is not UTF-8: byte 0xe7 at position 10, counted from 0.", b'{"text":"a\xe7\xe3o"}', JSON,
    ),
    Slip(
        "a byte order mark", "POST /messages", 400, "MALFORMED_JSON",
        "The body begins with a byte order mark: send it without, in UTF-8.", b"\xef\xbb\xbf{}", JSON,
    ),
    Slip("no body", "POST /messages", 400, "MALFORMED_JSON", "The body is empty: send a JSON object.", b"", JSON),
    Slip(
        "a list where an object is due", "POST /messages", 422, "VALIDATION_ERROR",
        "1 invalid field: the body must be an object.", [TEXT], path="",
    ),
    Slip(
        "a body that is too large", "POST /messages", 413, "BODY_TOO_LARGE",
        "The body is larger than the 1,048,576 bytes that this operation takes.", b" " * 1_048_577, JSON,
    ),
    Slip(
        "no type", "POST /messages", 422, "VALIDATION_ERROR",
        "1 invalid field: /type is required.", without(FORM, "type"), path="/type",
    ),
    Slip(
        "an unknown type", "POST /messages", 422, "VALIDATION_ERROR",
        "1 invalid field: /type must be one of text, template, media, interactive.", form(type="txt"), path="/type",
    ),
    Slip(
        "an unknown priority", "POST /messages", 422, "VALIDATION_ERROR",
        "1 invalid field: /priority must be one of critical, normal, bulk.",
        text(priority="urgent"), path="/priority",
    ),
    Slip(
        "a number as text", "POST /messages", 422, "VALIDATION_ERROR",
        "1 invalid field: /ttlSeconds must be a whole number.", text(ttlSeconds="60"), path="/ttlSeconds",
    ),
    Slip(
        "no number", "POST /messages", 422, "VALIDATION_ERROR",
        "`numberId` is required for channel chatapp.", without(TEXT, "numberId"), path="/numberId",
    ),
    Slip(
        "a text without the payload's shape", "POST /messages", 422, "VALIDATION_ERROR",
        '1 invalid field: /payload is required (for type text, the payload is such as {"text": {"body": "Hello"}}).',
        {**without(TEXT, "payload"), "text": "Bom dia"}, path="/payload",
    ),
    Slip(
        "a text for a payload's object", "POST /messages", 422, "VALIDATION_ERROR",
        "1 invalid field: /payload/text must be an object "
        '(for type text, the payload is such as {"text": {"body": "Hello"}}).',
        text(payload={"text": "Bom dia"}), path="/payload/text",
    ),
    Slip(
        "a name in snake case", "POST /v2/templates", 422, "VALIDATION_ERROR",
        "1 invalid field: /numberId is required; it is spelled numberId, not number_id.",
        {**without(template("", "x"), "numberId"), "number_id": "<number>"}, path="/numberId",
    ),
    Slip(
        "a misspelled name of what is required", "POST /v2/templates", 422, "VALIDATION_ERROR",
        "1 invalid field: /numberId is required. nmberId is unknown: did you mean numberId?",
        {**without(template("", "x"), "numberId"), "nmberId": "<number>"}, path="/numberId",
    ),
    Slip(
        "names in snake case that a rule misses", "POST /messages", 422, "VALIDATION_ERROR",
        "`templateId` is required for type template. template_id is unknown: did you mean templateId?",
        {**without(FORM, "templateId"), "template_id": "<approved>"}, path="/templateId",
    ),
    Slip(
        "two faults at once", "POST /v2/templates", 422, "VALIDATION_ERROR",
        "2 invalid fields: /name is required; /language must be one of pt-BR, en-US, es-ES.",
        {**without(template("<number>", "x"), "name"), "language": "pt_BR"},
    ),
    Slip(
        "no recipient", "POST /messages", 422, "RECIPIENT_MISSING",
        "The message has no recipient: give `to` or `contactId`.", without(TEXT, "to"), path="/to",
    ),
    Slip(
        "neither number nor recipient", "POST /messages", 422, "RECIPIENT_MISSING",
        "The message has no recipient: give `to` or `contactId`.", without(TEXT, "to", "numberId"),
        path="/to /numberId",
    ),
    Slip(
        "an empty object", "POST /messages", 422, "VALIDATION_ERROR",
        "3 invalid fields: /type is required; /numberId: `numberId` is required for channel chatapp; "
        "/to: The message has no recipient: give `to` or `contactId`.", {}, path="/type /numberId /to",
    ),
    Slip(
        "an empty object for many", "POST /messages/bulk", 422, "VALIDATION_ERROR",
        "2 invalid fields: /type is required; /numberId: `numberId` is required for channel chatapp.",
        {}, path="/type /numberId",
    ),
    Slip(
        "a wrong field and a missing one", "POST /messages", 422, "VALIDATION_ERROR",
        "2 invalid fields: /ttlSeconds must be a whole number; "
        "/templateId: `templateId` is required for type template.",
        without(form(ttlSeconds="60"), "templateId"), path="/ttlSeconds /templateId",
    ),
    Slip(
        "a phone without its country", "POST /messages", 422, "PHONE_INVALID",
        "The phone must be in international form, such as +5521912345678.", text(to="11 98765-0000"), path="/to",
    ),
    Slip(
        "a date-time without offset", "POST /messages", 422, "VALIDATION_ERROR",
        "1 invalid field: /scheduledAt must be an RFC 3339 date-time with an offset, such as 2026-01-31T12:00:00Z.",
        text(scheduledAt="2030-01-31T12:00:00"), path="/scheduledAt",
    ),
    Slip(
        "a schedule too far", "POST /messages", 422, "SCHEDULE_TOO_FAR",
        "`scheduledAt` must be at most 90 days ahead.", text(scheduledAt="2100-01-31T12:00:00Z"),
        path="/scheduledAt",
    ),
    Slip(
        "nested metadata", "POST /messages", 422, "METADATA_INVALID",
        "A value of metadata must be a text, a number or true or false.",
        text(metadata={"order": {"id": 1}}), path="/metadata/order",
    ),
]  # fmt: skip

MESSAGES = [
    Slip(
        "an unknown template", "POST /messages", 422, "REFERENCE_NOT_FOUND",
        "templateId: no template <unknown template> in test.", form(templateId="<unknown template>"),
        path="/templateId",
    ),
    Slip(
        "a template of another organization", "POST /messages", 422, "REFERENCE_NOT_FOUND",
        "templateId: no template <foreign template> in test.", form(templateId="<foreign template>"),
        path="/templateId",
    ),
    Slip(
        "the template's name in place of its id", "POST /messages", 422, "REFERENCE_NOT_FOUND",
        "templateId: the given text is not a template id: those are tpl_ and 21 letters or digits.",
        form(templateId="order_ready"), path="/templateId",
    ),
    Slip(
        "a template that nobody approved", "POST /messages", 422, "TEMPLATE_NOT_APPROVED",
        "The template <template> is draft: only an approved template can be sent.",
        form(templateId="<template>", templateVars=[]), path="/templateId",
    ),
    Slip(
        "a variable too few", "POST /messages", 422, "TEMPLATE_VARS_MISMATCH",
        "The template <approved> takes 1 variable; `templateVars` has 0.",
        without(FORM, "templateVars"), path="/templateVars",
    ),
    Slip(
        "an empty variable", "POST /messages", 422, "TEMPLATE_VARS_MISMATCH",
        "`templateVars` must not hold an empty text (position 0).", form(templateVars=["  "]), path="/templateVars/0",
    ),
    Slip(
        "a text outside of the window", "POST /messages", 422, "WINDOW_CLOSED",
        "The recipient has not written to this number in the last 24 hours: send a template.",
        text(to="+5511987659999"), path="/type",
    ),
    Slip(
        "an empty batch", "POST /messages/bulk", 422, "VALIDATION_ERROR",
        "1 invalid field: /recipients must have 1 or more entries.",
        {**without(FORM, "to"), "recipients": []}, path="/recipients",
    ),
    Slip(
        "two audiences", "POST /messages/bulk", 422, "AUDIENCE_INVALID",
        "Give exactly one audience: recipients, listId or segmentId.",
        {**without(FORM, "to"), "recipients": [{"to": CUSTOMER}], "listId": "<list>"},
        path="/recipients /listId",
    ),
    Slip(
        "no audience", "POST /messages/bulk", 422, "AUDIENCE_INVALID",
        "Give exactly one audience: recipients, listId or segmentId.", without(FORM, "to"), path="",
    ),
    Slip(
        "a number out of service", "POST /messages", 422, "NUMBER_UNAVAILABLE",
        "The number <idle number> is disconnected: connect it with POST /numbers/<idle number>/connect, "
        "or send from another number.", text(numberId="<idle number>"), path="/numberId",
    ),
    Slip(
        "a flagged number to connect", "POST /numbers/<flagged number>/connect", 409, "INVALID_STATE",
        "The number <flagged number> is flagged: only critical messages and replies leave until the provider clears "
        "it; in test, POST /v2/sandbox/numbers/<flagged number> with status connected does.",
    ),
    Slip(
        "social from a number", "POST /messages", 422, "VALIDATION_ERROR",
        "`socialAccountId` is required for channel social.", text(channel="social"), path="/socialAccountId",
    ),
    Slip(
        "media", "POST /messages", 422, "MEDIA_NOT_FOUND",
        "The media does not exist, or is no longer kept: upload it to a number or a social account.",
        text(type="media", payload={"kind": "image", "media": {"id": "med_1"}}), path="/payload/media/id",
    ),
    Slip(
        "a message that cannot be forced", "POST /messages/<archived>/force", 409, "INVALID_STATE",
        "Only a queued message can be forced.",
    ),
    Slip(
        "more than the wallet holds", "POST /messages", 402, "PAYMENT_REQUIRED",
        "This costs 100 coins; the wallet has 0. Top it up, then try again.",
        text(numberId="<poor number>"), credential="<poor key>",
    ),
]  # fmt: skip

LISTS_AND_HEADERS = [
    Slip(
        "a page that is too long", "GET /messages?limit=500", 400, "INVALID_PARAMETER",
        "1 invalid query parameter: limit must be at most 200.", path="limit",
    ),
    Slip(
        "an empty page", "GET /messages?limit=0", 400, "INVALID_PARAMETER",
        "1 invalid query parameter: limit must be at least 1.", path="limit",
    ),
    Slip(
        "a page too deep", "GET /messages?skip=20000", 400, "INVALID_PARAMETER",
        "1 invalid query parameter: skip must be at most 10,000.", path="skip",
    ),
    Slip(
        "a parameter given twice", "GET /messages?status=sent&status=failed", 400, "INVALID_PARAMETER",
        "1 invalid query parameter: status must be given only once.", path="status",
    ),
    Slip(
        "an unknown direction", "GET /messages?direction=in", 400, "INVALID_PARAMETER",
        "1 invalid query parameter: direction must be one of outbound, inbound.", path="direction",
    ),
    Slip(
        "a broken cursor", "GET /messages?cursor=abc", 400, "INVALID_CURSOR",
        "The cursor does not belong to this list with these filters: begin again without cursor.",
    ),
    Slip(
        "a period that ends first", "GET /messages?from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z", 400,
        "INVALID_PERIOD", "The period is not valid: `from` must not be later than `to`.",
    ),
    Slip(
        "a key that was used", "POST /messages", 422, "IDEMPOTENCY_KEY_REUSED",
        "This Idempotency-Key was used with another request: use a new key for each new request.",
        text(campaignId="another"), {"Idempotency-Key": _USED},
    ),
    Slip(
        "a key with a line break's cousin", "POST /messages", 400, "IDEMPOTENCY_KEY_INVALID",
        "The header Idempotency-Key must be 1 to 255 characters of printable ASCII.",
        text(), {"Idempotency-Key": "a\tb"},
    ),
    Slip(
        "a version that is old", "PATCH /numbers/<number>", 412, "VERSION_MISMATCH",
        "The record has changed: If-Match does not name its version. Read it again and repeat the change.",
        {"rateLimit": {"perSecond": 70}}, {"If-Match": '"999999"'},
    ),
    Slip(
        "a version without its quotes", "PATCH /numbers/<number>", 412, "VERSION_MISMATCH",
        'If-Match must be the ETag that the record was read with, with its quotes, such as "7".',
        {"rateLimit": {"perSecond": 70}}, {"If-Match": "999999"},
    ),
    Slip(
        "a version on a create", "POST /messages", 412, "VERSION_MISMATCH",
        "If-Match cannot be used here: the record does not exist yet. Leave the header out.",
        text(), {"If-Match": '"1"'},
    ),
    *(
        Slip(
            f"a version on a create that its body does not allow: {request}", request, 422, code, detail, body,
            {"If-Match": '"1"', "Idempotency-Key": "never-kept"}, path=path,
        )
        for request, code, path, detail, body in (
            ("POST /messages", "METADATA_INVALID", "/metadata", ODD_KEY, text(metadata={"1": 1})),
            ("POST /messages/bulk", "METADATA_INVALID", "/metadata", ODD_KEY,
             {**without(TEXT, "to"), "recipients": [{"to": CUSTOMER}], "metadata": {"1": 1}}),
            ("POST /v2/sms/messages", "METADATA_INVALID", "/metadata", ODD_KEY,
             {"to": CUSTOMER, "text": "Oi", "metadata": {"1": 1}}),
            ("POST /v2/rcs/messages", "METADATA_INVALID", "/metadata", ODD_KEY,
             {"to": CUSTOMER, "content": {"text": "Oi"}, "metadata": {"1": 1}}),
            ("POST /v2/email/messages", "METADATA_INVALID", "/metadata", ODD_KEY,
             {"to": "ana@example.com", "subject": "Oi", "text": "Oi", "metadata": {"1": 1}}),
            ("POST /v2/push/messages", "METADATA_INVALID", "/metadata", ODD_KEY,
             {"title": "Oi", "body": "Oi", "platforms": ["ios"], "segment": "all_opt_in", "metadata": {"1": 1}}),
            ("POST /v2/events", "METADATA_INVALID", "/properties", ODD_KEY,
             {"name": "x", "eventId": "1", "contact": {"email": "ana@example.com"}, "properties": {"1": 1}}),
            ("POST /contacts", "VALIDATION_ERROR", "/phone", "1 invalid field: /phone is required.", {}),
            ("POST /v2/journeys", "JORNADA_COM_PROBLEMAS", "/inicio",
             "The journey has problems: SEM_INICIO; `meta.problemas` lists them.",
             {"name": "x", "gatilho": {"tipo": "api"}, "inicio": "a", "passos": []}),
        )
    ),
    Slip(
        "a number that would come back as another", "POST /v2/sms/messages", 422, "VALIDATION_ERROR",
        "1 invalid field: /metadata/order must be a whole number of 64 bits: write a longer one as a text.",
        b'{"to": "%s", "text": "Oi", "metadata": {"order": 12345678901234567890123}}' % CUSTOMER.encode(),
        path="/metadata/order",
    ),
    Slip(
        "an address at nowhere", "POST /contacts", 422, "VALIDATION_ERROR",
        "1 invalid field: /email must be an e-mail address.",
        {"phone": "+55 (11) 98765-1999", "email": "ana@example..com"}, path="/email",
    ),
    Slip(
        "a list's name that is taken", "POST /v2/lists", 409, "LIST_NAME_TAKEN", "Another list has this name.",
        {"name": "0 of First"},
    ),
    Slip(
        "a contact's phone that is taken", "POST /contacts", 409, "PHONE_TAKEN", "Another contact has this phone.",
        {"phone": "+55 (11) 98765-1000"}, path="/phone",
    ),
    Slip(
        "a webhook to this machine's neighbours", "POST /webhooks", 422, "URL_NOT_ALLOWED",
        "1 invalid field: /url cannot be called: its host is an IP address, give a name "
        "(the operator may open networks with RECADO_SSRF_ALLOW_CIDRS).",
        {"url": "http://10.0.0.1/", "events": ["message.sent"]}, path="/url",
    ),
    Slip(
        "an event that does not exist", "POST /webhooks", 422, "VALIDATION_ERROR",
        "1 invalid field: /events/0 is not known: did you mean message.sent?",
        {"url": "http://127.0.0.1:1/", "events": ["message.send"]}, path="/events/0",
    ),
    Slip(
        "an event like no other", "POST /webhooks", 422, "VALIDATION_ERROR",
        "1 invalid field: /events/0 is not valid, and `errors` says why.",
        {"url": "http://127.0.0.1:1/", "events": ["everything"]}, path="/events/0",
    ),
]  # fmt: skip

SLIPS = [*CREDENTIALS, *MISSING, *ADDRESSES, *BODIES, *MESSAGES, *LISTS_AND_HEADERS]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """An application of its own: what is sent here never comes to rest, for which the walk would wait."""
    with Served(tmp_path_factory.mktemp("mistakes")) as application:
        yield application


@pytest.fixture(scope="module")
def tenants(served: Served) -> tuple[Tenant, Tenant]:
    with asyncio.Runner() as runner:
        first, second = (runner.run(settle(served.url, ADMIN_TOKEN, name)) for name in ("First", "Second"))
    return first, second


@pytest.fixture(scope="module")
def places(served: Served, tenants: tuple[Tenant, Tenant]) -> dict[str, str]:
    """What the names in the table stand for."""
    with asyncio.Runner() as runner:
        return runner.run(prepared_places(served.url, *tenants))


async def prepared_places(url: str, mine: Tenant, theirs: Tenant) -> dict[str, str]:
    number = mine.ids[NUMBER]
    async with Api(url, mine.token) as api:
        approved = await approved_template(api, number, "authentication")
        revoked = await api.call("POST", "/v2/api-keys", {"name": "gone", "scopes": ["messages:read"]})
        await api.call("DELETE", f"/v2/api-keys/{revoked['id']}")
        reader = await api.call("POST", "/v2/api-keys", {"name": "reader", "scopes": ["messages:read"]})
        limits = {"read": {"perSecond": 0.011, "capacity": 1}}
        slow = {"name": "slow", "scopes": ["messages:read"], "rateLimits": limits}
        slow_key = (await api.call("POST", "/v2/api-keys", slow))["token"]
        await api.call("GET", "/messages", token=slow_key)
        sent = await api.call("POST", "/messages", {**TEXT, "numberId": number}, key=_USED)
        archived = await api.call("POST", "/messages", later(number))
        await api.call("POST", f"/messages/{archived['id']}/archive")
        new = {"phoneNumberId": "of live", "businessAccountId": "of live", "displayPhone": "+15550102031"}
        live = await api.call("POST", "/numbers", new, token=mine.live)
        idle, flagged = [await spare_number(api, status) for status in ("disconnected", "flagged")]
        poor = await api.call(
            "POST", "/v2/admin/organizations", {"name": "Poor", "ownerEmail": "poor@example.com"}, token=ADMIN_TOKEN
        )
    poor_key = poor["keys"]["test"]["token"]
    async with Api(url, poor_key) as api:
        poor_number = (await api.call("GET", "/numbers"))["items"][0]["id"]
        opening = {"numberId": poor_number, "from": CUSTOMER, "text": "good morning"}
        await api.call("POST", "/v2/sandbox/inbound", opening)
        coins = (await api.call("GET", "/v2/wallet"))["balanceCoins"]
        debit = {"env": "test", "coins": -coins, "reference": "all of it"}
        way = f"/v2/admin/organizations/{poor['id']}/wallet-credits"
        await api.call("POST", way, debit, token=ADMIN_TOKEN)
    return {
        "key": mine.token, "revoked": revoked["token"], "reader": reader["token"], "number": number,
        "live number": live["id"], "template": mine.ids[TEMPLATE], "foreign template": theirs.ids[TEMPLATE],
        "approved": approved, "unknown template": TEMPLATE + "0" * 21, "list": mine.ids[LIST],
        "archived": archived["id"], "sent": sent["id"], "poor key": poor_key, "poor number": poor_number,
        "idle number": idle, "flagged number": flagged,
        "slow key": slow_key, "live key": mine.live,
    }  # fmt: skip


async def spare_number(api: Api, status: str) -> str:
    """A number of test in this state."""
    new = {"phoneNumberId": f"made {status}", "businessAccountId": f"{status} there", "displayPhone": "+15550102031"}
    number = str((await api.call("POST", "/numbers", new))["id"])
    await api.call("POST", f"/v2/sandbox/numbers/{number}", {"status": status})
    return number


@pytest.mark.parametrize("slip", SLIPS, ids=lambda slip: slip.name)
async def test_a_mistake_is_answered_with_what_where_and_what_to_do(
    slip: Slip, served: Served, places: dict[str, str]
) -> None:
    def filled(value: str) -> str:
        return re.sub("<([a-z ]+)>", lambda name: places[name[1]], value)

    content = slip.body if isinstance(slip.body, bytes | None) else filled(orjson.dumps(slip.body).decode()).encode()
    headers = {**(JSON if content else {}), **{name: filled(value) for name, value in slip.headers.items()}}
    if slip.credential is not None:
        headers["Authorization"] = f"Bearer {filled(slip.credential)}"
    data = None if content is None else io.BytesIO(content)
    method, _, path = filled(slip.request).partition(" ")
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, served.url + path, data=data, headers=headers) as answer,
    ):
        told = await answer.json(content_type=None)
    assert (answer.status, told["code"], told["detail"]) == (slip.status, slip.code, filled(slip.sentence))
    if slip.path is not None:
        assert [error["path"] for error in told["errors"]] == slip.path.split(" ")
    assert told["type"] == f"{served.url}/problems/{problem_slug(slip.code)}"


def test_there_are_at_least_forty_and_most_statuses_among_them() -> None:
    assert len(SLIPS) >= 40
    assert len({slip.name for slip in SLIPS}) == len(SLIPS)
    assert {slip.status for slip in SLIPS} == {400, 401, 402, 403, 404, 405, 409, 412, 413, 415, 422, 429}
    assert all(CODES[slip.code].status == slip.status for slip in SLIPS)
