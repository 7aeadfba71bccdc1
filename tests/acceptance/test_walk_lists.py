"""Every route that takes parameters: pages, filters and cursors (C4.3.2, C5), and what lists never show."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from tests.acceptance.caller import Request, never
from tests.acceptance.walk import Walk

from recado.domain.core.timestamps import parse_timestamp
from recado.http.api.route import Route

# Accounts, and entries about the organization itself, belong to both environments (C2.2, C24.5).
SHARED_BY_ENVIRONMENTS = {"listAccounts", "listAudit"}
# A catalogue of hundreds of fields at most (C12.8); and what is sampled as a whole, whose order changes (C34.1).
WHOLE = {
    "listContactFields", "getJourneySteps", "listNumberStates", "listActors", "listWebhookStates", "listProviderStates",
    "sumDevices",
}  # fmt: skip
# Default, least and most of lists with pages of another size (C5.1), and lists in the order of names (C5.3).
EXPORTS = {"exportChatapp", "exportSms", "exportRcs", "exportEmail"}
OTHER_PAGES = {
    "listJourneys": (200, 1, 500),
    "listCompanies": (25, 1, 100),
    "listCustomerEvents": (100, 1, 500),
    **dict.fromkeys(EXPORTS, (500, 1, 1_000)),
}
BY_NAME = {"listCompanies"}
# Entries of one wallet stand in the order of its balances: ids of commits that wait for its lock may pass each other.
BY_POSITION = {"listLedger"}
PERIOD = {"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"}


def asked(walk: Walk, *parameters: str) -> list[Route]:
    """The operations that take all of the query parameters; any at all when none is named."""
    return walk.open_routes(lambda route: route.query is not None and set(parameters) <= walk.parameters(route).keys())


def is_list(route: Route) -> bool:
    """Whether an operation answers items, page by page."""
    answer = route.responses.get(200)
    return answer is not None and "items" in answer.model_fields and route.operation_id not in WHOLE


async def test_every_list_is_paged(walk: Walk) -> None:
    lists = {route.operation_id for route in walk.open_routes(is_list)}
    by_skip = {route.operation_id for route in asked(walk, "limit", "skip")}
    by_cursor = {route.operation_id for route in asked(walk, "limit", "cursor")}
    assert lists
    assert lists == by_skip | by_cursor


async def test_no_page_size_or_position_is_bent_into_shape(walk: Walk, subtests: pytest.Subtests) -> None:
    for route in asked(walk, "limit"):
        request = await walk.some(route)
        for name in {"limit", "skip"} & walk.parameters(route).keys():
            bounds = walk.parameters(route)[name]
            least, most = bounds["minimum"], bounds["maximum"]
            for value in (least, most):
                with subtests.test(route.operation_id, **{name: value}):
                    assert (await walk.call(route, request, query={name: value})).status == 200
            outside = [least - 1, most + 1, -(10**17), 10**30, "", " ", "x", "1.5", "1e1", "1_0", "0x1", "٣", "null"]
            for value in outside:
                with subtests.test(route.operation_id, **{name: value}):
                    refused = await walk.call(route, request, query={name: value})
                    assert (refused.status, refused.pointers) == (route.bad_query_status, [name])


async def test_lists_are_of_fifty_unless_said(walk: Walk) -> None:
    for route in asked(walk, "limit"):
        described = walk.parameters(route)["limit"]
        bounds = (described["default"], described["minimum"], described["maximum"])
        assert bounds == OTHER_PAGES.get(route.operation_id, (50, 1, 200)), route.operation_id


async def test_filters_of_another_form_are_refused(walk: Walk, subtests: pytest.Subtests) -> None:
    for route in asked(walk):
        request = await walk.some(route)
        for name, described in walk.parameters(route).items():
            for value in impossible(walk, described):
                with subtests.test(route.operation_id, parameter=name, value=value):
                    refused = await walk.call(route, request, query={name: value})
                    assert (refused.status, refused.pointers) == (route.bad_query_status, [name])
            if described.get("type") != "array":
                with subtests.test(route.operation_id, repeated=name):
                    twice = await walk.call(route, request, query={name: ["1", "1"]})
                    assert (twice.status, twice.pointers) == (route.bad_query_status, [name])


def impossible(walk: Walk, described: Any) -> list[str]:
    """Values that a parameter cannot take, by its description."""
    described = walk.resolved(described.get("items", described))
    if "enum" in described or "const" in described:
        return ["", "nothing", "null"]
    if described.get("format") == "date-time":
        return ["", "yesterday", "2026-01-01", "2026-01-01T00:00:00", "2026-13-01T00:00:00Z", "1767225600"]
    if described.get("type") == "boolean":
        return ["", "yes", "1", "TRUE"]
    return ["a\0b"] if described.get("type") == "string" else []


async def test_a_period_that_ends_before_it_begins_is_refused(walk: Walk, subtests: pytest.Subtests) -> None:
    for route in asked(walk, "from", "to"):
        with subtests.test(route.operation_id):
            answer = await walk.call(route, await walk.some(route), query=PERIOD)
            as_422 = route.bad_query_status == 422 or route.operation_id in {*EXPORTS, "listPushMessages"}
            refused = (422, "VALIDATION_ERROR") if as_422 else (400, "INVALID_PERIOD")
            assert (answer.status, answer.code) == refused


async def test_unknown_parameters_are_ignored(walk: Walk, subtests: pytest.Subtests) -> None:
    for route in walk.open_routes():
        with subtests.test(route.operation_id):
            query = {"unknown": "x", "organizationId": walk.foreign.organization_id, "env": "live"}
            answer = await walk.call(route, await walk.fresh(route), query=query)
            assert answer.status in route.responses


async def test_a_list_holds_each_of_its_own_once_and_nothing_of_others(walk: Walk, subtests: pytest.Subtests) -> None:
    for route in walk.open_routes(is_list):
        owners = {
            "mine": walk.mine.credential(route),
            "live": walk.mine.credential(route, "live"),
            "foreign": walk.foreign.credential(route),
        }
        with subtests.test(route.operation_id):
            # A list under a record is asked for under a record of each owner's; the other environment has none.
            ids_of = {"mine": walk.mine.ids, "foreign": walk.foreign.ids}
            asking = {name: token for name, token in owners.items() if name in ids_of or not route.path_ids}
            seen = {name: await everything(walk, route, token, ids_of.get(name)) for name, token in asking.items()}
            assert len(seen["mine"]) >= 2, (
                "there is too little to tell owners apart: add to tests/acceptance/tenants.py"
            )
            assert len(seen["foreign"]) >= 2
            for ids in seen.values():
                assert len(ids) == len(set(ids))
                assert route.operation_id in BY_NAME | BY_POSITION or ids == sorted(ids, reverse=True)
            assert not set(seen["mine"]) & set(seen["foreign"])
            if route.operation_id not in SHARED_BY_ENVIRONMENTS and "live" in seen:
                assert not set(seen["mine"]) & set(seen["live"])


async def test_each_entry_of_the_ledger_continues_from_the_one_behind_it(walk: Walk) -> None:
    (route,) = walk.open_routes(lambda route: route.operation_id in BY_POSITION)
    answer = await walk.call(route, await walk.some(route), query={"limit": 200})
    entries = answer.body["items"]
    assert len(entries) >= 2
    for newer, older in pairwise(entries):
        assert newer["balanceAfter"] == older["balanceAfter"] + newer["coins"]


async def everything(walk: Walk, route: Route, token: str, ids: Mapping[str, str] | None) -> list[str]:
    """The ids in a list, one page after another, in pages of all sizes. `ids`: of the owner's records."""
    request = await walk.some(route)
    if ids is not None:
        path = {**request.path, **{name: ids[prefix] for name, prefix in route.path_ids.items()}}
        request = replace(request, path=path)
    found: list[str] = []
    query: dict[str, Any] = {}
    size = 1
    while True:
        page = (await walk.call(route, request, token, query={**query, "limit": size})).body
        # A change of consent has no id, and no other moment in common with one of another contact.
        found += [item.get("id") or item.get("campaignId") or item["recordedAt"] for item in page["items"]]
        assert len(page["items"]) <= size
        if "cursor" in walk.parameters(route):
            if page.get("nextCursor") is None:
                assert ("nextCursor" in page) == (route.operation_id in EXPORTS)
                break
            query = {"cursor": page["nextCursor"]}
        else:
            if len(found) >= page["total"]:
                break
            query = {"skip": len(found)}
        assert len(page["items"]) == size
        size = min(2 * size, walk.parameters(route)["limit"]["maximum"])
    if "total" in page:
        assert page["total"] == len(found)
    return found


