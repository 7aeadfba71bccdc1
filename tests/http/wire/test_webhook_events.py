"""The events of webhooks as the document describes them."""

import pytest
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from recado.domain.core.events import EVENT_NAMES, JOURNEY_ACTION
from recado.http.openapi.document import document
from recado.http.webhook_events import EVENTS

DOCUMENT = document((), base_url="https://api.example.com", version="1", events=EVENTS)


def test_every_event_described_is_one_that_a_subscription_may_name_or_a_journeys_call() -> None:
    assert set(EVENTS) == {*EVENT_NAMES, JOURNEY_ACTION}
    assert set(DOCUMENT["webhooks"]) == set(EVENTS)
    OpenAPIV31SpecValidator(DOCUMENT | {"paths": {}}).validate()


@pytest.mark.parametrize("event", EVENTS)
def test_the_example_of_an_event_is_of_its_schema(event: str) -> None:
    content = DOCUMENT["webhooks"][event]["post"]["requestBody"]["content"]["application/json"]
    whole = {**content["schema"], "components": DOCUMENT["components"]}
    assert [error.message for error in OAS31Validator(whole).iter_errors(content["example"])] == []
    named = DOCUMENT["components"]["schemas"][EVENTS[event].__name__.lstrip("_")]["properties"]
    assert set(content["example"]["data"]) <= set(named)


def test_the_call_of_a_journey_says_by_which_key_it_is_known_again_and_what_each_answer_does() -> None:
    call = DOCUMENT["webhooks"][JOURNEY_ACTION]["post"]
    assert [(each["name"], each["in"]) for each in call["parameters"]] == [("X-SVC-Idempotency-Key", "header")]
    assert set(call["responses"]) == {"2XX", "429", "5XX", "default"}
    assert "parameters" not in DOCUMENT["webhooks"]["message.sent"]["post"]
    members = call["requestBody"]["content"]["application/json"]["schema"]
    assert list(members["properties"]) == members["required"]
