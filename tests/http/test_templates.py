"""Chat-app templates over HTTP (C11), reviewed by the sandbox and by a provider of the tests."""

from datetime import timedelta
from typing import Any

import pytest
from tests.http.people import person, session

from recado.channels.provider import ProviderError, ProviderTemplate, Submission, TemplateStatus
from recado.domain.changes import TemplateChanged

BODY = {"type": "BODY", "payload": {"text": "Hello {{1}}, welcome.", "example": ["Ana"]}}


def new(api: Any, **fields: Any) -> dict[str, Any]:
    return {
        "numberId": api.organizations[0].number.id,
        "name": "welcome",
        "language": "pt-BR",
        "category": "utility",
        "components": [BODY],
    } | fields


async def create(api: Any, **fields: Any) -> Any:
    answer = await api.post("/v2/templates", new(api, **fields))
    assert answer.status == 201, answer.body
    return answer.body


async def set_status(api: Any, template: Any, status: str, **fields: Any) -> Any:
    answer = await api.post(f"/v2/sandbox/templates/{template['id']}", {"status": status, **fields})
    assert answer.status == 200, answer.body
    return answer.body


async def status_of(api: Any, template: Any, **how: Any) -> str:
    return str((await api.get(f"/v2/templates/{template['id']}", **how)).body["status"])


async def live_number(api: Any) -> str:
    body = {"phoneNumberId": "pn-1", "businessAccountId": "ba-1", "displayPhone": "+5511987651234"}
    number = (await api.post("/numbers", body, env="live")).body
    api.clock.shift(2)
    await api.refresh.run("live")
    await api.post(f"/numbers/{number['id']}/connect", env="live")
    return str(number["id"])


async def submitted_live(api: Any, **fields: Any) -> Any:
    """A live template on its way to the provider."""
    number_id = await live_number(api)
    template = (await api.post("/v2/templates", new(api, numberId=number_id, **fields), env="live")).body
    answer = await api.post(f"/v2/templates/{template['id']}/submit", token=await session(api, env="live"))
    assert answer.status == 202, answer.body
    return template


async def test_a_template_is_born_a_draft_and_nothing_goes_out(api: Any) -> None:
    answer = await api.post("/v2/templates", new(api, headerExampleUrl="https://example.com/a.png"))
    assert (answer.status, answer.etag) == (201, '"1"')
    template = answer.body
    assert template | {"id": "", "createdAt": "", "updatedAt": ""} == {
        "id": "",
        "organizationId": api.organizations[0].organization.id,
        "numberId": api.organizations[0].number.id,
        "name": "welcome",
        "language": "pt-BR",
        "category": "utility",
        "status": "draft",
        "components": [BODY],
        "headerExampleUrl": "https://example.com/a.png",
        "version": 1,
        "createdAt": "",
        "updatedAt": "",
    }
    assert (await api.get(f"/v2/templates/{template['id']}")).body == template
    await api.review.run("test")
    assert await status_of(api, template) == "draft"


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"name": ""}, "/name"),
        ({"name": "x" * 513}, "/name"),
        ({"language": "de-DE"}, "/language"),
        ({"category": "spam"}, "/category"),
        ({"components": {}}, "/components"),
        ({"components": [{"payload": {}}]}, "/components/0/type"),
        ({"components": ["BODY"]}, "/components/0"),
        ({"headerExampleUrl": "ftp://example.com"}, "/headerExampleUrl"),
        ({"headerExampleUrl": 3}, "/headerExampleUrl"),
    ],
)
async def test_a_template_that_is_not_valid_is_not_made(api: Any, change: Any, path: str) -> None:
    answer = await api.post("/v2/templates", new(api, **change))
    assert (answer.status, answer.code) == (422, "VALIDATION_ERROR")
    assert [error["path"] for error in answer.body["errors"]] == [path]
    assert (await api.get("/v2/templates")).body["total"] == 0


async def test_the_payload_of_a_component_is_kept_as_it_is(api: Any) -> None:
    odd = [{"type": "body"}, {"type": "X", "payload": None}, {"type": "Y", "payload": [1, {"snake_case": " a "}]}]
    assert (await create(api, components=odd))["components"] == odd


