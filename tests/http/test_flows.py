"""Flows over HTTP: their definition, their states, and what the provider hears of them (C19)."""

from dataclasses import replace
from typing import Any

import pytest
from tests.http.registering import AWAY, REFUSED

from recado.channels.core.events import FlowNews
from recado.domain.core.ids import FLOW
from recado.services.flows.flow_reports import FlowReports

FLOWS = "/v2/flows"
ASK = {"id": "ASK", "title": "How was it?", "layout": {"type": "SingleColumnLayout", "children": [{"type": "Text"}]}}
END = {"id": "END", "terminal": True}
DEFINITION = {"version": "6.3", "routing_model": {"ASK": ["END"]}, "screens": [ASK, END]}


def new(api: Any, **changes: Any) -> dict[str, Any]:
    number = api.organizations[0].number
    return {
        "numberId": number.id, "name": "Survey", "providerCategories": ["SURVEY"], "flowJson": DEFINITION, **changes,
    }  # fmt: skip


async def flow(api: Any, *moves: str, **changes: Any) -> Any:
    made = await api.post(FLOWS, new(api, **changes))
    assert made.status == 201, made.body
    for move in moves:
        made = await api.post(f"{FLOWS}/{made.body['id']}/{move}")
        assert made.status == 200, made.body
    return made.body


async def test_a_flow_is_made_a_draft_and_nobody_hears_of_it(api: Any) -> None:
    made = await flow(api)
    assert made["id"].startswith(FLOW)
    assert (made["status"], made["version"], made["providerStatus"]) == ("draft", 1, "DRAFT")
    assert made["flowJson"] == DEFINITION
    assert {"publishedAt", "providerFlowId"}.isdisjoint(made)
    assert (await api.get(f"{FLOWS}/{made['id']}")).body == made
    assert (await api.get(FLOWS)).body == {"items": [made], "total": 1}


async def test_what_the_definition_leaves_out_is_usual_and_what_needs_an_endpoint_is_not_kept(api: Any) -> None:
    made = await flow(api, flowJson={"data_api_version": "3.0", "screens": [END]})
    assert made["flowJson"] == {"version": "6.2", "screens": [END]}


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"name": " "}, "/name"),
        ({"name": "x" * 121}, "/name"),
        ({"providerCategories": []}, "/providerCategories"),
        ({"providerCategories": ["SURVEY"] * 4}, "/providerCategories"),
        ({"providerCategories": ["GAMES"]}, "/providerCategories/0"),
        ({"flowJson": {}}, "/flowJson/screens"),
        ({"flowJson": {"screens": []}}, "/flowJson/screens"),
        ({"flowJson": {"screens": [ASK]}}, "/flowJson/screens"),
        ({"flowJson": {"screens": [END, END]}}, "/flowJson/screens"),
        ({"flowJson": {"screens": [{"id": f"S{'_' * n}", "terminal": True} for n in range(51)]}}, "/flowJson/screens"),
        ({"flowJson": {"screens": [{"id": "S1", "terminal": True}]}}, "/flowJson/screens/0/id"),
        ({"flowJson": {"screens": [{**END, "layout": {"type": "Grid", "children": []}}]}},
         "/flowJson/screens/0/layout/type"),
        ({"flowJson": {**DEFINITION, "routing_model": {"ASK": ["NOWHERE"]}}}, "/flowJson"),
        ({"flowJson": {**DEFINITION, "routing_model": {"NOWHERE": ["END"]}}}, "/flowJson"),
        ({"flowJson": {**DEFINITION, "routing_model": {"ASK": ["END"], "END": ["ASK"]}}}, "/flowJson"),
    ],
)  # fmt: skip
async def test_a_flow_that_is_not_well_formed_is_refused(api: Any, change: Any, path: str) -> None:
    answer = await api.post(FLOWS, new(api, **change))
    assert (answer.status, [each["path"] for each in answer.body["errors"]]) == (422, [path])
    assert (await api.get(FLOWS)).body["total"] == 0


async def test_a_flow_is_of_a_number_of_its_environment(api: Any) -> None:
    for number_id in (api.organizations[1].number.id, "num_" + "0" * 21, "x"):
        answer = await api.post(FLOWS, new(api, numberId=number_id))
        assert (answer.status, answer.code, answer.body["meta"]) == (422, "REFERENCE_NOT_FOUND", {"field": "numberId"})
        assert answer.body["errors"][0]["path"] == "/numberId"


