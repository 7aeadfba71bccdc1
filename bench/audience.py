"""Audiences of a million contacts: membership of 50,000 in one call, pages of a long list, and previews of segments."""

import random
import time
from collections.abc import Awaitable, Callable
from statistics import median
from typing import Any

from bench.contacts import make_contacts
from bench.harness import Figure, Say, running, scratch
from bench.recado_process import READY, Api, recado

CONTACTS = 1_000_000
NAMED = 50_000
ROUNDS = 3
PAGE = 200
DEEP = 90_000  # contacts before the deep page
MOST_SECONDS = 1.0
MOST_DEEPER = 1.2

Leaf = dict[str, Any]


async def run(say: Say) -> list[Figure]:
    """All over the API of one service, whose contacts are made in its database."""
    async with scratch() as folder, running(recado(folder), READY) as service, Api(service) as api:
        say(f"audience: making {CONTACTS:,} contacts")
        database = await service.database()
        ids = await make_contacts(database, api.organization_id, CONTACTS)
        chosen = random.Random(1).sample(ids, 3 * NAMED)
        found = await database.fetch("select id, phone from contacts where id = any($1::text[])", chosen)
        phones = {row["id"]: row["phone"] for row in found}
        await database.close()
        return [
            *await _members(say, api, chosen, phones),
            await _pages(say, api, ids),
            *[await _preview(say, api, name, tree) for name, tree in TREES.items()],
        ]


async def _members(say: Say, api: Api, chosen: list[str], phones: dict[str, str]) -> list[Figure]:
    """Lists that grow by contacts named by their ids and by phones, are replaced and are emptied."""
    seconds: dict[str, list[float]] = {}

    async def call(what: str, method: str, path: str, body: dict[str, Any], expected: int) -> None:
        took, answer = await _timed(lambda: api.call(method, path, body))
        if answer["matched"] != expected:
            raise RuntimeError(f"{what}: {answer}")
        seconds.setdefault(what, []).append(took)

    for turn in range(ROUNDS):
        say(f"audience: members, round {turn + 1} of {ROUNDS}")
        made = await api.call("POST", "/v2/lists", {"name": f"bench {turn}"})
        path = f"/v2/lists/{made['id']}/members"
        first, second, third = (chosen[start : start + NAMED] for start in range(0, 3 * NAMED, NAMED))
        await call("added by id", "POST", path, {"contactIds": first}, NAMED)
        await call("added by phone", "POST", path, {"phones": [phones[each] for each in second]}, NAMED)
        await call("replaced", "PUT", path, {"contactIds": third}, NAMED)
        await call("removed by phone", "POST", f"{path}/remove", {"phones": [phones[each] for each in third]}, NAMED)
    return [_within(f"{NAMED:,} members {what}", took) for what, took in seconds.items()]


async def _pages(say: Say, api: Api, ids: list[str]) -> Figure:
    """The first page of a list of 100,000, beside one behind 90,000 contacts."""
    say("audience: pages of a list")
    made = await api.call("POST", "/v2/lists", {"name": "long"})
    for start in range(0, 2 * NAMED, NAMED):
        await api.call("POST", f"/v2/lists/{made['id']}/members", {"contactIds": ids[10 * start : 10 * start + NAMED]})
    path = f"/contacts?listId={made['id']}&limit={PAGE}"
    page = await api.call("GET", path)
    first = [(await _timed(lambda: api.call("GET", path)))[0] for _ in range(20)]
    for _ in range(DEEP // PAGE):
        page = await api.call("GET", f"{path}&cursor={page['nextCursor']}")
    deeper = f"{path}&cursor={page['nextCursor']}"
    deep = [(await _timed(lambda: api.call("GET", deeper)))[0] for _ in range(20)]
    ratio = median(deep) / median(first)
    return Figure(
        f"page of {PAGE} of a list, behind {DEEP:,}",
        f"{1000 * median(deep):.1f} ms",
        f"{1000 * median(first):.1f} ms, the first",
        ratio,
        f"ratio ≤ {MOST_DEEPER:g}",
        ratio <= MOST_DEEPER,
    )


async def _preview(say: Say, api: Api, name: str, tree: Leaf) -> Figure:
    """Count and sample of one filter of five conditions."""
    say(f"audience: preview, {name}")
    took = []
    for _ in range(ROUNDS + 1):  # the first one brings the table into memory
        seconds, answer = await _timed(lambda: api.call("POST", "/v2/segments/preview", {"filterTree": tree}))
        took.append(seconds)
    return _within(f"preview, 5 conditions over {CONTACTS:,}: {name}, {answer['count']:,} match", took[1:])


def _within(path: str, took: list[float]) -> Figure:
    seconds = median(took)
    return Figure(path, f"{seconds:.2f} s", "", None, f"< {MOST_SECONDS:g} s", seconds < MOST_SECONDS)


async def _timed(call: Callable[[], Awaitable[Any]]) -> tuple[float, Any]:
    began = time.perf_counter()
    answer = await call()
    return time.perf_counter() - began, answer


def _leaf(field: str, operator: str, value: Any, key: str | None = None) -> Leaf:
    named = {} if key is None else {"key": key}
    return {"kind": "leaf", "filter": {"field": field, "operator": operator, "value": value, **named}}


TREES: dict[str, Leaf] = {
    "all of": {
        "kind": "and",
        "children": [
            _leaf("tag", "is", "VIP"),
            _leaf("attribute", "in", ["plus", "pro"], "plan"),
            _leaf("optIn", "is_not", "denied"),
            _leaf("lastInteraction", "within_days", 90),
            _leaf("channel", "is", "email"),
        ],
    },
    "any of": {
        "kind": "or",
        "children": [
            _leaf("tag", "is", "tier1"),
            _leaf("attribute", "is", "city 7", "city"),
            _leaf("attribute", "gt", 80, "age"),
            _leaf("attribute", "contains", "topic 3", "interests"),
            _leaf("lastInteraction", "within_days", 2),
        ],
    },
}
