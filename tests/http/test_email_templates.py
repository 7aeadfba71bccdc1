"""Templates of e-mails over HTTP: made of HTML or MJML, changed, archived, seen with values (C10.4)."""

import asyncio
from typing import Any

import pytest
from tests.captured import capture_logs

from recado.domain.email.rendering import MIB, MOST_OPENED
from recado.domain.email.template import MAX_TEMPLATES

PATH = "/v2/email/templates"
HELLO = (
    "<mjml><mj-body><mj-section><mj-column><mj-text>Hello {{name}}</mj-text></mj-column></mj-section></mj-body></mjml>"
)
NAME = {"name": "name", "example": "friend"}
COPIES = """
insert into email_templates
select
    organization_id, env, 'etpl_' || lpad(n::text, 21, '0'), n::text, subject, html, text, mjml, variables,
    placeholders, case when n % 2 = 0 then 'active' else 'archived' end, version, created_by_id,
    revision, n::text, updated_at
from email_templates, generate_series(1, $2::int) n
where id = $1
"""


def template(name: str = "Order", **fields: Any) -> dict[str, Any]:
    return {"name": name, "subject": "Hello {{name}}", "html": "<p>{{name}}</p>", "variables": [NAME], **fields}


async def make(api: Any, name: str = "Order", **fields: Any) -> Any:
    answer = await api.post(PATH, template(name, **fields))
    assert answer.status == 201, answer.body
    return answer.body


async def patch(api: Any, made: Any, fields: dict[str, Any], **how: Any) -> Any:
    return await api.patch(f"{PATH}/{made['id']}", fields, **how)


async def preview(api: Any, made: Any, **variables: Any) -> Any:
    return await api.post(f"{PATH}/{made['id']}/preview", {"variables": variables})


async def test_a_template_is_made_and_read(api: Any) -> None:
    made = await make(api, text="Hello {{ name }}")
    assert made["id"].startswith("etpl_")
    assert (made["status"], made["version"], made["variables"]) == ("active", 1, [NAME])
    assert (made["html"], made["text"]) == ("<p>{{name}}</p>", "Hello {{ name }}")
    assert made["createdById"] == api.organizations[0].keys["test"][0].id
    read = await api.get(f"{PATH}/{made['id']}")
    assert (read.body, read.etag) == (made, '"1"')


async def test_mjml_is_compiled_when_it_is_kept(api: Any) -> None:
    made = await make(api, html=None, mjml=HELLO)
    assert made["mjml"] == HELLO
    assert made["html"].startswith("<!doctype html>")
    assert "Hello {{name}}" in made["html"]
    other = HELLO.replace("Hello", "Goodbye")
    changed = await patch(api, made, {"mjml": other})
    assert "Goodbye {{name}}" in changed.body["html"]
    assert (changed.body["mjml"], changed.body["version"]) == (other, 2)


async def test_html_that_is_given_is_kept_as_it_is(api: Any) -> None:
    made = await make(api, mjml="<no mjml at all", html="<b>own</b>")
    assert (made["html"], made["mjml"]) == ("<b>own</b>", "<no mjml at all")
    changed = await patch(api, made, {"html": "<i>other</i>"})
    assert changed.body["html"] == "<i>other</i>"
    assert "mjml" not in changed.body  # it is the source of something else


@pytest.mark.parametrize(
    ("mjml", "line", "column"),
    [
        ("<mjml>\n  <mj-bogus/>\n</mjml>", 2, 3),
        ("hello", 1, 1),
        ("<mjml><mj-body><mj-raw><b></mj-raw></mj-body></mjml>", 1, 27),
        (HELLO.replace("<mj-text>", "<mj-text a='1'b='2'>"), 1, 39),
        (f"<mjml><mj-body>{'<mj-wrapper>' * 5_000}", 1, 28),
        (HELLO.replace("Hello", "<div>" * 5_000), 1, 523),
    ],
)
async def test_the_place_of_a_fault_in_mjml_is_told(api: Any, mjml: str, line: int, column: int) -> None:
    answer = await api.post(PATH, template(html=None, mjml=mjml))
    assert (answer.status, answer.code, answer.body["meta"]) == (422, "MJML_INVALID", {"line": line, "column": column})
    assert {error["path"] for error in answer.body["errors"]} == {"/mjml"}
    assert (await api.get(PATH)).body["total"] == 0