@pytest.mark.parametrize(("length", "status"), [(1_000_000, 201), (1_050_000, 422)])
async def test_a_definition_has_at_most_a_mebibyte(api: Any, length: int, status: int) -> None:
    answer = await api.post(FLOWS, new(api, flowJson={"screens": [{**END, "data": {"text": "x" * length}}]}))
    assert answer.status == status


@pytest.mark.parametrize("number", [1e308, 1e-300])
async def test_a_number_of_a_definition_counts_as_all_its_digits(api: Any, number: float) -> None:
    def definition(count: int) -> dict[str, Any]:
        return {"screens": [{**END, "data": {"numbers": [number] * count}}]}

    assert (await api.post(FLOWS, new(api, flowJson=definition(1_000)))).status == 201
    assert (await api.post(FLOWS, new(api, name="More", flowJson=definition(4_000)))).status == 422


async def test_a_name_is_the_only_one_of_its_number(api: Any) -> None:
    made = await flow(api)
    again = await api.post(FLOWS, new(api))
    assert (again.status, again.code, again.body["meta"]) == (409, "FLOW_NAME_TAKEN", {"flowId": made["id"]})
    other = await flow(api, name="Other")
    renamed = await api.patch(f"{FLOWS}/{other['id']}", {"name": "Survey"})
    assert (renamed.status, renamed.code) == (409, "FLOW_NAME_TAKEN")


async def test_a_number_holds_a_hundred_flows(api: Any) -> None:
    await flow(api)
    await api.database.execute(
        "insert into flows select (jsonb_populate_record(f, jsonb_build_object("
        "'id', 'flw_' || g, 'name', 'flow ' || g, 'flow_json', f.flow_json))).* from flows f, generate_series(1, 99) g"
    )
    full = await api.post(FLOWS, new(api, name="One more"))
    assert (full.status, full.code, full.body["meta"]) == (409, "LIMIT_REACHED", {"limit": 100})


async def test_lists_are_filtered(api: Any) -> None:
    await flow(api)
    active = await flow(api, "publish", name="Active", providerCategories=["OTHER", "SIGN_UP"])
    for query in ("status=active", "metaStatus=PUBLISHED", "category=SIGN_UP"):
        assert [each["id"] for each in (await api.get(f"{FLOWS}?{query}")).body["items"]] == [active["id"]]
    assert (await api.get(f"{FLOWS}?numberId={active['numberId']}")).body["total"] == 2
    assert (await api.get(f"{FLOWS}?providerStatus=PUBLISHED")).body["total"] == 2  # is none (C19)
    assert (await api.get(f"{FLOWS}?status=gone")).status == 400


MOVES = ("publish", "pause", "resume", "deprecate", "archive")


@pytest.mark.parametrize(
    ("before", "status", "allowed"),
    [
        ((), "draft", {"publish": "active", "archive": "archived"}),
        (("publish",), "active", {"pause": "paused", "deprecate": "deprecated"}),
        (("publish", "pause"), "paused", {"resume": "active", "deprecate": "deprecated"}),
        (("publish", "deprecate"), "deprecated", {"archive": "archived"}),
        (("archive",), "archived", {}),
    ],
)
async def test_a_state_allows_its_moves_and_no_others(
    api: Any, before: tuple[str, ...], status: str, allowed: dict[str, str]
) -> None:
    for place, move in enumerate(MOVES):
        made = await flow(api, *before, name=f"{place}")
        assert made["status"] == status
        answer = await api.post(f"{FLOWS}/{made['id']}/{move}")
        if move in allowed:
            assert (answer.status, answer.body["status"]) == (200, allowed[move])
            continue
        assert (answer.status, answer.code, answer.body["meta"]["status"]) == (409, "INVALID_STATE", status)
        assert (await api.get(f"{FLOWS}/{made['id']}")).body == made


async def test_an_edit_of_what_was_published_begins_the_next_version(api: Any) -> None:
    made = await flow(api, "publish")
    assert made["publishedAt"]
    assert (await api.patch(f"{FLOWS}/{made['id']}", {"name": "Survey"})).body == made
    edited = (await api.patch(f"{FLOWS}/{made['id']}", {"description": "Of May"})).body
    assert (edited["status"], edited["version"], edited["providerStatus"]) == ("draft", 2, "DRAFT")
    edited = (await api.patch(f"{FLOWS}/{made['id']}", {"description": None})).body
    assert (edited["version"], "description" in edited) == (2, False)
    again = (await api.post(f"{FLOWS}/{made['id']}/publish")).body
    assert again["status"] == "active"
    assert again["providerFlowId"] != made["providerFlowId"]
    await api.post(f"{FLOWS}/{made['id']}/deprecate")
    refused = await api.patch(f"{FLOWS}/{made['id']}", {"name": "Late"})
    assert (refused.status, refused.code) == (409, "INVALID_STATE")


