"""What a provider says of a flow by itself: throttled, blocked, cleared, deprecated (C19)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.channels.core.events import FlowNews, FlowState
from recado.domain.core.ids import FLOW, NUMBER, ORGANIZATION
from recado.domain.flows.flow import FlowCategory, FlowProviderStatus, FlowStatus
from recado.domain.messages.changes import FlowChanged
from recado.domain.senders.number import NumberStatus
from recado.engine.clock import VirtualClock
from recado.services.flows.flow_reports import FlowReports, with_news
from recado.storage.core.connections.postgres import Database
from recado.storage.flows import flows
from recado.storage.flows.flows import Flow
from recado.storage.senders import numbers
from recado.storage.senders.numbers import Number

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
SOON = NOW + timedelta(seconds=1)
PLACES = [("org_a", "ba-1"), ("org_a", "ba-1"), ("org_b", "ba-2")]


def an_id(prefix: str, number: int) -> str:
    return f"{prefix}{number:021}"


FLOW_HERE = Flow(
    organization_id=an_id(ORGANIZATION, 0),
    id=an_id(FLOW, 0),
    env="live",
    number_id=an_id(NUMBER, 0),
    name="Survey",
    status=FlowStatus.ACTIVE,
    provider_flow_id="77",
    provider_status=FlowProviderStatus.PUBLISHED,
    provider_categories=(FlowCategory.SURVEY,),
    flow_json={"screens": []},
    updated_at=NOW,
)


def told(flow: Flow, *states: FlowState, at: datetime = NOW) -> tuple[str, str]:
    for state in states:
        flow = with_news(flow, FlowNews(state, at, "77"), NOW)
    return flow.status, flow.provider_status


@pytest.mark.parametrize(
    ("states", "then"),
    [
        (("throttled",), ("paused", "THROTTLED")),
        (("blocked",), ("paused", "BLOCKED")),
        (("throttled", "blocked"), ("paused", "BLOCKED")),
        (("throttled", "published"), ("active", "PUBLISHED")),
        (("blocked", "published", "published"), ("active", "PUBLISHED")),
        (("published",), ("active", "PUBLISHED")),
        (("deprecated",), ("deprecated", "DEPRECATED")),
        (("blocked", "deprecated", "published"), ("deprecated", "DEPRECATED")),
    ],
)
def test_a_published_flow_follows_its_provider(states: tuple[FlowState, ...], then: tuple[str, str]) -> None:
    assert told(FLOW_HERE, *states) == then


def test_what_the_customer_paused_stays_paused_when_the_provider_clears_it() -> None:
    paused = replace(FLOW_HERE, status=FlowStatus.PAUSED, paused_by_customer=True)
    assert told(paused, "published") == ("paused", "PUBLISHED")
    assert told(paused, "blocked", "published") == ("paused", "PUBLISHED")


@pytest.mark.parametrize("status", [FlowStatus.DRAFT, FlowStatus.DEPRECATED, FlowStatus.ARCHIVED])
@pytest.mark.parametrize("state", get_args(FlowState))
def test_a_flow_that_is_not_published_hears_nothing(status: FlowStatus, state: FlowState) -> None:
    flow = replace(FLOW_HERE, status=status)
    assert with_news(flow, FlowNews(state, NOW, "77"), NOW) == flow


def test_news_that_are_older_than_the_latest_change_nothing() -> None:
    blocked = with_news(FLOW_HERE, FlowNews("blocked", SOON, "77"), SOON)
    assert told(blocked, "published", at=NOW) == ("paused", "BLOCKED")
    assert told(blocked, "published", at=SOON) == ("active", "PUBLISHED")
    ahead = with_news(FLOW_HERE, FlowNews("blocked", SOON + timedelta(days=9), "77"), NOW)
    assert told(ahead, "published", at=SOON) == ("active", "PUBLISHED")


@given(st.sampled_from(list(FlowStatus)), st.booleans(), st.lists(st.sampled_from(get_args(FlowState)), max_size=6))
def test_news_in_any_order_never_fail_and_never_undo_an_end(
    status: FlowStatus, by_customer: bool, states: list[FlowState]
) -> None:
    flow = replace(FLOW_HERE, status=status, paused_by_customer=by_customer and status is FlowStatus.PAUSED)
    for state in states:
        news = FlowNews(state, NOW, "77")
        after = with_news(flow, news, NOW)
        assert with_news(after, news, NOW) == after
        assert flow.status is not FlowStatus.DEPRECATED or after.status is FlowStatus.DEPRECATED
        assert not (flow.paused_by_customer and after.status is FlowStatus.ACTIVE)
        flow = after


class Place:
    """Two business accounts with three numbers of two organizations; each has a flow that the provider calls 77."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.changes: list[Any] = []
        self.reports = FlowReports(database, clock=VirtualClock(NOW), changed=self.changes.append)

    async def fill(self) -> None:
        async with self.database.transaction() as connection:
            for index, (organization, account) in enumerate(PLACES):
                owner = an_id(ORGANIZATION, int(organization == "org_b"))
                number = Number(
                    organization_id=owner,
                    id=an_id(NUMBER, index),
                    env="live",
                    phone_number_id=f"pn-{index}",
                    business_account_id=account,
                    display_phone=f"+551190000000{index}",
                    status=NumberStatus.CONNECTED,
                    updated_at=NOW,
                )
                await numbers.insert(connection, number)
                here = replace(FLOW_HERE, organization_id=owner, id=an_id(FLOW, index), number_id=number.id)
                await flows.insert(connection, here)

    async def states(self) -> list[str]:
        rows = await self.database.fetch("select status from flows order by id")
        return [row["status"] for row in rows]


