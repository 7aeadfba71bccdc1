"""Pages and their cursors (C5)."""

from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import orjson
import pytest
from pydantic import Field

from recado.domain.core.errors import not_found
from recado.domain.core.ids import BATCH, lowest_id
from recado.domain.core.page import CursorSigner
from recado.http import routes
from recado.http.api.call import Call
from recado.http.api.models import QueryModel
from recado.http.api.paging import (
    CursorQuery,
    Cursors,
    ListedQuery,
    MessagePageQuery,
    PageQuery,
    PeriodQuery,
    envelope,
    items_of,
)
from recado.http.routes.audience.segment_models import SegmentContactsQuery
from recado.http.routes.audience.static_list_models import ListQuery
from recado.http.routes.batches.campaigns import CampaignQuery
from recado.http.routes.contacts.contact_models import ContactQuery
from recado.http.routes.messages.bulk_models import BatchQuery
from recado.http.routes.messages.message_models import MessageQuery
from recado.http.routes.webhooks.webhook_models import DeliveryQuery, WebhookQuery
from recado.http.wire.reply import Reply

CURSORS = Cursors(CursorSigner(b"k" * 32))


class Filtered(CursorQuery):
    status: list[str] = Field(default_factory=list)


async def numbers(call: Call) -> Reply:
    after = CURSORS.read(call, "numbers")
    start = 0 if after is None else after[0] + 1
    rows = list(range(start, min(start + call.query.limit + 1, 10)))
    return Reply(200, await CURSORS.page(call, "numbers", items_of(call, rows, str), lambda row: [row]))


async def walk(api: Any, query: str, headers: dict[str, str] | None = None) -> list[list[str]]:
    pages: list[list[str]] = []
    cursor = ""
    while True:
        async with api.client.get(f"/things?{query}{cursor}", headers=headers) as answer:
            body = await answer.json()
        pages.append(body["items"])
        if "nextCursor" not in body:
            return pages
        cursor = f"&cursor={body['nextCursor']}"


async def test_following_the_cursor_shows_every_row_once(serve: Any, thing: Any) -> None:
    api = await serve(thing(handler=numbers, query=Filtered))
    assert await walk(api, "limit=4") == [["0", "1", "2", "3"], ["4", "5", "6", "7"], ["8", "9"]]
    assert await walk(api, "limit=5&status=a") == [["0", "1", "2", "3", "4"], ["5", "6", "7", "8", "9"]]


async def test_a_cursor_is_good_for_its_list_only(serve: Any, thing: Any) -> None:
    api = await serve(thing(handler=numbers, query=Filtered))
    async with api.client.get("/things?limit=4&status=a") as answer:
        cursor = (await answer.json())["nextCursor"]
    test = api.as_principal(env="test")
    other = api.as_principal(organization_id="org_2")
    for query, headers, status in (
        (f"limit=2&status=a&cursor={cursor}", {}, 200),
        (f"status=b&cursor={cursor}", {}, 400),
        (f"cursor={cursor}", {}, 400),
        (f"status=a&cursor={cursor}", test, 400),
        (f"status=a&cursor={cursor}", other, 400),
        (f"status=a&cursor={cursor}x", {}, 400),
        ("cursor=", {}, 400),
        ("cursor=%F0%9F%A6%9C", {}, 400),
    ):
        async with api.client.get(f"/things?{query}", headers=headers) as answer:
            assert answer.status == status, query
            if status == 400:
                code = orjson.loads(await answer.read())["code"]
                assert code == ("INVALID_CURSOR" if query != "cursor=" else "INVALID_PARAMETER")


async def test_limit_and_skip_out_of_range_are_refused(serve: Any, thing: Any) -> None:
    async def handle(call: Call) -> Reply:
        return Reply(200, [call.query.limit, call.query.skip])

    api = await serve(
        thing(handler=handle, query=PageQuery), thing("GET", "/messages", handler=handle, query=MessagePageQuery)
    )
    for path, status in (
        ("/things", 200), ("/things?limit=200&skip=100000", 200), ("/things?limit=201", 400), ("/things?skip=-1", 400),
        ("/things?skip=100001", 400), ("/messages?skip=10000", 200), ("/messages?skip=10001", 400),
    ):  # fmt: skip
        async with api.client.get(path) as answer:
            assert answer.status == status, path
    async with api.client.get("/things") as answer:
        assert await answer.json() == [50, 0]