async def test_filters_by_what_belongs_to_others_find_what_others_find(walk: Walk, subtests: pytest.Subtests) -> None:
    prefixes = {"numberId": "num_", "templateId": "tpl_", "targetId": "key_", "actorId": "key_"}
    for route in walk.open_routes(is_list):
        for name in prefixes.keys() & walk.parameters(route).keys():
            with subtests.test(route.operation_id, parameter=name):
                prefix = prefixes[name]
                request = await walk.some(route)
                foreign = await walk.call(route, request, query={name: walk.foreign.ids[prefix]})
                missing = await walk.call(route, request, query={name: never(prefix)})
                assert foreign.body["items"] == []
                assert foreign.told[0] == missing.told[0] == 200
                assert foreign.body == missing.body


async def test_a_cursor_is_good_for_its_list_filters_organization_and_environment_only(
    walk: Walk, subtests: pytest.Subtests
) -> None:
    routes = asked(walk, "cursor")
    cursors = {}
    for route in routes:
        first = await walk.call(route, await walk.some(route), query={"limit": 1})
        assert first.body.get("nextCursor"), f"{route.operation_id} needs two items: add to tests/acceptance/tenants.py"
        cursors[route.operation_id] = first.body["nextCursor"]
    for route in routes:
        request = await walk.some(route)
        cursor = cursors[route.operation_id]
        payload, _, signature = cursor.partition(".")
        wrong: dict[str, tuple[str, str | None]] = {
            "of no form": ("x", None),
            "without a signature": (payload, None),
            "with a signature only": ("." + signature, None),
            "with another payload": ("A" + cursor[1:] if cursor[0] != "A" else "B" + cursor[1:], None),
            "with another signature": (payload + "." + signature[::-1], None),
            "that is very long": (cursor * 20, None),
            "in other signs": ("é" + cursor, None),
            **{f"of {other}": (cursors[other], None) for other in cursors if other != route.operation_id},
        }
        elsewhere = {
            "from another organization": walk.foreign.credential(route),
            "from the other environment": walk.mine.credential(route, "live"),
        }
        wrong |= {name: (cursor, token) for name, token in elsewhere.items()}
        for name, (value, token) in wrong.items():
            with subtests.test(route.operation_id, cursor=name):
                refused = await walk.call(route, request, token, query={"cursor": value})
                missing = name in elsewhere and bool(route.path_ids)  # the record of the path is not theirs
                assert (refused.status, refused.code) == ((404, "NOT_FOUND") if missing else (400, "INVALID_CURSOR"))
        if route.path_ids:
            with subtests.test(route.operation_id, cursor="of another record"):
                other = replace(request, path=walk.mine.others[route.operation_id])
                refused = await walk.call(route, other, query={"cursor": cursor})
                assert (refused.status, refused.code) == (400, "INVALID_CURSOR")
        for name, value in filters(walk, route, request).items():
            with subtests.test(route.operation_id, other=name):
                refused = await walk.call(route, request, query={"cursor": cursor, name: value})
                assert (refused.status, refused.code) == (400, "INVALID_CURSOR")
        with subtests.test(route.operation_id, cursor="again, with another limit"):
            for limit in (1, 200):
                answer = await walk.call(route, request, query={"cursor": cursor, "limit": limit})
                assert answer.status == 200


def filters(walk: Walk, route: Route, request: Request) -> dict[str, Any]:
    """For each filter of a list, a value that it can have, and has not in the request."""
    found = {}
    for name, described in walk.parameters(route).items():
        if name in {"limit", "skip", "cursor"}:
            continue
        one = walk.resolved(described.get("items", described))
        moment = one.get("format") == "date-time"
        usual = "true" if one.get("type") == "boolean" else "2026-01-01T00:00:00Z" if moment else "x"
        if "pattern" in one:
            usual = one.get("examples", [usual])[0]
        found[name] = one["enum"][0] if "enum" in one else usual
        if moment and name in request.query:
            found[name] = (parse_timestamp(request.query[name]) + timedelta(seconds=1)).isoformat()
    return found
