"""The examples of the OpenAPI document: each request is sent as it stands there, each answer is of its schema."""

import re
from dataclasses import replace
from typing import Any

import orjson
import pytest
from tests.acceptance.samples_webhooks import room
from tests.acceptance.walk import Walk

from recado.http.api.examples import examples
from recado.http.api.route import Route

JSON = "application/json"
MAIN = {
    "createMessage", "listMessages", "getMessage", "createBatch", "pauseBatch", "resumeBatch", "createNumber",
    "listNumbers", "createTemplate", "submitTemplate", "createWebhook", "testWebhook", "createContact",
    "importContacts", "updateContact", "createCustomerEvent", "listCustomerEvents",
    "exportChatapp", "exportSms",
    "createList", "addListMembers", "previewSegment", "getWallet", "createApiKey",
    "createAccount", "inviteAccount", "createSession", "createSms", "previewSms", "listSms", "getSms",
    "createJourney", "simulateJourney",
    "createEmail", "listEmails", "getEmail",
    "createEmailSuppression", "createEmailSender", "createEmailTemplate", "previewEmailTemplate",
    "listNumberStates", "getNumberState", "pauseNumber", "resumeNumber", "listActors", "restartActor",
    "listWebhookStates", "listProviderStates",
}  # fmt: skip
_ID = re.compile(r"\b([a-z]{3,4}_)[0-9A-Za-z]{21}\b")


def test_the_main_operations_have_examples() -> None:
    assert set(examples()) == MAIN


async def test_each_example_is_taken_and_its_answer_is_of_the_form_that_is_shown(
    walk: Walk, subtests: pytest.Subtests
) -> None:
    await room(walk.api, "Orders")
    # In the order of the file: who signs in was invited before.
    routes = {route.operation_id: route for route in walk.table}
    for operation_id in examples():
        with subtests.test(operation_id):
            await check(walk, routes[operation_id])
    await room(walk.api, "Orders")


async def check(walk: Walk, route: Route) -> None:
    operation = walk.described(route)
    request, shown = await walk.fresh(route), {}
    if "requestBody" in operation:
        shown = operation["requestBody"]["content"][JSON]["example"]
        request = replace(request, body=bound(walk, shown))

    answer = await walk.call(route, request)

    if route.operation_id == "createAccount":
        await accept(walk, answer.body["inviteToken"])
    content = operation["responses"][str(answer.status)]["content"][JSON]
    assert walk.caller.misfits(content["schema"], content["example"]) == []
    for name, value in shown.items():
        if answer.body.get(name) == request.body[name]:  # the service repeats it: so does the example
            assert content["example"][name] == value


def bound(walk: Walk, body: Any) -> Any:
    """The body with the ids of records that are there."""
    return orjson.loads(_ID.sub(lambda found: walk.mine.ids[found[1]], orjson.dumps(body).decode()))


async def accept(walk: Walk, token: str) -> None:
    """Let the person who was invited choose the password of the example."""
    password = examples()["createSession"].request["password"]
    await walk.api.call("POST", "/v2/accounts/accept-invite", {"token": token, "password": password})