@pytest.mark.parametrize("model", [BatchQuery, CampaignQuery, WebhookQuery])
async def test_only_lists_of_messages_are_skipped_less_deep(serve: Any, thing: Any, model: type[PageQuery]) -> None:
    api = await serve(thing(query=model))
    for skip, status in ((100_000, 200), (100_001, 400)):
        async with api.client.get(f"/things?skip={skip}") as answer:
            assert answer.status == status


async def test_a_period_that_ends_before_it_begins_is_refused_before_the_resource_is_looked_for(
    serve: Any, thing: Any
) -> None:
    async def nothing(_: Call) -> None:
        raise not_found()

    api = await serve(thing(query=PeriodQuery, load=nothing))
    late, early = "2026-03-02T00:00:00Z", "2026-03-01T00:00:00Z"
    for query, code in (
        (f"from={late}&to={early}", "INVALID_PERIOD"),
        (f"from={early}&to=x", "INVALID_PARAMETER"),
        (f"from={early}&to={early}", "NOT_FOUND"),
        (f"from={late}", "NOT_FOUND"),
        ("", "NOT_FOUND"),
    ):
        async with api.client.get(f"/things?{query}") as answer:
            assert orjson.loads(await answer.read())["code"] == code, query


def test_a_period_is_a_range_of_ids() -> None:
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert PeriodQuery(from_=noon).ids(BATCH) == (lowest_id(BATCH, noon), "btc_~")
    assert PeriodQuery(to=noon).ids(BATCH) == ("btc_", lowest_id(BATCH, noon))


def test_the_envelope_says_only_what_holds() -> None:
    assert envelope([1], 1) == {"items": [1], "total": 1}
    assert envelope([], 10_001, estimated=True, next_cursor="c") == {
        "items": [], "total": 10_001, "totalEstimated": True, "nextCursor": "c",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("model", "given", "searches"),
    [
        (ListQuery, {}, False),
        (ListQuery, {"q": "a"}, True),
        (ListQuery, {"skip": 1_000}, False),
        (ListQuery, {"skip": 1_001}, True),
        (MessageQuery, {"status": "queued"}, False),
        (MessageQuery, {"phone": "+5511987654321"}, True),
        (ContactQuery, {"external_id": "a", "updated_since": "2026-01-01T00:00:00Z"}, False),
        (ContactQuery, {"list_id": "lst_1"}, False),
        (ContactQuery, {"list_id": "lst_1", "external_id": "a"}, True),
        (ContactQuery, {"tag": "a"}, True),
        (ContactQuery, {"source": "api"}, True),
        (ContactQuery, {"opt_in_status": "granted"}, True),
        (SegmentContactsQuery, {}, True),
        (DeliveryQuery, {"status": "dropped"}, False),
        (DeliveryQuery, {"message_id": "msg_1"}, True),
    ],
)
def test_a_page_that_thousands_of_records_may_be_looked_at_for_is_a_search(
    model: Any, given: dict[str, Any], searches: bool
) -> None:
    assert model(**given).searches is searches


def models_of(model: type[QueryModel]) -> Iterator[type[QueryModel]]:
    for made in model.__subclasses__():
        yield made
        yield from models_of(made)


def test_every_query_of_a_page_takes_the_place_of_one() -> None:
    for module in walk_packages(routes.__path__, f"{routes.__name__}."):
        import_module(module.name)
    # Models that other tests make are no operation's.
    own = [made for made in models_of(QueryModel) if made.__module__.startswith("recado.")]
    paged = {made for made in own if "limit" in made.model_fields}
    assert {MessageQuery, BatchQuery} <= paged
    assert {made.__qualname__ for made in paged if not issubclass(made, ListedQuery)} == set()
