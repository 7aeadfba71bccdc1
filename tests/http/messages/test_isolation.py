"""Who may see and do what with messages (C2.2, C3.2)."""

from typing import Any

from tests.refusals import comparable

from recado.domain.access.scopes import KEY_SCOPES
from recado.domain.core.ids import MESSAGE, lowest_id


async def test_messages_of_others_do_not_exist(mail: Any) -> None:
    sent = await mail.send()
    for how in ({"organization": 1}, {"env": "live"}, {"organization": 1, "env": "live"}):
        for method, path in (("GET", ""), ("POST", "/force"), ("POST", "/archive")):
            foreign = await mail.api.call(method, f"/messages/{sent['id']}{path}", **how)
            missing = await mail.api.call(method, f"/messages/{lowest_id(MESSAGE, mail.api.clock.now())}{path}", **how)
            assert foreign.status == missing.status == 404
            assert comparable(foreign.body) == comparable(missing.body)
        assert (await mail.api.get("/messages", **how)).body == {"items": [], "total": 0}
        refused = await mail.refusal(mail.body(), **how)
        assert (refused.status, refused.code) == (422, "REFERENCE_NOT_FOUND")
    assert (await mail.api.get("/messages/msg_1")).status == 404
    assert (await mail.api.get(f"/messages/{sent['id']}")).body["status"] == "queued"


async def test_each_operation_asks_for_its_scope(mail: Any) -> None:
    sent = await mail.send()
    for method, path, scope in (
        ("POST", "/messages", "messages:send"),
        ("GET", "/messages", "messages:read"),
        ("GET", f"/messages/{sent['id']}", "messages:read"),
        ("POST", f"/messages/{sent['id']}/force", "messages:force"),
        ("POST", f"/messages/{sent['id']}/archive", "messages:send"),
        ("POST", "/v2/sandbox/inbound", "messages:send"),
    ):
        token = await mail.api.key(*(KEY_SCOPES - {scope}))
        answer = await mail.api.call(method, path, token=token)
        assert (answer.status, answer.body["meta"]) == (403, {"requiredScope": scope})
        assert (await mail.api.call(method, path, token="")).status == 401
