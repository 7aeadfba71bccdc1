"""How much went through a number (C14.4)."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from recado.domain.core.timestamps import parse_timestamp


async def sent(api: Any, at: datetime, count: int, marketing: int = 0, uncategorized: int = 0) -> None:
    number = api.organizations[0].number
    await api.database.execute(
        "insert into sender_minutes values ($1, $2, $3, $4, $5, $6)",
        number.organization_id, number.id, at.replace(second=0, microsecond=0), count, marketing, uncategorized,
    )  # fmt: skip


def path(api: Any, rest: str = "") -> str:
    return f"/numbers/{api.organizations[0].number.id}/usage{rest}"


async def test_sends_of_the_window_are_summed(api: Any) -> None:
    now = api.clock.now()
    await sent(api, now, 3, marketing=1)
    await sent(api, now - timedelta(hours=23, minutes=58), 4, marketing=2)
    await sent(api, now - timedelta(hours=25), 50, uncategorized=1)
    day = (await api.get(path(api))).body
    assert (day["window"], day["sent"], day["marketingSent"]) == ("24h", 7, 3)
    since, until = parse_timestamp(day["since"]), parse_timestamp(day["until"])
    assert (since.second, since.microsecond) == (0, 0)
    assert timedelta(hours=24) <= until - since < timedelta(hours=24, minutes=1)
    week = (await api.get(path(api, "?window=7d"))).body
    assert (week["sent"], week["marketingSent"]) == (57, None)


async def test_hours_and_days_add_up_to_the_whole(api: Any) -> None:
    now = api.clock.now()
    for hours in (0, 1, 5, 30, 100, 500):
        await sent(api, now - timedelta(hours=hours), 2)
    for query, bucket, fewest, total in (
        ("", "hour", 24, 6),
        ("?window=24h&bucket=day", "day", 2, 6),
        ("?window=7d", "day", 7, 10),
        ("?window=30d", "day", 30, 12),
        ("?window=30d&bucket=hour", "hour", 720, 12),
    ):
        series = (await api.get(path(api, f"/timeseries{query}"))).body
        points = series["points"]
        assert series["bucket"] == bucket
        assert fewest <= len(points) <= fewest + 1, query
        assert sum(point["sent"] for point in points) == total, query
        assert points[0]["at"] <= series["since"] < points[1]["at"]
        assert points[-1]["at"] < series["until"]


async def test_days_begin_at_midnight_of_the_organization(api: Any) -> None:
    await api.patch("/v2/organization", {"timeZone": "Asia/Kolkata"})
    points = (await api.get(path(api, "/timeseries?window=7d"))).body["points"]
    assert {point["at"][11:] for point in points} == {"18:30:00.000Z"}
    hours = (await api.get(path(api, "/timeseries"))).body["points"]
    assert {point["at"][14:] for point in hours} == {"00:00.000Z"}


@pytest.mark.parametrize("query", ["?window=1h", "?window=24H", "?window=", "/timeseries?bucket=minute"])
async def test_other_windows_and_buckets_are_refused(api: Any, query: str) -> None:
    answer = await api.get(path(api, query))
    assert (answer.status, answer.code) == (400, "INVALID_PARAMETER")