@pytest.mark.parametrize("owner", ["nobody", "another organization", "another environment"])
async def test_the_number_must_be_of_this_organization_and_environment(api: Any, owner: str) -> None:
    number_id = {
        "nobody": "num_" + "0" * 21,
        "another organization": api.organizations[1].number.id,
        "another environment": await live_number(api),
    }[owner]
    answer = await api.post("/v2/templates", new(api, numberId=number_id))
    assert (answer.status, answer.code) == (400, "NUMBER_NOT_OWNED")


async def test_name_and_language_are_unique_in_a_number(api: Any) -> None:
    first = await create(api)
    taken = await api.post("/v2/templates", new(api, category="marketing"))
    assert (taken.status, taken.code) == (409, "TEMPLATE_NAME_TAKEN")
    await create(api, language="en-US")
    await api.delete(f"/v2/templates/{first['id']}")
    await create(api)


async def test_a_number_holds_two_hundred_and_fifty_templates(api: Any) -> None:
    template = await create(api)
    await api.database.execute(
        "insert into templates select organization_id, id || i, env, number_id, name || i, language, category, status, "
        "components, null, null, 1, null, null, 0, null, null, null, 1, updated_at "
        "from templates, generate_series(1, 249) i where id = $1",
        template["id"],
    )
    full = await api.post("/v2/templates", new(api, name="one_more"))
    assert (full.status, full.code, full.body["meta"]) == (409, "LIMIT_REACHED", {"limit": 250})


async def test_templates_are_listed_newest_first_and_filtered(api: Any) -> None:
    first, second = await create(api, name="a"), await create(api, name="b", category="marketing", language="es-ES")
    await set_status(api, second, "approved")

    async def names(query: str) -> list[str]:
        page = (await api.get(f"/v2/templates?{query}")).body
        assert page["total"] == len(page["items"])
        return [template["name"] for template in page["items"]]

    assert await names("") == ["b", "a"]
    assert await names("status=approved") == ["b"]
    assert await names("category=utility&language=pt-BR") == ["a"]
    assert await names(f"numberId={first['numberId']}&status=draft") == ["a"]
    assert await names("numberId=num_0") == []
    assert (await api.get("/v2/templates?limit=1&skip=1")).body["total"] == 2
    for query in ("status=open", "category=x", "language=pt", "limit=500", "skip=a"):
        assert (await api.get(f"/v2/templates?{query}")).code == "INVALID_PARAMETER"


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
        await api.review.report("live", TemplateStatus(status, api.clock.now(), "pt-9", **fields))
        return (await api.get(f"/v2/templates/{template['id']}", env="live")).body

    assert (await report("approved", account="pn-1"))["status"] == "approved"
    assert (await report("approved", category="marketing"))["category"] == "marketing"
    assert (await report("paused"))["status"] == "paused"
    assert (await report("rejected"))["status"] == "paused"  # its state knows no rejection
    assert (await report("approved"))["status"] == "approved"
    assert (await report("disabled", account="unknown"))["status"] == "approved"
    assert (await report("disabled"))["status"] == "disabled"
    assert (await report("approved"))["status"] == "disabled"


async def test_a_report_that_comes_before_the_answer_to_the_submission_counts(api: Any) -> None:
    template = await submitted_live(api)
    await api.database.execute("update templates set provider_template_id = 'pt-1' where id = $1", template["id"])
    rejected = TemplateStatus("rejected", api.clock.now(), "pt-1", reason="tone")
    await api.review.report("live", rejected)
    await api.review.run("live")
    seen = (await api.get(f"/v2/templates/{template['id']}", env="live")).body
    assert (seen["status"], seen["rejectionReason"]) == ("rejected", "tone")


async def test_an_edit_raises_the_version_and_needs_approval_again(api: Any) -> None:
    template = await create(api)
    await set_status(api, template, "approved")
    path = f"/v2/templates/{template['id']}"
    unchanged = await api.patch(path, {"components": [BODY]})
    assert (unchanged.body["status"], unchanged.body["version"]) == ("approved", 1)
    api.changes.clear()
    edited = (await api.patch(path, {"components": [{"type": "BODY", "payload": {"text": "Hi."}}]})).body
    assert (edited["status"], edited["version"]) == ("draft", 2)
    assert [change.template_id for change in api.changes] == [template["id"]]


