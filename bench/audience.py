"""Audiences of a million contacts: membership of 50,000 in a call, pages of a long list, searches, previews."""

import random
import time
from collections.abc import Awaitable
from statistics import median, quantiles
from typing import Any

from bench.contacts import make_contacts
from bench.harness import Figure, Say, running, scratch
from bench.recado_process import READY, Api, recado

CONTACTS = 1_000_000
NAMED = 50_000
ROUNDS = 3
PAGE = 200
DEEP = 90_000  # contacts before the deep page
SEARCHES = 200  # of each kind
FEW = 1_000  # matches
MOST_SECONDS = 1.0
MOST_DEEPER = 1.2
MOST_SEARCHING = 0.1  # seconds, of 95 in 100 searches with few matches

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
            *await _pages(say, api, ids),
            *await _searches(say, api),
            *[await _preview(say, api, name, tree) for name, tree in TREES.items()],
        ]


async def _members(say: Say, api: Api, chosen: list[str], phones: dict[str, str]) -> list[Figure]:
    """Lists that grow by contacts named by their ids and by phones, are replaced and are emptied."""
    seconds: dict[str, list[float]] = {}

    async def call(what: str, method: str, path: str, body: dict[str, Any], expected: int) -> None:
        took, answer = await _timed(api.call(method, path, body))
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


async def _pages(say: Say, api: Api, ids: list[str]) -> list[Figure]:
    """The first page of a list of 100,000, beside those behind 90,000 contacts: by cursor, and by `skip`.

    Each time that they are skipped, a contact has joined the list: the first look passes them all, the next need not.
    """
    say("audience: pages of a list")
    made = await api.call("POST", "/v2/lists", {"name": "long"})
    for start in range(0, 2 * NAMED, NAMED):
        await api.call("POST", f"/v2/lists/{made['id']}/members", {"contactIds": ids[10 * start : 10 * start + NAMED]})
    path = f"/contacts?listId={made['id']}&limit={PAGE}"
    page = await api.call("GET", path)
    for _ in range(DEEP // PAGE):
        page = await api.call("GET", f"{path}&cursor={page['nextCursor']}")
    skipping = f"{path}&skip={DEEP}"
    paths = (path, f"{path}&cursor={page['nextCursor']}", skipping, skipping)
    took: list[list[float]] = [[] for _ in paths]
    for turn in range(20):  # in turns: whatever else the machine does falls on all of them
        await api.call("POST", f"/v2/lists/{made['id']}/members", {"contactIds": [ids[-1 - turn]]})
        for place, each in enumerate(paths):
            took[place].append((await _timed(api.call("GET", each)))[0])
    first, deep, changed, skipped = map(median, took)
    return [
        _deeper(f"page of {PAGE} of a list, behind {DEEP:,}", deep, first, MOST_DEEPER),
        _deeper(f"– by `skip` of {DEEP:,}", skipped, first, MOST_DEEPER),
        _deeper("– – the first after a change of the list", changed, first),
    ]


def _deeper(path: str, seconds: float, first: float, most: float | None = None) -> Figure:
    ratio = seconds / first
    beside = f"{1000 * first:.1f} ms, the first"
    if most is None:
        return Figure(path, f"{1000 * seconds:.1f} ms", beside, ratio)
    return Figure(path, f"{1000 * seconds:.1f} ms", beside, ratio, f"ratio ≤ {most:g}", ratio <= most)


async def _searches(say: Say, api: Api) -> list[Figure]:
    """Terms that a thousand contacts match at most, each asked for once; and first names, which one in eight has."""
    numbers = random.Random(2).sample(range(200, 1_000), SEARCHES)
    few = [f"{word}{number}" for number in numbers for word in ("sobrenome", "customer", "0")]  # phones end with 0200
    slowest, usual, most = await _search(say, api, few)
    if not 0 < most <= FEW:
        raise RuntimeError(f"{most} contacts match a term")
    often, often_usual, _ = await _search(say, api, ["ana", "lima"] * (SEARCHES // 4))
    return [
        Figure(
            f"search that up to {most:,} of {CONTACTS:,} match: p95",
            f"{1000 * slowest:.1f} ms",
            f"{1000 * usual:.1f} ms, the median",
            None,
            f"< {1000 * MOST_SEARCHING:g} ms",
            slowest < MOST_SEARCHING,
        ),
        Figure("– that one in eight matches", f"{1000 * often:.1f} ms", f"{1000 * often_usual:.1f} ms, the median"),
    ]


async def _search(say: Say, api: Api, terms: list[str]) -> tuple[float, float, int]:
    """Seconds that 95 in 100 searches take at most, those of half of them, and the most matches."""
    say("audience: searches")
    took, most = [], 0
    for term in terms:
        seconds, answer = await _timed(api.call("GET", f"/contacts?q={term}"))
        took.append(seconds)
        most = max(most, answer["total"])
    return quantiles(took, n=20)[-1], median(took), most


async def _preview(say: Say, api: Api, name: str, tree: Leaf) -> Figure:
    """Count and sample of one filter of five conditions."""
    say(f"audience: preview, {name}")
    took = []
    for _ in range(ROUNDS + 1):  # the first one brings the table into memory
        seconds, answer = await _timed(api.call("POST", "/v2/segments/preview", {"filterTree": tree}))
        took.append(seconds)
    return _within(f"preview, 5 conditions over {CONTACTS:,}: {name}, {answer['count']:,} match", took[1:])


def _within(path: str, took: list[float]) -> Figure:
    seconds = median(took)
    return Figure(path, f"{seconds:.2f} s", "", None, f"< {MOST_SECONDS:g} s", seconds < MOST_SECONDS)


async def _timed(call: Awaitable[Any]) -> tuple[float, Any]:
    """Seconds until the answer, and the answer."""
    began = time.perf_counter()
    answer = await call
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
