"""Submission of templates, what the provider makes of them, and the sandbox's simulation (C11)."""

import asyncio
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from tests.captured import capture_logs
from tests.http.people import person, session
from tests.http.template_drafts import BODY, create, live_number, new, set_status, status_of, submitted_live
from tests.waiting import until

from recado.channels.core.errors import ProviderError
from recado.channels.core.events import TemplateVerdict
from recado.channels.core.provider import ProviderTemplate, Submission
from recado.domain.messages.changes import TemplateChanged


async def test_submission_needs_a_session(api: Any) -> None:
    template = await create(api)
    answer = await api.post(f"/v2/templates/{template['id']}/submit")
    assert (answer.status, answer.code) == (403, "SESSION_ONLY")
    assert await status_of(api, template) == "draft"
    account = await person(api, "operator")

    handed_in = await api.post(f"/v2/templates/{template['id']}/submit", token=await session(api, account))

    assert (handed_in.status, handed_in.body["status"]) == (202, "submitted")
    (entry,) = (await api.get("/v2/audit?action=template.submit")).body["items"]
    assert entry["actor"] == {"type": "account", "id": account.id}
    again = await api.post(f"/v2/templates/{template['id']}/submit", token=await session(api, account))
    assert (again.status, again.code) == (409, "INVALID_STATE")


async def test_what_breaks_the_rules_is_not_handed_in(api: Any) -> None:
    template = await create(api, name="Not Lower", components=[BODY, BODY])
    refused = await api.post(f"/v2/templates/{template['id']}/submit", token=await session(api, "operator"))
    assert (refused.status, refused.code) == (422, "TEMPLATE_RULES")
    assert len(refused.body["errors"]) == 2
    assert await status_of(api, template) == "draft"


async def test_a_button_opens_an_active_flow_of_the_number_by_the_id_that_the_provider_knows(api: Any) -> None:
    number_id = await live_number(api)
    body = {
        "numberId": number_id,
        "name": "Survey",
        "providerCategories": ["SURVEY"],
        "flowJson": {"screens": [{"id": "ASK", "terminal": True}]},
    }
    flow = (await api.post("/v2/flows", body, env="live")).body
    buttons = {"type": "BUTTONS", "payload": {"buttons": [{"type": "FLOW", "text": "Answer", "flowId": flow["id"]}]}}
    template = (
        await api.post("/v2/templates", new(api, numberId=number_id, components=[BODY, buttons]), env="live")
    ).body
    path, token = f"/v2/templates/{template['id']}/submit", await session(api, "operator", env="live")

    refused = await api.post(path, token=token)
    assert (refused.status, refused.code) == (422, "TEMPLATE_RULES")
    assert [each["path"] for each in refused.body["errors"]] == ["/components/1/payload/buttons/0/flowId"]
    published = (await api.post(f"/v2/flows/{flow['id']}/publish", env="live")).body
    assert (await api.post(path, token=token)).status == 202
    told: list[Any] = []

    async def submit_template(_: Any, submission: Any) -> Submission:
        told.append(submission)
        return Submission("p-1")

    api.providers["live"].submit_template = submit_template
    await api.review.run("live")
    [submission] = told
    assert submission.components[1]["payload"]["buttons"][0]["flowId"] == published["providerFlowId"]
    assert (await api.get(f"/v2/templates/{template['id']}", env="live")).body["components"] == template["components"]


async def test_a_template_whose_flow_ended_before_it_was_handed_in_is_refused(api: Any) -> None:
    body = {"providerCategories": ["SURVEY"], "flowJson": {"screens": [{"id": "ASK", "terminal": True}]}}
    number_id = api.organizations[0].number.id
    flow = (await api.post("/v2/flows", {**body, "numberId": number_id, "name": "Survey"})).body
    await api.post(f"/v2/flows/{flow['id']}/publish")
    buttons = {"type": "BUTTONS", "payload": {"buttons": [{"type": "FLOW", "text": "Answer", "flowId": flow["id"]}]}}
    template = await create(api, components=[BODY, buttons])
    await set_status(api, template, "submitted")
    await api.post(f"/v2/flows/{flow['id']}/pause")
    await api.review.run("test")
    seen = (await api.get(f"/v2/templates/{template['id']}")).body
    assert (seen["status"], seen["rejectionReason"]) == (
        "rejected",
        "The button needs an active flow of the template's number.",
    )