async def test_mjml_that_grows_beyond_what_an_email_holds_is_refused(api: Any) -> None:
    row = '<mj-section><mj-column><mj-image src="x"/></mj-column></mj-section>'
    wide = f'<mj-attributes><mj-all css-class="{"x" * 8_000}"/></mj-attributes>'
    mjml = f"<mjml><mj-head>{wide}</mj-head><mj-body>{row * 600}</mj-body></mjml>"
    answer = await api.post(PATH, template(html=None, mjml=mjml))
    assert (answer.status, answer.code) == (422, "MJML_INVALID")
    assert "1 MiB" in answer.body["detail"]


async def test_nothing_is_read_from_the_disk(api: Any) -> None:
    answer = await api.post(
        PATH, template(html=None, mjml=HELLO.replace("<mj-text>", '<mj-include path="/etc/passwd"/>'))
    )
    assert (answer.status, answer.code) == (422, "MJML_INVALID")


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"subject": "{{order}}"}, "/subject"),
        ({"html": "<p>{{order}}</p>"}, "/html"),
        ({"text": "{{order}}"}, "/text"),
        ({"mjml": HELLO.replace("name", "order"), "html": None}, "/mjml"),
    ],
)
async def test_what_is_used_is_declared(api: Any, fields: dict[str, Any], pointer: str) -> None:
    answer = await api.post(PATH, template(**fields))
    assert (answer.status, answer.code) == (422, "VARIABLE_NOT_DECLARED")
    assert [error["path"] for error in answer.body["errors"]] == [pointer]
    made = await make(api)
    changes = {name: value for name, value in fields.items() if value is not None}
    refused = await patch(api, made, changes)
    assert (refused.status, refused.code) == (422, "VARIABLE_NOT_DECLARED")
    assert (await patch(api, made, {**changes, "variables": [NAME, {"name": "order"}]})).status == 200


