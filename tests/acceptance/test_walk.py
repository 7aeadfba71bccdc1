"""Every route of the table, whoever asks for it: credentials, scopes, paths and methods (C2.1, C2.2, C2.6, C3)."""

from dataclasses import replace

import pytest
from tests.acceptance.caller import Request, never
from tests.acceptance.samples import SAMPLES, new
from tests.acceptance.served import ADMIN_TOKEN
from tests.acceptance.tenants import PASSWORD
from tests.acceptance.walk import IN_PARTS, Walk

from recado.domain.access.account import ANALYST_SCOPES
from recado.domain.access.scopes import ALL_SCOPES, KEY_SCOPES, implied
from recado.domain.core.ids import ACCOUNT
from recado.http.api.route import Access

SCOPES = {
    "messages:read": "listMessages getMessage listBatches getBatch exportChatapp getMedia downloadMedia",
    "campaigns:read": "listCampaigns getCampaign listJourneys getJourney listExecutions getExecution getJourneySteps "
    "simulateJourney",
    "campaigns:write": "createJourney replaceJourney duplicateJourney createJourneyVersion activateJourney testJourney "
    "pauseJourney archiveJourney createJourneyEntry cancelExecution",
    "messages:send": "createMessage reprocessMessage resendMessages archiveMessage simulateInbound "
    "uploadMedia uploadMediaBinary uploadSocialMedia uploadSocialMediaBinary "
    "createBatch pauseBatch resumeBatch cancelBatch",
    "messages:force": "forceMessage",
    "numbers:read": "listNumbers getNumber getNumberHealth getNumberUsage getNumberUsageSeries listOriginLinks",
    "numbers:write": "createNumber updateNumber deleteNumber connectNumber disconnectNumber simulateNumber"
    " createOriginLink updateOriginLink deleteOriginLink",
    "templates:read": "listTemplates getTemplate",
    "templates:write": "createTemplate updateTemplate deleteTemplate submitTemplate syncTemplates simulateTemplate",
    "flows:read": "listFlows getFlow",
    "flows:write": "createFlow updateFlow deleteFlow publishFlow pauseFlow resumeFlow deprecateFlow archiveFlow",
    "org:read": "getOrganization",
    "org:write": "updateOrganization",
    "apikeys:read": "listApiKeys getApiKey",
    "apikeys:write": "createApiKey updateApiKey rotateApiKey revokeApiKey",
    "accounts:read": "listAccounts",
    "accounts:write": "createAccount updateAccount disableAccount inviteAccount",
    "audit:read": "listAudit",
    "ops:read": "listNumberStates getNumberState listActors listWebhookStates listProviderStates streamOperations",
    "ops:write": "pauseNumber resumeNumber restartActor",
    "contacts:pii": "revealDocuments",
    "contacts:read": "listContacts getContact getContactImport listContactFields listContactConsents listDebtorGroups "
    "listLists getList listSegments getSegment previewSegment listSegmentContacts listCustomerEvents",
    "contacts:write": "createContact updateContact deleteContact optOutContact importContacts "
    "createList updateList deleteList addListMembers replaceListMembers removeListMembers "
    "createSegment updateSegment deleteSegment createCustomerEvent",
    "email:read": "listEmailTemplates getEmailTemplate previewEmailTemplate listEmailSenders listEmailSuppressions "
    "exportEmail listEmails getEmail",
    "email:send": "createEmail",
    "social:read": "listSocialAccounts getSocialAccount",
    "social:write": "createSocialAccount updateSocialAccount deleteSocialAccount connectSocialAccount "
    "disconnectSocialAccount",
    "email:write": "createEmailTemplate updateEmailTemplate deleteEmailTemplate "
    "createEmailSender updateEmailSender deleteEmailSender verifyEmailSender"
    " createEmailSuppression deleteEmailSuppression",
    "sms:read": "listSms getSms exportSms",
    "rcs:read": "listRcs getRcs exportRcs",
    "rcs:send": "createRcs",
    "sms:send": "createSms previewSms",
    "push:register": "registerDevice optOutDevice openPushDispatch",
    "push:read": "listPushApps getPushApp listDevices sumDevices listPushMessages getPushMessage listPushDispatches",
    "push:send": "createPushApp updatePushApp deletePushApp createPushMessage previewPushMessage cancelPushMessage",
    "crm:read": "listCompanies getCompany listCompanyContacts",
    "crm:write": "createCompany updateCompany deleteCompany",
    "": "endSession",
    "wallet:read": "getWallet getPrices listLedger listTopUps getTopUp",
    "wallet:write": "updateWallet createTopUp",
    "webhooks:read": "listWebhooks getWebhook listWebhookDeliveries getWebhookDelivery",
    "webhooks:write": "createWebhook updateWebhook deleteWebhook rotateWebhook testWebhook "
    "replayWebhook replayWebhookDelivery",
}
SHARED_BY_ENVIRONMENTS = {ACCOUNT}
CLASSES = {
    "addListMembers": "bulk",
    "createBatch": "bulk",
    "createCustomerEvent": "send",
    "createJourneyEntry": "send",
    "createMessage": "send",
    "createSms": "send",
    "createRcs": "send",
    "createEmail": "send",
    "createPushMessage": "send",
    "previewPushMessage": "bulk",
    "registerDevice": "device",
    "optOutDevice": "device",
    "openPushDispatch": "device",
    "previewSms": "bulk",
    "exportChatapp": "bulk",
    "exportEmail": "bulk",
    "exportRcs": "bulk",
    "exportSms": "bulk",
    "importContacts": "bulk",
    "uploadMedia": "media",
    "uploadMediaBinary": "media",
    "uploadSocialMedia": "media",
    "uploadSocialMediaBinary": "media",
    "downloadMedia": "media",
    "previewEmailTemplate": "bulk",
    "previewSegment": "bulk",
    "simulateJourney": "bulk",
    "removeListMembers": "bulk",
    "replaceListMembers": "bulk",
    "replayWebhook": "bulk",
    "replayWebhookDelivery": "bulk",
    "resendMessages": "bulk",
}