@pytest.fixture
async def place(database: Database) -> Place:
    made = Place(database)
    await made.fill()
    return made


async def test_news_reach_the_flows_of_the_business_account_that_they_name(place: Place) -> None:
    await place.reports.report("live", FlowNews("blocked", NOW, "77", business_account="ba-1"))
    await place.reports.report("live", FlowNews("blocked", NOW, "78", business_account="ba-2"))
    assert await place.states() == ["paused", "paused", "active"]
    owner = an_id(ORGANIZATION, 0)
    assert place.changes == [FlowChanged(owner, "live", an_id(FLOW, index)) for index in range(2)]


async def test_news_reach_the_flow_of_the_number_that_they_name(place: Place) -> None:
    await place.reports.report("live", FlowNews("throttled", NOW, "77", "pn-2"))
    assert await place.states() == ["active", "active", "paused"]


async def test_news_of_a_flow_that_is_not_here_or_not_told_apart_are_dropped(place: Place) -> None:
    for env, news in (
        ("live", FlowNews("blocked", NOW, "77")),
        ("live", FlowNews("blocked", NOW, "77", "pn-9")),
        ("live", FlowNews("blocked", NOW, "77", business_account="ba-9")),
        ("live", FlowNews("blocked", NOW, "78", "pn-0")),
        ("test", FlowNews("blocked", NOW, "77", "pn-0")),
    ):
        await place.reports.report(env, news)
    assert await place.states() == ["active"] * 3
    await place.database.execute("update flows set provider_flow_id = '78' where id = $1", an_id(FLOW, 1))
    await place.reports.report("live", FlowNews("blocked", NOW, "78"))
    assert await place.states() == ["active", "paused", "active"]


async def test_what_callers_see_of_it_raises_the_revision_and_a_repeat_does_not(place: Place) -> None:
    for _ in range(2):
        await place.reports.report("live", FlowNews("throttled", NOW, "77", "pn-0"))
    row = await place.database.fetchrow("select revision, reported_at from flows where id = $1", an_id(FLOW, 0))
    assert tuple(row or ()) == (2, NOW)
