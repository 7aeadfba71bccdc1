"""Every operation that the contract lists is served, is shown with examples, and is called by a test."""

import re
from pathlib import Path
from typing import Any
from unittest.mock import Mock

from tests.acceptance.samples import SAMPLES
from tests.acceptance.served import Served
from tests.acceptance.test_openapi import operations
from tests.acceptance.walk import Walk
from tests.docs.test_contract import section
from tests.http.messages import test_callbacks

from recado.http.api.route import Route
from recado.http.openapi.document import document
from recado.http.routes.inbound.callbacks import callback_routes

JSON = "application/json"
PAGE = (Path(__file__).parents[2] / "docs" / "contract.md").read_text("utf-8").partition('<a id="operations"></a>')[2]
LISTED = re.findall(r"^\| ([A-Z]+) \| (/\S*) \| `(\w+)` \| \[(C[\d.]+)\]\(#\4\) \|$", PAGE, re.MULTILINE)
# What is served only beside another provider than the one of these tests, and who calls it.
_ONLY_WITH_CLOUD = callback_routes(
    providers={("chatapp", "cloud"): Mock(challenged=True)}, take=Mock(), threads=Mock(), apart=Mock()
)[1]
_CALLED_ELSEWHERE = {
    _ONLY_WITH_CLOUD.operation_id: test_callbacks.test_who_knows_the_verify_token_gets_the_challenge_back
}


def row(route: Route) -> str:
    return f"| {route.method} | {route.path} | `{route.operation_id}` |"


def test_the_contract_lists_each_operation_that_is_served_and_states_how_many_they_are(
    served: Served,
) -> None:
    listed = [f"| {method} | {path} | `{name}` |" for method, path, name, _ in LISTED]
    routes = [row(route) for route in (*served.routes, _ONLY_WITH_CLOUD) if route.documented]
    missing, left = sorted(set(routes) - set(listed)), sorted(set(listed) - set(routes))
    assert missing == [], "add these rows, with their rules, to the last table of docs/contract.md"
    assert left == [], "no route has these rows of the last table of docs/contract.md any more"
    assert len(listed) == len(set(listed))
    assert re.findall(r"\*\*(\d+) operations\*\*", PAGE) == [str(len(routes))]


def test_the_rule_of_each_operation_says_what_it_takes_and_answers() -> None:
    """C7.1 and its like have a row for each operation."""
    told = {rule: section(rule) for *_, rule in LISTED}
    assert [each for each in LISTED if f"\n| {each[0]} {each[1]} |" not in told[each[3]]] == []


def test_each_operation_is_shown_with_a_call_and_each_json_with_an_example(served_document: Any) -> None:
    shown = operations(served_document) | operations(document([_ONLY_WITH_CLOUD], base_url="", version=""))
    assert shown.keys() == {name for _, _, name, _ in LISTED}
    bare = []
    for name, (_, _, operation) in shown.items():
        answers = [answer for status, answer in operation["responses"].items() if status < "300"]
        contents = [part.get("content", {}).get(JSON) for part in (operation.get("requestBody", {}), *answers)]
        # What is of any shape is this document itself.
        kept = [content for content in contents if content is not None and content["schema"]]
        examples = [not content.keys().isdisjoint({"example", "examples"}) for content in kept]
        if not all(examples) or len(operation["x-codeSamples"]) < 2:
            bare.append(name)
    assert bare == []


def test_each_operation_is_called(walk: Walk) -> None:
    """test_walk.py sends the sample of each operation of the table, and asks for the success that the document says."""
    called = {route.operation_id for route in walk.routes()} & SAMPLES.keys() | _CALLED_ELSEWHERE.keys()
    assert [name for _, _, name, _ in LISTED if name not in called] == []
