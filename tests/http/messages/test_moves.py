"""Force and archive over HTTP (C15.1)."""

from datetime import timedelta
from typing import Any

MASKED = "+55*******4321"


async def test_force_and_archive_answer_the_message_as_it_is_now(mail: Any) -> None:
    at = (mail.api.clock.now() + timedelta(days=1)).isoformat()
    sent = await mail.send(scheduledAt=at)
    forced = await mail.api.post(f"/messages/{sent['id']}/force")
    assert (forced.status, forced.body["force"], forced.body["status"]) == (200, True, "queued")
    assert forced.body["scheduledAt"] < sent["scheduledAt"]
    assert mail.forced == [(mail.organization_id, "test", "chatapp", mail.number_id)]
    archived = await mail.api.post(f"/messages/{sent['id']}/archive")
    assert (archived.status, archived.body["status"]) == (200, "archived")


async def test_what_has_moved_on_is_a_conflict(mail: Any) -> None:
    sent = await mail.send()
    for status in ("sending", "sent", "delivered", "read", "archived", "failed"):
        await mail.set_status(sent["id"], status)
        refused = await mail.api.post(f"/messages/{sent['id']}/force")
        assert (refused.status, refused.code, refused.body["meta"]) == (409, "INVALID_STATE", {"status": status})
        archived = await mail.api.post(f"/messages/{sent['id']}/archive")
        assert archived.status == (200 if status == "failed" else 409)
    assert mail.forced == []


async def test_a_repeated_archive_gives_its_answer_again_masked_for_whoever_asks(mail: Any) -> None:
    sent = await mail.send()
    key = {"Idempotency-Key": "a"}
    first = await mail.api.post(f"/messages/{sent['id']}/archive", headers=key)
    token = await mail.api.key("messages:send")
    again = await mail.api.post(f"/messages/{sent['id']}/archive", headers=key, token=token)
    assert (first.status, again.status) == (200, 200)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.body == {**first.body, "to": MASKED}