async def test_the_sandbox_reviews_what_is_submitted(api: Any) -> None:
    template = await create(api)
    api.changes.clear()
    assert (await set_status(api, template, "submitted"))["status"] == "submitted"
    await api.review.run("test")
    pending = (await api.get(f"/v2/templates/{template['id']}")).body
    assert (pending["status"], pending["providerTemplateId"]) == ("pending", f"sandbox_{template['id'][4:]}")
    api.clock.shift(1)
    await api.review.run("test")
    assert await status_of(api, template) == "pending"
    api.clock.shift(1)
    await api.review.run("test")
    approved = (await api.get(f"/v2/templates/{template['id']}")).body
    assert (approved["status"], approved["version"]) == ("approved", 1)
    assert "rejectionReason" not in approved
    key = (template["organizationId"], "test", template["numberId"], template["id"])
    assert api.changes == [TemplateChanged(*key)] * 3
    audit = (await api.get("/v2/audit?action=template.submit")).body["items"]
    assert [(entry["targetId"], entry["details"]) for entry in audit] == [(template["id"], {"version": 1})]


async def test_the_name_tells_the_sandbox_its_verdict(api: Any) -> None:
    rejected, slow = await create(api, name="please_reject"), await create(api, name="slow_one")
    for template in (rejected, slow):
        await set_status(api, template, "submitted")
    await api.review.run("test")
    api.clock.shift(3)
    await api.review.run("test")
    seen = (await api.get(f"/v2/templates/{rejected['id']}")).body
    assert seen["status"] == "rejected"
    assert seen["rejectionReason"]
    assert await status_of(api, slow) == "pending"
    api.clock.shift(58)
    await api.review.run("test")
    assert await status_of(api, slow) == "approved"
    again = await set_status(api, rejected, "submitted")
    assert "rejectionReason" not in again


async def test_the_rules_of_the_provider_are_checked_at_submission(api: Any) -> None:
    template = await create(api, name="Not Allowed", components=[{"type": "FOOTER", "payload": {"text": "{{1}}"}}])
    answer = await api.post(f"/v2/sandbox/templates/{template['id']}", {"status": "submitted"})
    assert (answer.status, answer.code) == (422, "TEMPLATE_RULES")
    assert {error["path"] for error in answer.body["errors"]} == {
        "/name", "/components", "/components/0/payload/text",
    }  # fmt: skip
    assert await status_of(api, template) == "draft"
    assert (await api.get("/v2/audit?action=template.submit")).body["items"] == []


async def test_a_number_out_of_service_submits_nothing(api: Any) -> None:
    template = await create(api)
    await api.post(f"/numbers/{template['numberId']}/disconnect")
    answer = await api.post(f"/v2/sandbox/templates/{template['id']}", {"status": "submitted"})
    assert [error["path"] for error in answer.body["errors"]] == ["/numberId"]
    await api.delete(f"/numbers/{template['numberId']}")
    assert (await api.post(f"/v2/sandbox/templates/{template['id']}", {"status": "submitted"})).status == 409


async def test_only_drafts_and_rejected_templates_are_submitted(api: Any) -> None:
    template = await create(api)
    for status in ("pending", "approved", "paused", "disabled"):
        await set_status(api, template, status)
        answer = await api.post(f"/v2/sandbox/templates/{template['id']}", {"status": "submitted"})
        assert (answer.status, answer.code, answer.body["meta"]) == (409, "INVALID_STATE", {"status": status})


