"""Ten thousand numbers at once: what operators see of them costs the event loop little, in short steps (C34.1)."""

import asyncio
import time
from collections import Counter
from typing import Any

import orjson
import pytest
from tests.http.conftest import ADMIN_TOKEN

from recado.actors.dispatch.gateway import Gateway
from recado.actors.dispatch.lane_context import LaneContext
from recado.actors.ops import kept
from recado.actors.ops.kept import Kept
from recado.actors.ops.process_figures import BatchFigures
from recado.channels.core.provider import Account
from recado.domain.channels.policies import NUMBERS_CHANNEL
from recado.domain.core.moments import Moments
from recado.domain.senders.sender import SenderKey
from recado.engine.actor import Actor
from recado.engine.process.loop_watch import LoopWatch
from recado.http.api.request_figures import RequestFigures
from recado.http.routes.ops import samples
from recado.http.routes.ops.metrics import Measured, Metrics
from recado.storage.ops import ops
from recado.storage.ops.scope import INSTALLATION, Scope

NUMBERS = 10_000
LOOP_SECONDS = 0.15
SCRAPE_SECONDS = 0.05
NOTHING: Any = None
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


@pytest.mark.long
@pytest.mark.alone
async def test_a_scrape_beside_ten_thousand_actors_takes_the_loop_a_moment(api: Any) -> None:
    context = LaneContext(api.states._live._context.records, NOTHING, NOTHING, Moments(api.clock), 0.0)
    for n in range(NUMBERS):
        number_id = f"num_{n:021}"
        api.lanes.spawn(SenderKey("org_1", "test", NUMBERS_CHANNEL, number_id), Nobody)
        gateway = Gateway(api.clock, context.room(NUMBERS_CHANNEL, "test"), channel=NUMBERS_CHANNEL)
        account = Account(sender_id=number_id, organization_id="org_1", env="test", provider_id="x", owner="y")
        gateway.connect(None, account, 80.0)
        context._own[number_id] = gateway
    figures = RequestFigures()
    for route in api.routes:
        figures.of(route).answered(200, 0.004)
    metrics = Metrics(
        Measured(
            clock=api.clock, requests=figures, activity=api.activity, context=context, push=list, root=api.lanes,
            batches=BatchFigures(), restarts=Counter({"Lane": 1}),
            webhooks=api.webhooks.dispatcher, refused=lambda: 0, postponed=lambda: 0,
            database=api.database, loop=LoopWatch(api.clock),
            queues=Kept(lambda _: ops.queue_totals(api.database), clock=api.clock),
            backlogs=Kept(lambda _: ops.backlogs(api.database), clock=api.clock),
        )
    )  # fmt: skip
    await metrics.text()
    began = time.thread_time()
    text = await metrics.text()
    took = time.thread_time() - began
    assert took < SCRAPE_SECONDS, f"{took * 1_000:.0f} ms of the loop"
    assert f'recado_actors{{kind="Nobody"}} {NUMBERS}.0'.encode() in text


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


async def test_the_sums_are_told_though_others_were_looked_at_since(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "MOST_SCOPES", 1)
    mine, theirs = (Scope(made.organization.id, "test") for made in api.organizations)
    for scope in (mine, theirs):
        await api.samples.numbers.get(scope)
    ((_, told),) = await api.samples.throughput.get(mine)
    assert orjson.loads(told)["numbers"] == 1


SCOPES = [Scope(f"org_{n:021}", env) for n in range(50) for env in ("live", "test")]
MOST_STATEMENTS = 12  # of a second; each by itself takes three or four


class Outlook:
    """Looks of the stream at so many scopes, one after the other, as they are asked of the database."""

    def __init__(self, api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.api = api
        self.statements = 0
        for name in ("fetch", "fetchrow", "fetchval"):
            monkeypatch.setattr(type(api.database.searches), name, self._counting(getattr(api.database.searches, name)))
            monkeypatch.setattr(type(api.database), name, self._counting(getattr(api.database, name)))

    def _counting(self, asks: Any) -> Any:
        async def counting(_: object, *arguments: Any, **options: Any) -> Any:
            self.statements += 1
            return await asks(*arguments, **options)

        return counting

    async def second(self) -> int:
        """So many statements."""
        samples, before = self.api.samples, self.statements
        looks = (samples.first_numbers, samples.first_actors, samples.webhooks, samples.throughput)

        async def look(scope: Scope) -> None:
            for each in looks:
                await each.get(scope)

        await asyncio.gather(*map(look, SCOPES))
        self.api.clock.shift(2.0)
        return self.statements - before


async def test_a_hundred_scopes_that_are_looked_at_share_statements(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for patience in ("SLOW", "REGULAR"):  # others use the machine
        monkeypatch.setattr(kept, patience, 60.0)
    outlook = Outlook(api, monkeypatch)
    for _ in range(2):  # whoever is looked at for the first time is read alone
        await outlook.second()
    seconds = [await outlook.second() for _ in range(3)]
    assert max(seconds) <= MOST_STATEMENTS, seconds
