"""What tests of resends begin with: failed messages, other numbers and templates, and the copies that were made."""

from typing import Any

from tests.causes import cause

from recado.domain.core.ids import NUMBER, TEMPLATE
from recado.domain.core.phones import recipient_hash
from recado.storage.dispatch.settlements import Failed

NOWHERE = "msg_000000000000000000000"


async def failed(mail: Any, last_error: str = "expired: too late", **changes: Any) -> str:
    """A message that failed; its id."""
    sent = await mail.send(**changes)
    now = mail.api.clock.now()
    await mail.sending.settle(Failed(mail.organization_id, "test", "chatapp", sent["id"], cause(last_error), now, True))
    return str(sent["id"])


async def resend(mail: Any, body: dict[str, Any], **how: Any) -> Any:
    return await mail.api.post("/messages/resend", body, **how)


async def message(mail: Any, message_id: str) -> dict[str, Any]:
    found: dict[str, Any] = (await mail.api.get(f"/messages/{message_id}")).body
    return found


async def copies(mail: Any, answer: Any) -> list[dict[str, Any]]:
    """The messages of the batch that a resend made, in the order of their ids."""
    listed = (await mail.api.get(f"/messages?batchId={answer.body['batch']['id']}&limit=200")).body["items"]
    return sorted(listed, key=lambda item: str(item["id"]))


async def second_number(mail: Any) -> str:
    """Another connected number."""
    number_id = mail.api.ids.new(NUMBER)
    await mail.api.database.execute(
        "insert into numbers select (jsonb_populate_record(n, $2::jsonb)).* from numbers n where id = $1",
        mail.number_id,
        {"id": number_id, "phone_number_id": number_id},
    )
    return str(number_id)


async def second_template(mail: Any, number_id: str, **changes: Any) -> str:
    """A template like that of `mail`, on another number."""
    template_id = mail.api.ids.new(TEMPLATE)
    await mail.api.database.execute(
        "insert into templates select (jsonb_populate_record(t, $2::jsonb)).* from templates t where id = $1",
        mail.template.id,
        {"id": template_id, "number_id": number_id, **changes},
    )
    return str(template_id)


async def many_failed(mail: Any, count: int) -> list[str]:
    """So many failed messages of the campaign `spring`, beside one that is queued."""
    await mail.send(campaignId="spring")
    rows = await mail.api.database.fetch(
        "insert into messages (organization_id, env, channel, id, direction, status, type, sender_id, recipient,"
        " recipient_hash, class, force, template_id, template_vars, campaign_id, last_error, failure_code,"
        " outcome_certain, failed_at, updated_at)"
        " select organization_id, env, channel, left(id, 12) || lpad(n::text, 13, '0'), direction, 'failed', type,"
        " sender_id, recipient, recipient_hash, class, force, template_id, template_vars, campaign_id, 'expired: late',"
        " 'expired', true, now(), now() from messages, generate_series(1, $1) as s (n) returning id",
        count,
    )
    return [row["id"] for row in rows]


def hash_of(mail: Any, phone: str) -> int:
    return recipient_hash(mail.organization_id, phone)


async def open_window(mail: Any, phone: str) -> None:
    await mail.api.post("/v2/sandbox/inbound", {"numberId": mail.number_id, "from": phone, "text": "hi"})