async def test_a_provider_that_is_away_is_tried_five_more_times(api: Any) -> None:
    template = await submitted_live(api)
    api.provider.failures["submit_template"] = ProviderError("unreachable", "timeout", "no answer in time")
    for minutes in (1, 3, 10, 30, 60):
        await api.review.run("live")
        assert await status_of(api, template, env="live") == "submitted"
        api.clock.shift(minutes * 60 - 1)
        asked = len(api.provider.asked_for("submit_template"))
        await api.review.run("live")
        assert len(api.provider.asked_for("submit_template")) == asked
        api.clock.shift(2)
    await api.review.run("live")
    seen = (await api.get(f"/v2/templates/{template['id']}", env="live")).body
    assert (seen["status"], seen["rejectionReason"]) == ("draft", "provider_unreachable")
    assert len(api.provider.asked_for("submit_template")) == 6
    await api.review.run("live")
    assert len(api.provider.asked_for("submit_template")) == 6


async def test_a_provider_that_refuses_rejects_the_template(api: Any) -> None:
    template = await submitted_live(api)
    api.provider.failures["submit_template"] = ProviderError("refused", "bad_name", "the name is taken")
    await api.review.run("live")
    seen = (await api.get(f"/v2/templates/{template['id']}", env="live")).body
    assert (seen["status"], seen["rejectionReason"]) == ("rejected", "bad_name: the name is taken")


@pytest.mark.parametrize(
    ("held", "ends"),
    [
        ({"status": "approved"}, ("approved", "p-7")),
        ({"status": "pending"}, ("pending", "p-7")),
        ({"status": "rejected", "rejection_reason": "tone"}, ("rejected", "p-7")),
        ({"status": "approved", "language": "en-US"}, ("rejected", None)),
        ({"status": "approved", "components": []}, ("rejected", None)),
    ],
)
async def test_what_a_provider_holds_from_a_submission_whose_answer_was_lost_is_not_refused(
    held: dict[str, Any], ends: tuple[str, str | None], api: Any
) -> None:
    template = await submitted_live(api)
    api.provider.failures["submit_template"] = ProviderError("refused", "provider_error", "the name is taken")
    names = {"name": template["name"], "language": template["language"], "category": template["category"]}
    theirs = {"provider_template_id": "p-7", "components": template["components"], **names, **held}
    api.provider.templates = [ProviderTemplate(**{**theirs, "name": "other"}), ProviderTemplate(**theirs)]
    await api.review.run("live")
    await api.review.run("live")  # the verdict is due at once
    seen = (await api.get(f"/v2/templates/{template['id']}", env="live")).body
    assert (seen["status"], seen.get("providerTemplateId")) == ends


async def test_without_a_provider_a_submission_waits(api: Any) -> None:
    template = await submitted_live(api)
    api.providers["live"] = None
    await api.review.run("live")
    assert await status_of(api, template, env="live") == "submitted"


async def test_reports_of_the_provider_move_a_template(api: Any) -> None:
    template = await submitted_live(api, category="utility")
    api.provider.submission = Submission("pt-9")
    await api.review.run("live")

    async def report(status: Any, **fields: Any) -> Any:
        await api.review.report("live", TemplateVerdict(status, api.clock.now(), "pt-9", **fields))
        return (await api.get(f"/v2/templates/{template['id']}", env="live")).body

    assert (await report("approved", account="pn-1"))["status"] == "approved"
    assert (await report("approved", category="marketing"))["category"] == "marketing"
    assert (await report("paused"))["status"] == "paused"
    assert (await report("rejected"))["status"] == "paused"  # its state knows no rejection
    assert (await report("approved"))["status"] == "approved"
    assert (await report("disabled", account="unknown"))["status"] == "approved"
    assert (await report("disabled"))["status"] == "disabled"
    assert (await report("approved"))["status"] == "disabled"


async def test_a_report_that_is_older_than_the_latest_changes_nothing(api: Any) -> None:
    template = await submitted_live(api, category="utility")
    api.provider.submission = Submission("pt-9")
    await api.review.run("live")
    paused_at, now = api.clock.now(), api.clock.now() + timedelta(seconds=3_600)
    api.clock.shift(7_200)

    async def report(status: Any, at: Any, **fields: Any) -> Any:
        await api.review.report("live", TemplateVerdict(status, at, "pt-9", **fields))
        return (await api.get(f"/v2/templates/{template['id']}", env="live")).body

    assert (await report("approved", now))["status"] == "approved"
    assert (await report("paused", paused_at))["status"] == "approved"  # its end, which came first, is known
    assert (await report(None, paused_at, category="marketing"))["category"] == "marketing"
    assert (await report("paused", now))["status"] == "paused"
    assert (await report("approved", now + timedelta(days=400)))["status"] == "approved"  # a clock far ahead
    api.clock.shift(60)
    assert (await report("disabled", api.clock.now()))["status"] == "disabled"