async def test_a_variable_that_is_used_stays_declared(api: Any) -> None:
    made = await make(api)
    answer = await patch(api, made, {"variables": []})
    assert (answer.status, answer.code) == (422, "VARIABLE_NOT_DECLARED")
    plain = await patch(api, made, {"variables": [], "subject": "Hello", "html": "<p>Hello</p>"})
    assert (plain.status, plain.body["variables"]) == (200, [])


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"name": " "}, "/name"),
        ({"name": "x" * 121}, "/name"),
        ({"subject": "a\nb"}, "/subject"),
        ({"subject": "a\u2028b"}, "/subject"),
        ({"subject": "x" * 256}, "/subject"),
        ({"html": None}, ""),
        ({"html": ""}, "/html"),
        ({"html": "é" * (MIB // 2 + 1)}, "/html"),
        ({"html": "{{" * (MOST_OPENED + 1)}, "/html"),
        ({"text": "x" * (MIB // 4 + 1)}, "/text"),
        ({"mjml": "x" * (MIB + 1)}, "/mjml"),
        ({"variables": [NAME, NAME]}, ""),
        ({"variables": [{"name": "7"}]}, "/variables/0/name"),
        ({"variables": [{"name": f"v{n}"} for n in range(101)]}, "/variables"),
        ({"variables": [{"name": "name", "example": "x" * 10_001}]}, "/variables/0/example"),
    ],
)
async def test_what_is_wrong_is_named(api: Any, fields: dict[str, Any], pointer: str) -> None:
    answer = await api.post(PATH, template(**fields))
    assert (answer.status, answer.body["errors"][0]["path"]) == (422, pointer), answer.body
    assert (await api.get(PATH)).body["total"] == 0


async def test_the_largest_parts_are_taken_and_shown(api: Any) -> None:
    made = await make(api, html="é" * (MIB // 2), text="x" * (MIB // 4))
    shown = await preview(api, made, name="Ana")
    assert (len(shown.body["html"]), len(shown.body["text"])) == (MIB // 2, MIB // 4)


async def test_lists_hold_no_content(api: Any) -> None:
    made = [await make(api, name, text="text") for name in ("Order", "The  ORDER of all", "Other")]
    found = (await api.get(f"{PATH}?q=order")).body
    assert ([item["id"] for item in found["items"]], found["total"]) == ([made[1]["id"], made[0]["id"]], 2)
    whole = {"html", "text", "mjml"}
    assert found["items"][1] == {name: value for name, value in made[0].items() if name not in whole}
    await api.delete(f"{PATH}/{made[2]['id']}")
    archived = (await api.get(f"{PATH}?status=archived")).body
    assert [item["status"] for item in archived["items"]] == ["archived"]
    assert (await api.get(f"{PATH}?status=active")).body["total"] == 2
    assert (await api.get(PATH)).body["total"] == 3


async def test_a_name_is_taken_once_until_its_template_is_archived(api: Any) -> None:
    made, other = await make(api), await make(api, "Other")
    for taken in (await api.post(PATH, template("ORDER")), await patch(api, other, {"name": " order"})):
        assert (taken.status, taken.code) == (409, "EMAIL_TEMPLATE_NAME_TAKEN")
        assert taken.body["meta"] == {"templateId": made["id"]}
    hidden = await api.post(PATH, template(), token=await api.key("email:write"))
    assert hidden.body.get("meta", {}) == {}
    assert (await api.post(PATH, template(), env="live")).status == 201
    assert (await api.delete(f"{PATH}/{made['id']}")).status == 204
    assert (await patch(api, other, {"name": "Order"})).status == 200


async def test_content_raises_the_version_and_a_name_does_not(api: Any) -> None:
    made = await make(api)
    renamed = await patch(api, made, {"name": "Renamed"})
    assert (renamed.body["version"], renamed.etag) == (1, '"2"')
    again = await patch(api, made, {"html": made["html"], "subject": made["subject"]})
    assert (again.body["version"], again.etag) == (1, '"2"')
    changed = await patch(api, made, {"text": "{{name}}"})
    assert (changed.body["version"], changed.etag) == (2, '"3"')
    cleared = await patch(api, made, {"text": None})
    assert (cleared.body["version"], "text" in cleared.body) == (3, False)
    late = await patch(api, made, {"name": "Late"}, headers={"If-Match": '"1"'})
    assert (late.status, late.code) == (412, "VERSION_MISMATCH")


async def test_an_archived_template_is_read_and_stays_as_it_is(api: Any) -> None:
    made = await make(api)
    for _ in range(2):
        assert (await api.delete(f"{PATH}/{made['id']}")).status == 204
    read = (await api.get(f"{PATH}/{made['id']}")).body
    assert (read["status"], read["version"], read["html"]) == ("archived", 1, made["html"])
    refused = await patch(api, made, {"name": "Other"})
    assert (refused.status, refused.code, refused.body["meta"]) == (409, "INVALID_STATE", {"status": "archived"})


async def test_the_limit_counts_those_that_are_not_archived(api: Any) -> None:
    await api.database.execute(COPIES, (await make(api))["id"], 2 * (MAX_TEMPLATES - 2))
    await make(api, "last")
    answer = await api.post(PATH, template("one more"))
    assert (answer.status, answer.code, answer.body["meta"]) == (409, "LIMIT_REACHED", {"limit": MAX_TEMPLATES})


async def test_a_preview_shows_what_would_be_sent(api: Any) -> None:
    variables = [NAME, {"name": "total"}, {"name": "unused"}]
    html = "<p>{{name}}: {{total}}</p>"
    made = await make(api, html=html, text="{{name}}: {{total}}", variables=variables)
    shown = (await preview(api, made, name="<Ana>\nB", total=12.5, unknown="x")).body
    assert shown == {
        "subject": "Hello <Ana>B", "html": "<p>&lt;Ana&gt;\nB: 12.5</p>", "text": "<Ana>\nB: 12.5", "missing": [],
    }  # fmt: skip
    empty = (await api.post(f"{PATH}/{made['id']}/preview")).body
    assert empty == {
        "subject": "Hello friend", "html": "<p>friend: </p>", "text": "friend: ", "missing": ["name", "total"],
    }  # fmt: skip


@pytest.mark.parametrize(
    "variables",
    [
        {"name": None},
        {"name": []},
        {"name": "x" * 10_001},
        {"7": "x"},
        {f"v{n}": 1 for n in range(101)},
        [],
        {"n": 1e999},
    ],
)
async def test_values_have_a_form(api: Any, variables: Any) -> None:
    made = await make(api)
    answer = await api.post(f"{PATH}/{made['id']}/preview", {"variables": variables})
    assert answer.status in (400, 422)
    assert answer.code in ("VALIDATION_ERROR", "MALFORMED_JSON")


async def test_a_preview_that_would_be_too_long_is_refused(api: Any) -> None:
    made = await make(api, html="{{name}}" * MOST_OPENED)
    answer = await preview(api, made, name="x" * 10_000)
    assert (answer.status, answer.code) == (422, "TEXT_TOO_LONG")
    long_subject = await preview(api, await make(api, "Other"), name="x" * 255)
    assert (long_subject.status, long_subject.code) == (422, "TEXT_TOO_LONG")


async def test_whoever_may_read_may_see_a_preview(api: Any) -> None:
    made = await make(api)
    answer = await api.post(f"{PATH}/{made['id']}/preview", {}, token=await api.key("email:read"))
    assert answer.status == 200


def journey(template_id: str) -> dict[str, Any]:
    variables = {"name": {"de": "fixo", "valor": "Ana"}}
    mail = {
        "id": "mail", "tipo": "enviar", "canal": "email", "templateId": template_id, "proximo": "end",
        "variaveis": variables,
    }  # fmt: skip
    end = {"id": "end", "tipo": "fim"}
    return {"name": "mail", "gatilho": {"tipo": "api"}, "inicio": "mail", "passos": [mail, end]}


async def test_a_template_that_a_journey_uses_is_not_archived(api: Any) -> None:
    made = await make(api)
    used = (await api.post("/v2/journeys", journey(made["id"]))).body
    assert used["problemas"] == []
    refused = await api.delete(f"{PATH}/{made['id']}")
    assert (refused.status, refused.code, refused.body["meta"]) == (409, "RESOURCE_IN_USE", {"journeyId": used["id"]})
    assert (await api.get(f"{PATH}/{made['id']}")).body["status"] == "active"
    await api.post(f"/v2/journeys/{used['id']}/archive")
    assert (await api.delete(f"{PATH}/{made['id']}")).status == 204
    gone = await api.post("/v2/journeys", journey(made["id"]))
    assert {error["code"] for error in gone.body["errors"]} == {"MODELO_INEXISTENTE"}


async def test_of_a_journey_and_an_archiving_at_once_one_sees_the_other(api: Any) -> None:
    for n in range(5):
        made = await make(api, f"template {n}")
        archived, kept = await asyncio.gather(
            api.delete(f"{PATH}/{made['id']}"), api.post("/v2/journeys", journey(made["id"]))
        )
        assert (archived.status, kept.status) in ((204, 422), (409, 201))


async def test_the_audit_names_an_archiving_and_logs_name_no_content(api: Any) -> None:
    with capture_logs() as logs:
        made = await make(api, html=None, mjml=HELLO)
        await preview(api, made, name="Ana Maria")
        await api.post(PATH, template("x", html=None, mjml="<mjml>Ana Maria"))
        await api.delete(f"{PATH}/{made['id']}")
    entries = (await api.get("/v2/audit")).body["items"]
    assert [(entry["action"], entry["targetId"]) for entry in entries] == [("email_template.delete", made["id"])]
    assert "Ana Maria" not in f"{entries}{logs}"


async def test_the_id_of_another_kind_is_told(api: Any) -> None:
    made = await make(api)
    answer = await api.get(f"/v2/templates/{made['id']}")
    assert (
        answer.body["detail"]
        == f"{made['id']} is not a template id: those begin with tpl_. This looks like an e-mail template id."
    )
