"""What tests of templates begin with: drafts, templates in any state, and live ones that are handed in."""

from typing import Any

from tests.http.people import session

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