async def test_a_report_that_comes_before_the_answer_to_the_submission_counts(api: Any) -> None:
    template = await submitted_live(api)
    await api.database.execute("update templates set provider_template_id = 'pt-1' where id = $1", template["id"])
    rejected = TemplateVerdict("rejected", api.clock.now(), "pt-1", reason="tone")
    await api.review.report("live", rejected)
    await api.review.run("live")
    seen = (await api.get(f"/v2/templates/{template['id']}", env="live")).body
    assert (seen["status"], seen["rejectionReason"]) == ("rejected", "tone")


async def test_a_sync_imports_and_refreshes_what_the_provider_has(api: Any) -> None:
    number_id = await live_number(api)
    known = await api.post("/v2/templates", new(api, numberId=number_id, name="known"), env="live")
    draft = await api.post("/v2/templates", new(api, numberId=number_id, name="mine"), env="live")
    await api.database.execute("update templates set status = 'pending' where id = $1", known.body["id"])
    common: dict[str, Any] = {"language": "pt-BR", "category": "marketing", "status": "approved", "components": [BODY]}
    api.provider.templates = [
        ProviderTemplate(provider_template_id="p1", name="known", **common),
        ProviderTemplate(provider_template_id="p2", name="mine", **common),
        ProviderTemplate(
            provider_template_id="p3", name="new", rejection_reason="tone", **common | {"status": "rejected"}
        ),
        ProviderTemplate(provider_template_id="p4", name="foreign", **common | {"language": "de"}),
        ProviderTemplate(provider_template_id="p5", name="odd", **common | {"status": "limbo"}),
    ]
    answer = await api.post("/v2/templates/sync", {"numberId": number_id}, env="live")
    assert (answer.status, answer.body) == (202, {"started": True})
    await api.sync.settled()
    found = {template["name"]: template for template in (await api.get("/v2/templates", env="live")).body["items"]}
    assert {name: (t["status"], t["category"], t["providerTemplateId"]) for name, t in found.items()} == {
        "known": ("approved", "marketing", "p1"),
        "mine": ("draft", "utility", "p2"),
        "new": ("rejected", "marketing", "p3"),
    }
    assert found["new"]["rejectionReason"] == "tone"
    assert found["mine"]["id"] == draft.body["id"]
    api.changes.clear()
    await api.post("/v2/templates/sync", {"numberId": number_id}, env="live")
    await api.sync.settled()
    assert api.changes == []


