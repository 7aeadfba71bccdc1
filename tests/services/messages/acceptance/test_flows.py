"""Which flows an interactive message may open (C19)."""

from typing import Any

import orjson
import pytest
from tests.services.messages.acceptance.conftest import PHONE

from recado.domain.core.ids import FLOW
from recado.domain.flows.flow import FlowCategory, FlowStatus
from recado.storage.flows import flows
from recado.storage.flows.flows import Flow

DEFINITION = {
    "routing_model": {"ASK": ["END"]},
    "screens": [{"id": "END", "terminal": True}, {"id": "ASK"}],
}


async def stored(house: Any, **changes: Any) -> Flow:
    flow_id = house.ids.new(FLOW)
    fields = {
        "organization_id": house.number.organization_id, "id": flow_id, "env": "test", "number_id": house.number.id,
        "name": flow_id, "provider_categories": (FlowCategory.OTHER,), "flow_json": DEFINITION,
        "status": FlowStatus.ACTIVE, "provider_flow_id": "theirs", "updated_at": house.clock.now(),
    }  # fmt: skip
    async with house.db.transaction() as connection:
        return await flows.insert(connection, Flow(**{**fields, **changes}))


def opening(house: Any, flow: Flow, **more: Any) -> Any:
    action = {"flowId": flow.id, "cta": "Answer", **more}
    payload = {"interactive": {"type": "flow", "body": "Tell us.", "action": action}}
    return house.free_form(type="interactive", payload=payload)


async def test_a_message_keeps_what_the_provider_calls_its_flow(house: Any) -> None:
    await house.hear_from(PHONE, house.clock.now())
    flow = await stored(house)
    accepted = await house.accepted(opening(house, flow))
    payload = await house.db.fetchval("select payload from messages where id = $1", accepted.id)
    assert orjson.loads(payload)["interactive"]["action"] == {
        "flowId": flow.id,
        "cta": "Answer",
        "screen": "ASK",  # no other one leads to it
        "providerFlowId": "theirs",
    }


async def test_a_message_opens_the_screen_that_it_names(house: Any) -> None:
    await house.hear_from(PHONE, house.clock.now())
    flow = await stored(house)
    accepted = await house.accepted(opening(house, flow, screen="END"))
    payload = await house.db.fetchval("select payload from messages where id = $1", accepted.id)
    assert orjson.loads(payload)["interactive"]["action"]["screen"] == "END"
    refusal = await house.refusal(opening(house, flow, screen="GONE"))
    assert (refusal.code, refusal.meta["field"]) == ("REFERENCE_NOT_FOUND", "payload.interactive.action.screen")


@pytest.mark.parametrize("status", [each for each in FlowStatus if each is not FlowStatus.ACTIVE])
async def test_only_an_active_flow_is_opened(house: Any, status: FlowStatus) -> None:
    await house.hear_from(PHONE, house.clock.now())
    refusal = await house.refusal(opening(house, await stored(house, status=status)))
    assert (refusal.code, refusal.meta["field"]) == ("REFERENCE_NOT_FOUND", "payload.interactive.action.flowId")


async def test_a_flow_of_another_number_is_not_opened(house: Any) -> None:
    await house.hear_from(PHONE, house.clock.now())
    refusal = await house.refusal(opening(house, await stored(house, number_id="num_" + "0" * 21)))
    assert refusal.code == "REFERENCE_NOT_FOUND"