# A request that nobody gets past the steps before parsing with (C2.6): not one of its parts is right.
RUBBISH = {"query": {"limit": "x", "from": "x"}, "body": None, "raw": b"{", "headers": {"If-Match": '"0"'}}


def test_every_route_has_a_sample(walk: Walk) -> None:
    served = {route.operation_id for route in walk.table}
    missing, left = sorted(served - set(SAMPLES)), sorted(set(SAMPLES) - served)
    assert missing == [], f"add a request that succeeds to tests/acceptance/samples*.py for {', '.join(missing)}"
    assert left == [], f"no route has the operations {', '.join(left)} of tests/acceptance/samples*.py any more"


def test_scopes_and_classes_are_those_of_the_interface(walk: Walk) -> None:
    """The one thing about a route that no other part of it tells: it is written here a second time (C3.2, C6.1)."""
    scopes: dict[str, set[str]] = {}
    for route in walk.routes(lambda _: True, Access.KEY):
        scopes.setdefault(route.scope or "", set()).add(route.operation_id)
        default = "read" if route.method == "GET" else "write"
        assert route.rate_class == CLASSES.get(route.operation_id, default), route.operation_id
    assert scopes == {scope: set(operations.split()) for scope, operations in SCOPES.items()}


async def test_every_sample_succeeds_as_the_document_says(walk: Walk, subtests: pytest.Subtests) -> None:
    for route in walk.table:
        with subtests.test(route.operation_id):
            answer = await walk.call(route, await walk.fresh(route))
            assert answer.status in (route.responses or {200}), answer.body


