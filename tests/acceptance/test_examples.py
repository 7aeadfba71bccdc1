"""The examples of the OpenAPI document: each request is sent as it stands there, each answer is of its schema.

The samples of code send the same.
"""

import ast
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeGuard
from urllib.parse import urlsplit

import orjson
import pytest
from tests.acceptance.samples_webhooks import room
from tests.acceptance.test_openapi import operations
from tests.acceptance.walk import Walk

from recado.http.api.route import Route
from recado.http.openapi.written_examples import examples

JSON = "application/json"
MAIN = {
    "createMessage", "listMessages", "getMessage", "createBatch", "pauseBatch", "resumeBatch", "createNumber",
    "listNumbers", "createTemplate", "submitTemplate", "createWebhook", "testWebhook", "createContact",
    "importContacts", "updateContact", "createCustomerEvent", "listCustomerEvents",
    "exportChatapp", "exportSms",
    "createList", "addListMembers", "previewSegment", "getWallet", "createApiKey",
    "createAccount", "inviteAccount", "createSession", "createSms", "previewSms", "listSms", "getSms",
    "createRcs", "listRcs", "getRcs",
    "createJourney", "simulateJourney",
    "createEmail", "listEmails", "getEmail",
    "createSocialAccount", "listSocialAccounts", "connectSocialAccount",
    "createEmailSuppression", "createEmailSender", "createEmailTemplate", "previewEmailTemplate",
    "listNumberStates", "getNumberState", "pauseNumber", "resumeNumber", "listActors", "restartActor",
    "listWebhookStates", "listProviderStates",
}  # fmt: skip
_ID = re.compile(r"\b([a-z]{3,4}_)[0-9A-Za-z]{21}\b")


# What a request that is right in itself is refused for: what it takes is there already, or is long past.
_REFUSED_IN_THIS_PLACE = {
    "acceptInvite": "UNAUTHORIZED",  # there is no such invitation
    "replayWebhook": "VALIDATION_ERROR",  # its period
    "updateCompany": "CNPJ_JA_CADASTRADO",  # by the example of createCompany
    "updateWebhook": "URL_NOT_ALLOWED",  # of a host that this machine does not find
}


def test_the_main_operations_have_examples() -> None:
    assert {name for name, example in examples().items() if example.response is not None} == MAIN


async def test_every_operation_has_examples_that_are_of_its_schemas(walk: Walk) -> None:
    lacking = []
    for operation_id, (_, _, operation) in operations(walk.document).items():
        successes = [response for status, response in operation["responses"].items() if status < "300"]
        for content in (part.get("content", {}).get(JSON) for part in (operation.get("requestBody", {}), *successes)):
            if content is not None and content["schema"]:  # of any shape is the document itself
                shown = shown_in(content)
                if not shown or any(walk.caller.misfits(content["schema"], each) for each in shown):
                    lacking.append(operation_id)
    assert lacking == []


async def test_a_body_that_each_channel_has_its_own_of_has_an_example_of_each(walk: Walk) -> None:
    for route in walk.routes(lambda route: bool(route.bodies)):
        content = walk.described(route)["requestBody"]["content"][JSON]
        assert content["examples"].keys() == {"chatapp", *route.bodies}


async def test_every_problem_of_an_operation_has_an_example_under_its_code(walk: Walk) -> None:
    components = walk.document["components"]
    for example in components["examples"].values():
        assert walk.caller.misfits({"$ref": "#/components/schemas/Problem"}, example["value"]) == []
    for _, _, operation in operations(walk.document).values():
        for status, response in operation["responses"].items():
            if status < "400":
                continue
            if "$ref" in response:
                response = components["responses"][response["$ref"].rpartition("/")[2]]
            content = response["content"]["application/problem+json"]
            assert list(content["examples"]) == content["schema"]["properties"]["code"]["enum"]
            for code, reference in content["examples"].items():
                shown = components["examples"][reference["$ref"].rpartition("/")[2]]["value"]
                assert (shown["code"], shown["status"]) == (code, int(status))


