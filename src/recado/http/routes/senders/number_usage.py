"""How much went through a number, in all and over time (C14.4)."""

from zoneinfo import ZoneInfo

from pydantic import Field

from recado.domain.senders.usage import Bucket, Window, bucket_starts, default_bucket, since
from recado.http.api.call import Call
from recado.http.api.models import ApiModel, QueryModel, Timestamp
from recado.http.api.route import Route
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.senders.numbers import number_resource
from recado.http.wire.reply import Reply
from recado.storage.access.organizations import DEFAULT_TIME_ZONE
from recado.storage.senders import usage
from recado.storage.senders.numbers import Number


class UsageQuery(QueryModel):
    """Which window, ending now."""

    window: Window = "24h"


class SeriesQuery(UsageQuery):
    """Which window and buckets; hours for 24h and days for the others, unless said."""

    bucket: Bucket | None = None


class UsageOut(ApiModel):
    """`marketingSent` is null when the category of some template message in the window was not recorded."""

    window: Window
    sent: int
    marketing_sent: int | None
    since: Timestamp
    until: Timestamp


class Point(ApiModel):
    """One bucket, by its start."""

    at: Timestamp
    sent: int


class SeriesOut(ApiModel):
    """Every bucket of the window, the empty ones too. The first and the last may be partial."""

    window: Window
    bucket: Bucket
    since: Timestamp
    until: Timestamp
    points: list[Point] = Field(description="Ascending.")


def number_usage_routes(dependencies: Dependencies) -> tuple[Route, ...]:
    """Days begin at midnight of the organization's zone."""
    resource, database = number_resource(dependencies), dependencies.database

    async def read(call: Call) -> Reply:
        number: Number = call.resource
        window = call.query.window
        start = since(window, call.now)
        sums = await usage.totals(database, number.organization_id, number.id, start, call.now)
        return Reply(
            200,
            {
                "window": window,
                "sent": sums.sent,
                "marketingSent": sums.marketing,
                "since": start,
                "until": call.now,
            },
        )

    async def series(call: Call) -> Reply:
        number: Number = call.resource
        window = call.query.window
        bucket = call.query.bucket or default_bucket(window)
        organization = await dependencies.directories.organizations.get(number.organization_id)
        zone = ZoneInfo(organization.time_zone if organization else DEFAULT_TIME_ZONE)
        start = since(window, call.now)
        starts = bucket_starts(start, call.now, bucket, zone)
        sent = await usage.series(database, number.organization_id, number.id, start, call.now, starts)
        return Reply(
            200,
            {
                "window": window,
                "bucket": bucket,
                "since": start,
                "until": call.now,
                "points": [{"at": at, "sent": count} for at, count in zip(starts, sent, strict=True)],
            },
        )

    return (
        resource.route(
            "GET /numbers/{id}/usage", "getNumberUsage", "Count what left through a number", read,
            query=UsageQuery, responses={200: UsageOut},
        ),
        resource.route(
            "GET /numbers/{id}/usage/timeseries", "getNumberUsageSeries",
            "Count what left through a number, hour by hour or day by day", series,
            query=SeriesQuery, responses={200: SeriesOut},
        ),
    )  # fmt: skip