async def test_only_a_draft_that_was_never_published_is_deleted(api: Any) -> None:
    draft = await flow(api)
    assert (await api.delete(f"{FLOWS}/{draft['id']}")).status == 204
    assert (await api.get(f"{FLOWS}/{draft['id']}")).status == 404
    published = await flow(api, "publish")
    await api.patch(f"{FLOWS}/{published['id']}", {"name": "Again a draft"})
    refused = await api.delete(f"{FLOWS}/{published['id']}")
    assert (refused.status, refused.code) == (409, "INVALID_STATE")


async def test_a_flow_that_the_provider_blocks_is_not_resumed(api: Any) -> None:
    made = await flow(api, "publish", "pause")
    await api.database.execute("update flows set provider_status = 'BLOCKED' where id = $1", made["id"])
    refused = await api.post(f"{FLOWS}/{made['id']}/resume")
    assert (refused.status, refused.code) == (409, "INVALID_STATE")


@pytest.mark.parametrize(
    ("failure", "status", "code"), [(REFUSED, 422, "FLOW_JSON_INVALID"), (AWAY, 502, "DEPENDENCY_FAILED")]
)
async def test_a_provider_that_refuses_or_is_away_leaves_the_draft(
    api: Any, failure: Exception, status: int, code: str
) -> None:
    made = await flow(api)

    async def create_flow(*_: Any) -> str:
        raise failure

    api.providers["test"].create_flow = create_flow
    answer = await api.post(f"{FLOWS}/{made['id']}/publish")
    assert (answer.status, answer.code) == (status, code)
    assert (await api.get(f"{FLOWS}/{made['id']}")).body == made


async def test_what_the_provider_tells_before_it_answers_is_no_change_of_another(api: Any) -> None:
    made = await flow(api, "publish")
    reports = FlowReports(api.database, clock=api.clock, changed=lambda _: None)
    deprecate = api.providers["test"].deprecate_flow

    async def deprecate_flow(account: Any, provider_flow_id: str) -> None:
        await deprecate(account, provider_flow_id)
        news = FlowNews(status="deprecated", at=api.clock.now(), provider_flow_id=provider_flow_id)
        await reports.report("test", news)

    api.providers["test"].deprecate_flow = deprecate_flow
    answer = await api.post(f"{FLOWS}/{made['id']}/deprecate")
    assert (answer.status, answer.body["status"], answer.body["providerStatus"]) == (200, "deprecated", "DEPRECATED")
    rows = await api.database.fetch("select action from audit where target_id = $1 order by id", made["id"])
    assert [row["action"] for row in rows] == ["flow.publish", "flow.deprecate"]


async def test_news_that_comes_again_does_not_pause_what_was_resumed_since(api: Any) -> None:
    made = await flow(api, "publish")
    reports = FlowReports(api.database, clock=api.clock, changed=lambda _: None)
    path, at = f"{FLOWS}/{made['id']}", api.clock.now()
    news = FlowNews(status="throttled", at=at, provider_flow_id=made["providerFlowId"])
    await reports.report("test", news)
    assert (await api.get(path)).body["status"] == "paused"
    assert (await api.post(f"{path}/resume")).status == 200
    await reports.report("test", news)
    assert (await api.get(path)).body["status"] == "active"
    api.clock.shift(1)
    await reports.report("test", replace(news, at=api.clock.now()))
    assert (await api.get(path)).body["status"] == "paused"


async def test_moves_are_in_the_audit(api: Any) -> None:
    made = await flow(api, "publish", "pause", "resume", "deprecate", "archive")
    rows = await api.database.fetch("select action from audit where target_id = $1 order by id", made["id"])
    assert [row["action"] for row in rows] == [f"flow.{move}" for move in MOVES]


async def test_an_older_version_is_not_moved(api: Any) -> None:
    made = await api.post(FLOWS, new(api))
    await api.patch(f"{FLOWS}/{made.body['id']}", {"name": "Other"})
    answer = await api.post(f"{FLOWS}/{made.body['id']}/publish", headers={"If-Match": '"1"'})
    assert (answer.status, answer.code) == (412, "VERSION_MISMATCH")