def test_every_operation_has_samples_of_code_that_send_its_example(served_document: Any) -> None:
    for method, path, operation in operations(served_document).values():
        curl, python = operation["x-codeSamples"]
        sent = next(iter(shown_in(operation.get("requestBody", {}).get("content", {}).get(JSON, {}))), None)
        words = shlex.split(curl["source"].replace("\\\n", ""))
        (address,) = (word for word in words if word.startswith("http"))
        assert re.fullmatch(re.sub(r"\{\w+\}", "[^/?]+", path), urlsplit(address).path)
        assert words[2] == method if "-X" in words else method == "GET"
        assert sent is None or orjson.loads(words[words.index("-d") + 1]) == sent
        call = next(node for node in ast.walk(ast.parse(python["source"])) if _is_request(node, method))
        assert ast.literal_eval(call.args[0]) == address
        bodies = [ast.literal_eval(given.value) for given in call.keywords if given.arg == "json"]
        assert bodies == ([] if sent is None else [sent])


def _is_request(node: ast.AST, method: str) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == f"requests.{method.lower()}"


async def test_each_example_is_taken_and_its_answer_is_of_the_form_that_is_shown(
    walk: Walk, subtests: pytest.Subtests
) -> None:
    await room(walk.api, "Orders")
    # In the order of the file: who signs in was invited before.
    routes = {route.operation_id: route for route in walk.table}
    for operation_id, example in examples().items():
        if example.response is not None:
            with subtests.test(operation_id):
                await check(walk, routes[operation_id])
    await room(walk.api, "Orders")


async def test_each_other_request_that_is_shown_is_taken(walk: Walk, subtests: pytest.Subtests) -> None:
    for route in walk.routes(lambda route: route.documented and route.operation_id not in MAIN):
        content = walk.described(route).get("requestBody", {}).get("content", {})
        if JSON not in content:
            continue
        with subtests.test(route.operation_id):
            request = await walk.fresh(route)
            answer = await walk.call(route, replace(request, body=bound(walk, shown_in(content[JSON])[0])))
            refused = _REFUSED_IN_THIS_PLACE.get(route.operation_id)
            assert answer.status < 300 if refused is None else answer.code == refused, answer.body


async def check(walk: Walk, route: Route) -> None:
    operation = walk.described(route)
    request = await walk.fresh(route)
    shown: Any = {}
    others: list[Any] = []
    if "requestBody" in operation:
        shown, *others = shown_in(operation["requestBody"]["content"][JSON])
        request = replace(request, body=bound(walk, shown))

    answer = await walk.call(route, request)
    for other in others:
        taken = await walk.call(route, replace(await walk.fresh(route), body=bound(walk, other)))
        assert taken.status == answer.status, taken.body

    if route.operation_id == "createAccount":
        await accept(walk, answer.body["inviteToken"])
    content = operation["responses"][str(answer.status)]["content"][JSON]
    assert walk.caller.misfits(content["schema"], content["example"]) == []
    for name, value in shown.items():
        if answer.body.get(name) == request.body[name]:  # the service repeats it: so does the example
            assert content["example"][name] == value


def shown_in(content: Mapping[str, Any]) -> list[Any]:
    """The examples of a body: one, or one for each channel whose body is another."""
    if "examples" in content:
        return [each["value"] for each in content["examples"].values()]
    return [content["example"]] if "example" in content else []


def bound(walk: Walk, body: Any) -> Any:
    """The body with the ids of records that are there."""
    return orjson.loads(_ID.sub(lambda found: walk.mine.ids[found[1]], orjson.dumps(body).decode()))


async def accept(walk: Walk, token: str) -> None:
    """Let the person who was invited choose the password of the example."""
    password = examples()["createSession"].request["password"]
    await walk.api.call("POST", "/v2/accounts/accept-invite", {"token": token, "password": password})