@IN_PARTS
async def test_without_a_valid_credential_nothing_is_told_or_done(walk: Walk, subtests: pytest.Subtests) -> None:
    key = walk.mine.token
    wrong: dict[str, str | None] = {
        "none": None,
        "of another form": f"Basic {key}",
        "empty": "Bearer ",
        "with another checksum": f"Bearer {key[:-1]}{'0' if key[-1] != '0' else '1'}",
        "unknown": f"Bearer {never('svc_test_')}",
    }
    for route in walk.routes(lambda _: True, Access.KEY, Access.ADMIN):
        other = {"of another kind": f"Bearer {ADMIN_TOKEN if route.access is Access.KEY else key}"}
        if route.administered:
            other = {}
        request = replace(await walk.some(route), **RUBBISH)
        async with walk.unchanged():
            for name, credential in (wrong | other).items():
                with subtests.test(route.operation_id, credential=name):
                    headers = {**request.headers, **({} if credential is None else {"Authorization": credential})}
                    answer = await walk.caller.call(route, replace(request, headers=headers), None)
                    assert (answer.status, answer.code) == (401, "UNAUTHORIZED")


async def test_a_revoked_key_opens_nothing(walk: Walk, subtests: pytest.Subtests) -> None:
    made = await walk.api.call("POST", "/v2/api-keys", {"name": "gone", "scopes": sorted(KEY_SCOPES)})
    await walk.api.call("DELETE", f"/v2/api-keys/{made['id']}")
    for route in walk.routes(lambda _: True, Access.KEY):
        with subtests.test(route.operation_id):
            answer = await walk.call(route, await walk.some(route), made["token"])
            assert (answer.status, answer.code) == (401, "API_KEY_REVOKED")


@IN_PARTS
async def test_a_key_without_the_scope_is_refused_before_anything_is_read(
    walk: Walk, subtests: pytest.Subtests
) -> None:
    routes = walk.routes(lambda route: route.scope is not None, Access.KEY)
    for scope, more in sorted({(route.scope, route.or_scopes) for route in routes if route.scope}):
        others = sorted(other for other in KEY_SCOPES if implied({other}).isdisjoint({scope, *more}))
        key = await walk.api.call("POST", "/v2/api-keys", {"name": f"no {scope}", "scopes": others})
        for route in (route for route in routes if (route.scope, route.or_scopes) == (scope, more)):
            request = replace(await walk.some(route), **RUBBISH)
            with subtests.test(route.operation_id):
                async with walk.unchanged():
                    answer = await walk.call(route, request, key["token"])
                if route.session_only:
                    assert (answer.status, answer.code) == (403, "SESSION_ONLY")
                else:
                    assert (answer.status, answer.code) == (403, "SCOPE_REQUIRED")
                    assert answer.body["meta"] == {"requiredScope": scope}
        await walk.api.call("DELETE", f"/v2/api-keys/{key['id']}")


@IN_PARTS
async def test_a_session_without_the_scope_is_refused_before_anything_is_read(
    walk: Walk, subtests: pytest.Subtests
) -> None:
    token = await session_of(walk, "analyst")
    lacking = ALL_SCOPES - ANALYST_SCOPES
    for route in walk.routes(lambda route: route.scope in lacking, Access.KEY):
        request = replace(await walk.some(route), **RUBBISH)
        with subtests.test(route.operation_id):
            async with walk.unchanged():
                answer = await walk.call(route, request, token)
            assert (answer.status, answer.code) == (403, "SCOPE_REQUIRED")
            assert answer.body["meta"] == {"requiredScope": route.scope}


@IN_PARTS
async def test_what_takes_a_key_takes_a_session_too(walk: Walk, subtests: pytest.Subtests) -> None:
    for route in walk.routes(lambda route: not route.session_only, Access.KEY):
        with subtests.test(route.operation_id):
            answer = await walk.call(route, await walk.fresh(route), walk.mine.sessions["test"])
            assert answer.status in route.responses, answer.body


async def session_of(walk: Walk, role: str, *extra_scopes: str) -> str:
    """The token of a session of a new account."""
    email = f"{new('someone')}@example.com"
    person = {"name": "Someone", "email": email, "role": role, "extraScopes": extra_scopes}
    made = await walk.api.call("POST", "/v2/accounts", person, token=walk.mine.sessions["test"])
    await walk.api.call("POST", "/v2/accounts/accept-invite", {"token": made["inviteToken"], "password": PASSWORD})
    signed_in = await walk.api.call("POST", "/v2/sessions", {"email": email, "password": PASSWORD})
    return str(signed_in["tokens"]["test"])


