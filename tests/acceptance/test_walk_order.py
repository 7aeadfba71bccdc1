"""Every route that takes a body and an `If-Match`: what is wrong with the body is told first (C2.6, C6.3)."""

from dataclasses import replace
from typing import Any, Final

import pytest
from tests.acceptance.caller import never
from tests.acceptance.test_walk import session_of
from tests.acceptance.walk import IN_PARTS, Walk

from recado.domain.core.errors import CODES
from recado.domain.core.ids import ACCOUNT, COMPANY, CONTACT, NUMBER
from recado.http.api.route import Access, Route, as_modelled

FAR: Final = "2099-01-01T00:00:00Z"
PAST: Final = "2001-01-01T00:00:00Z"

# What each create finds wrong beyond the model of its body, as changes of its sample: a value `...` is left out.
# Whoever adds a create that examines its body says here what it refuses.
UNFIT: Final[dict[str, dict[str, Any]]] = {
    "createAccount": {"role": "owner"},
    "createApiKey": {"expiresAt": PAST},
    "createBatch": {"scheduledAt": FAR},
    "createCompany": {"responsavelId": never(ACCOUNT)},
    "createContact": {"companyId": never(COMPANY)},
    "createCustomerEvent": {"occurredAt": FAR},
    "createEmail": {"metadata": {"a b": "c"}},
    "createEmailTemplate": {"html": "<p>{{nobody}}</p>", "mjml": ..., "variables": []},
    "createFlow": {"numberId": never(NUMBER)},
    "createJourney": {"inicio": "nowhere"},
    "createJourneyEntry": {"contato": {"contactId": never(CONTACT)}},
    "createMessage": {"scheduledAt": FAR},
    "createNumber": {"displayPhone": "+1 nobody"},
    "createOriginLink": {"numberId": never(NUMBER)},
    "createPushMessage": {"scheduledAt": FAR},
    "createRcs": {"scheduledAt": FAR},
    "createSegment": {"filters": [{"field": "nothing", "op": "eq", "value": 1}], "filterTree": ...},
    "createSms": {"scheduledAt": FAR},
    "createTemplate": {"numberId": never(NUMBER)},
    "createTopUp": {"coins": ..., "amountCents": 100},
    "createWebhook": {"url": "http://10.0.0.1/hook"},
    "importContacts": {"options": {"listId": never("lst_")}},
    "resendMessages": {"numberId": never(NUMBER)},
    "simulateInbound": {"quoted": never("msg_")},
    "testJourney": {"contactId": never(CONTACT)},
    "uploadMedia": {"mimeType": "video/mp4"},
    "uploadMediaBinary": {"x-content-type": "video/mp4"},
    "uploadSocialMedia": {"mimeType": "video/mp4"},
    "uploadSocialMediaBinary": {"x-content-type": "video/mp4"},
}
# The same of operations on what is there: of some of those that find more wrong than their models do.
UNFIT_CHANGES: Final[dict[str, dict[str, Any]]] = {
    "replaceJourney": {"inicio": "nowhere"},
    "replayWebhook": {"from": PAST, "to": PAST},
    "simulateJourney": {"publico": {"contactId": never(CONTACT)}},
    "updateCompany": {"responsavelId": never(ACCOUNT)},
    "updateContact": {"companyId": never(COMPANY)},
    "updateEmailTemplate": {"html": "<p>{{nobody}}</p>"},
    "updateSegment": {"filterTree": {}},
    "updateWebhook": {"url": "http://10.0.0.1/hook"},
}
# A new message is refused for what is wrong with the old one, and not for its body.
_OF_ANOTHER: Final = {"reprocessMessage"}
_BODY_STATUSES: Final = {400, 403, 413, 415, 422}


def creates(walk: Walk) -> list[Route]:
    return walk.open_routes(lambda route: route.creates)


def test_every_create_that_examines_its_body_is_asked(served: Any) -> None:
    examining = {route.operation_id for route in served.routes if route.creates and route.examine is not as_modelled}
    assert examining == UNFIT.keys()


def test_no_create_refuses_more_than_its_model_without_examining_it(served: Any) -> None:
    for route in served.routes:
        if route.creates and route.examine is as_modelled and route.operation_id not in _OF_ANOTHER:
            assert not [code for code in route.errors if CODES[code].status in _BODY_STATUSES], route.operation_id


@IN_PARTS
async def test_a_version_of_what_is_not_there_yet_is_refused_and_nothing_is_made(
    walk: Walk, subtests: pytest.Subtests
) -> None:
    for route in creates(walk):
        good = await walk.some(route)
        with subtests.test(route.operation_id):
            async with walk.unchanged():
                answer = await walk.call(route, good, headers={"If-Match": "*"})
            assert (answer.status, answer.code) == (412, "VERSION_MISMATCH"), answer.body


@IN_PARTS
async def test_another_version_is_refused_and_nothing_is_changed(walk: Walk, subtests: pytest.Subtests) -> None:
    for route in walk.open_routes(lambda route: route.method != "GET" and (route.versioned or route.matches)):
        if route.creates:
            continue
        good = await walk.some(route)
        with subtests.test(route.operation_id):
            async with walk.unchanged():
                answer = await walk.call(route, good, headers={"If-Match": '"0"'})
            assert (answer.status, answer.code) == (412, "VERSION_MISMATCH"), answer.body


async def test_what_is_wrong_with_a_body_is_told_before_its_version(walk: Walk, subtests: pytest.Subtests) -> None:
    cases = UNFIT | UNFIT_CHANGES
    for route in walk.routes(lambda route: route.operation_id in cases, Access.KEY):
        with subtests.test(route.operation_id):
            good, changes = await walk.some(route), cases[route.operation_id]
            if good.raw is None:
                body = {name: value for name, value in {**good.body, **changes}.items() if value is not ...}
                unfit = replace(good, body=body)
            else:
                unfit = replace(good, headers={**good.headers, **changes})
            guarded = replace(unfit, headers={**unfit.headers, "If-Match": '"0"'})
            token = None
            if route.operation_id == "createAccount":  # refused to who grants more than he holds
                token = await session_of(walk, "operator", "accounts:write")
            async with walk.unchanged():
                alone, told = [await walk.call(route, request, token) for request in (unfit, guarded)]
            assert alone.status in _BODY_STATUSES, alone.body
            assert told.told == alone.told