async def test_a_sync_writes_many_templates_in_few_statements_and_none_beyond_the_limit(
    api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    number_id = await live_number(api)
    asked: list[str] = []
    fetch = asyncpg.Connection.fetch

    async def counted(self: Any, query: str, *args: Any, **options: Any) -> Any:
        if "templates" in query:
            asked.append(query)
        return await fetch(self, query, *args, **options)

    def held(status: Any, count: int) -> list[ProviderTemplate]:
        common: dict[str, Any] = {"language": "pt-BR", "category": "marketing", "status": status, "components": [BODY]}
        return [ProviderTemplate(provider_template_id=f"p{n}", name=f"t{n % 260}", **common) for n in range(count)]

    monkeypatch.setattr(asyncpg.Connection, "fetch", counted)
    counts = []
    for status in ("pending", "approved", "approved"):
        api.provider.templates = held(status, 261)  # the last has the name of the first
        asked.clear()
        api.changes.clear()
        await api.post("/v2/templates/sync", {"numberId": number_id}, env="live")
        await api.sync.settled()
        counts.append((len([each for each in api.changes if isinstance(each, TemplateChanged)]), len(asked)))
    assert [changed for changed, _ in counts] == [250, 250, 0]
    assert max(statements for _, statements in counts) <= 3 * 4
    rows = await api.database.fetch(
        "select status, approved_version, revision, provider_template_id from templates where number_id = $1", number_id
    )
    assert {tuple(row)[:3] for row in rows} == {("approved", 1, 2)}
    assert "p260" in {row["provider_template_id"] for row in rows}


async def test_a_sync_answers_before_the_provider_does_and_runs_once_at_a_time(
    api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    number_id = await live_number(api)
    common: dict[str, Any] = {"language": "pt-BR", "category": "marketing", "status": "approved", "components": [BODY]}
    held, asked = asyncio.Event(), 0

    async def slow(_: Any) -> list[ProviderTemplate]:
        nonlocal asked
        asked += 1
        await held.wait()
        return [ProviderTemplate(provider_template_id=f"p{asked}", name=f"t{asked}", **common)]

    monkeypatch.setattr(api.provider, "list_templates", slow)
    for _ in range(3):
        assert (await api.post("/v2/templates/sync", {"numberId": number_id}, env="live")).status == 202
    await until(lambda: asked, "the provider is asked")
    assert asked == 1
    held.set()
    await api.sync.settled()
    assert asked == 2  # those who came while it ran get one run after it
    names = {template["name"] for template in (await api.get("/v2/templates", env="live")).body["items"]}
    assert names == {"t1", "t2"}


async def test_a_sync_of_no_number_of_ours_is_refused(api: Any) -> None:
    for unknown in ("num_" + "0" * 21, api.organizations[0].number.id, "x"):
        answer = await api.post("/v2/templates/sync", {"numberId": unknown}, env="live")
        assert (answer.status, answer.code, answer.body["meta"]) == (
            422, "REFERENCE_NOT_FOUND", {"field": "numberId"},
        )  # fmt: skip


async def test_a_provider_that_fails_a_sync_is_logged_and_no_error_of_the_request(api: Any) -> None:
    number_id = await live_number(api)
    api.provider.failures["list_templates"] = ProviderError("unreachable", "timeout", "no answer in time")
    with capture_logs() as logs:
        assert (await api.post("/v2/templates/sync", {"numberId": number_id}, env="live")).status == 202
        await api.sync.settled()
        api.providers["live"] = None
        assert (await api.post("/v2/templates/sync", {"numberId": number_id}, env="live")).status == 202
        await api.sync.settled()
    failed = [entry["error"] for entry in logs if entry["event"] == "template_sync_failed"]
    assert failed == ["timeout", "DEPENDENCY_FAILED"]


async def test_simulation_sets_any_state_and_ends_a_review(api: Any) -> None:
    template = await create(api)
    for status in ("disabled", "pending", "paused", "approved", "draft"):
        assert (await set_status(api, template, status))["status"] == status
    await set_status(api, template, "submitted")
    await api.review.run("test")
    assert (await set_status(api, template, "rejected", rejectionReason="no"))["rejectionReason"] == "no"
    api.clock.shift(10)
    await api.review.run("test")
    assert await status_of(api, template) == "rejected"
    assert (await api.post(f"/v2/sandbox/templates/{template['id']}", {"status": "x"})).status == 422
    assert (await api.post(f"/v2/sandbox/templates/{template['id']}", {})).status == 422


async def test_simulation_is_for_test_credentials_alone(api: Any) -> None:
    number_id = await live_number(api)
    live = (await api.post("/v2/templates", new(api, numberId=number_id), env="live")).body
    test = await create(api)
    for template in (live, test):
        answer = await api.post(f"/v2/sandbox/templates/{template['id']}", {"status": "approved"}, env="live")
        assert (answer.status, answer.code) == (404, "NOT_FOUND")


async def test_a_step_whose_process_died_is_taken_again(api: Any) -> None:
    template = await submitted_live(api)
    await api.database.execute(
        "update templates set next_step_at = $2 where id = $1", template["id"], api.clock.now() + timedelta(seconds=60)
    )
    await api.review.run("live")
    assert api.provider.asked_for("submit_template") == []
    api.clock.shift(61)
    await api.review.run("live")
    assert await status_of(api, template, env="live") == "pending"
