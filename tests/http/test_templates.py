"""Templates over HTTP: made, listed, edited and deleted (C11)."""

from typing import Any

import pytest
from tests.http.template_drafts import BODY, create, live_number, new, set_status, status_of, submitted_live

from recado.channels.core.errors import ProviderError


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
        ({"components": [{"type": "X", "payload": [1e308] * 4_000}]}, "/components"),
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
    assert (taken.status, taken.code, taken.body["meta"]) == (409, "TEMPLATE_NAME_TAKEN", {"templateId": first["id"]})
    writer = await api.key("templates:write")
    assert first["id"] not in str((await api.post("/v2/templates", new(api), token=writer)).body)
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