@pytest.mark.parametrize("status", ["submitted", "pending", "disabled"])
async def test_what_is_under_review_or_disabled_is_not_edited(api: Any, status: str) -> None:
    template = await create(api)
    await set_status(api, template, status)
    answer = await api.patch(f"/v2/templates/{template['id']}", {"headerExampleUrl": "https://example.com/x"})
    assert (answer.status, answer.code, answer.body["meta"]) == (409, "INVALID_STATE", {"status": status})


async def test_the_category_changes_only_before_approval(api: Any) -> None:
    template = await create(api)
    path = f"/v2/templates/{template['id']}"
    assert (await api.patch(path, {"category": "marketing"})).body["category"] == "marketing"
    await set_status(api, template, "rejected")
    assert (await api.patch(path, {"category": "utility"})).body["status"] == "draft"
    for status in ("approved", "paused"):
        await set_status(api, template, status)
        refused = await api.patch(path, {"category": "marketing"})
        assert (refused.status, refused.code) == (409, "INVALID_STATE")


async def test_null_clears_what_can_be_cleared(api: Any) -> None:
    template = await create(api, headerExampleUrl="https://example.com/a.png")
    path = f"/v2/templates/{template['id']}"
    assert "headerExampleUrl" not in (await api.patch(path, {"headerExampleUrl": None})).body
    for body in ({"components": None}, {"category": None}, {"category": "x"}, {"components": "x"}):
        assert (await api.patch(path, body)).status == 422


async def test_the_revision_guards_every_change(api: Any) -> None:
    template = await create(api)
    path = f"/v2/templates/{template['id']}"
    await api.patch(path, {"category": "marketing"})
    stale = {"If-Match": '"1"'}
    for refused in (
        api.patch(path, {"category": "utility"}, headers=stale),
        api.delete(path, headers=stale),
        api.post(f"/v2/sandbox/templates/{template['id']}", {"status": "approved"}, headers=stale),
    ):
        answer = await refused
        assert (answer.status, answer.body["meta"]) == (412, {"currentETag": '"2"'})
    assert (await api.get(path, headers={"If-None-Match": '"2"'})).status == 304
    assert (await api.delete(path, headers={"If-Match": '"2"'})).status == 204
    assert (await api.post("/v2/templates", new(api), headers={"If-Match": "*"})).status == 412


async def test_a_deleted_template_is_gone_here_and_at_the_provider(api: Any) -> None:
    template = await submitted_live(api)
    await api.review.run("live")
    path = f"/v2/templates/{template['id']}"
    api.provider.failures["delete_template"] = ProviderError("unreachable", "timeout", "no answer in time")
    assert (await api.delete(path, env="live")).code == "DEPENDENCY_FAILED"
    assert (await api.get(path, env="live")).status == 200
    api.provider.failures["delete_template"] = ProviderError("refused", "unknown", "no such template")
    assert (await api.delete(path, env="live")).status == 204
    assert api.provider.asked_for("delete_template") == [("welcome", "provider-template-1")] * 2
    assert (await api.get(path, env="live")).status == 404
    assert (await api.delete(path, env="live")).status == 404
    entries = (await api.get("/v2/audit?action=template.delete", env="live")).body["items"]
    assert [entry["targetId"] for entry in entries] == [template["id"]]


async def test_a_draft_is_deleted_without_the_provider(api: Any) -> None:
    template = await create(api)
    assert (await api.delete(f"/v2/templates/{template['id']}")).status == 204
    assert api.providers["test"].asked_for("delete_template") == []


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
    assert api.changes == []


async def test_a_sync_that_cannot_be_done_says_so(api: Any) -> None:
    number_id = await live_number(api)
    for unknown in ("num_" + "0" * 21, api.organizations[0].number.id, "x"):
        answer = await api.post("/v2/templates/sync", {"numberId": unknown}, env="live")
        assert (answer.status, answer.code, answer.body["meta"]) == (
            422, "REFERENCE_NOT_FOUND", {"field": "numberId"},
        )  # fmt: skip
    api.provider.failures["list_templates"] = ProviderError("unreachable", "timeout", "no answer in time")
    assert (await api.post("/v2/templates/sync", {"numberId": number_id}, env="live")).status == 502
    api.providers["live"] = None
    assert (await api.post("/v2/templates/sync", {"numberId": number_id}, env="live")).code == "DEPENDENCY_FAILED"


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
