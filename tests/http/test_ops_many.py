"""Ten thousand numbers at once: what operators see of them costs the event loop little, in short steps (C34.1)."""

import time
from typing import Any

import pytest
from tests.http.conftest import ADMIN_TOKEN

from recado.domain.channels.policies import NUMBERS_CHANNEL
from recado.domain.senders.sender import SenderKey
from recado.engine.actor import Actor
from recado.storage.ops.scope import INSTALLATION

NUMBERS = 10_000
LOOP_SECONDS = 0.15
MADE = """
insert into numbers
select (jsonb_populate_record(n, jsonb_build_object(
    'id', 'num_' || lpad(g::text, 21, '0'), 'phone_number_id', 'pn-' || g, 'display_phone', '+55119' || 80000000 + g
))).*
from numbers n, generate_series(1, $2::integer) g
where n.id = $1
"""


class Nobody(Actor):
    """Does nothing."""

    async def handle(self, message: object) -> None:
        """Nothing."""


@pytest.mark.long
@pytest.mark.alone
async def test_ten_thousand_numbers_are_shown_in_short_steps(api: Any) -> None:
    number = api.organizations[0].number
    await api.database.execute(MADE, number.id, NUMBERS)
    first = await api.get("/v2/ops/numbers", token=ADMIN_TOKEN)  # connections and usage are there then
    assert len(first.body["items"]) == NUMBERS + 2
    api.samples.forget_numbers(INSTALLATION)
    began = time.thread_time()
    await api.samples.numbers.get(INSTALLATION)
    took = time.thread_time() - began
    assert took < LOOP_SECONDS, f"{took * 1_000:.0f} ms of the loop"


async def test_many_numbers_are_answered_whole_and_each_once(api: Any) -> None:
    number = api.organizations[0].number
    await api.database.execute(MADE, number.id, 1_100)
    for n in (3, 600, 1_050):
        api.lanes.spawn(SenderKey(number.organization_id, "test", NUMBERS_CHANNEL, f"num_{n:021}"), Nobody)
    items = (await api.get("/v2/ops/numbers")).body["items"]
    assert len({each["numberId"] for each in items}) == len(items) == 1_101
    assert {each["numberId"] for each in items if each["actor"]["state"] == "running"} == {
        f"num_{n:021}" for n in (3, 600, 1_050)
    }