ALSO_SAID_ALIKE = {"of the other environment", "of another organization"}
"""An id of another form is told what it lacks; one of the right form never learns whose it is."""


@IN_PARTS
async def test_ids_of_others_answer_exactly_like_ids_that_never_were(walk: Walk, subtests: pytest.Subtests) -> None:
    for route in walk.open_routes(lambda route: route.path_ids):
        good = await walk.some(route)
        for name, prefix in route.path_ids.items():
            live = walk.mine.credential(route, "live") if route.access is Access.KEY else None
            asked: dict[str, tuple[str, str | None]] = {
                "of another form": ("nothing", None),
                "too short": (good.path[name][:-1], None),
                "too long": (good.path[name] + "0", None),
                "of another kind": (never("msg_" if prefix != "msg_" else "num_"), None),
                "with a sign that ids have not": (good.path[name][:-1] + "_", None),
                "of the other environment": (good.path[name], live),
            }
            if route.access is Access.KEY:
                asked["of another organization"] = (walk.foreign.ids[prefix], None)
            if route.access is not Access.KEY or prefix in SHARED_BY_ENVIRONMENTS:
                del asked["of the other environment"]
            async with walk.unchanged():
                missing = await walk.call(route, good, path={**good.path, name: never(prefix)})
                assert (missing.status, missing.code) == (404, "NOT_FOUND")
                for case, (value, token) in asked.items():
                    with subtests.test(route.operation_id, id=case):
                        answer = await walk.call(route, good, token, path={**good.path, name: value})
                        assert (answer.status, answer.code) == (missing.status, missing.code)
                        if case in ALSO_SAID_ALIKE:
                            # With the same credential: the sandbox tells a live one only that it is not for it.
                            nobodys = await walk.call(route, good, token, path={**good.path, name: never(prefix)})
                            assert answer.told == nobodys.told


async def test_other_methods_are_named_in_allow(walk: Walk, subtests: pytest.Subtests) -> None:
    for path in sorted({route.path for route in walk.table}):
        here = {route.method: route for route in walk.table if route.path == path}
        request = await walk.some(next(iter(here.values())))
        allowed = {*here, *(("HEAD",) if "GET" in here else ())}
        for method in sorted({"GET", "POST", "PUT", "PATCH", "DELETE", "TRACE", "QUERY"} - allowed):
            with subtests.test(path, method=method):
                target = path.format(**request.path)
                answer = await walk.caller.send(method, target, headers={"Authorization": f"Bearer {walk.mine.token}"})
                assert (answer.status, answer.code) == (405, "METHOD_NOT_ALLOWED")
                assert set(answer.headers["Allow"].split(", ")) == allowed


async def test_what_can_be_read_can_be_asked_for_without_its_body(walk: Walk, subtests: pytest.Subtests) -> None:
    for route in walk.routes(lambda route: route.method == "GET"):
        with subtests.test(route.operation_id):
            request = await walk.some(route)
            token = walk.token(route)
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            target = route.path.format(**request.path)
            full = await walk.caller.send("GET", target, headers=headers)
            bare = await walk.caller.send("HEAD", target, headers=headers)
            assert (bare.status, bare.body) == (full.status, None)
            for name in ("Content-Type", "Cache-Control", "ETag"):
                assert bare.headers.get(name) == full.headers.get(name)


async def test_a_callback_without_a_valid_signature_is_not_taken(walk: Walk, subtests: pytest.Subtests) -> None:
    for route in walk.routes(lambda _: True, Access.CALLBACK):
        good = await walk.fresh(route)
        refused: dict[str, Request] = {
            "unsigned": replace(good, headers={}),
            "of another body": replace(good, raw=good.content + b" " if good.content else b" "),
        }
        async with walk.unchanged():
            for name, request in refused.items():
                with subtests.test(route.operation_id, signature=name):
                    answer = await walk.call(route, request)
                    assert (answer.status, answer.code) == (401, "INVALID_SIGNATURE")
            for name in good.path:
                with subtests.test(route.operation_id, unknown=name):
                    answer = await walk.call(route, good, path={**good.path, name: "nobody"})
                    assert (answer.status, answer.code) == (404, "NOT_FOUND")
