"""What reports say of addresses: of messages that they move, with what follows for contacts (C10.2.8, C12.5)."""

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.message_rows import insert_messages, message_id
from tests.services.inbound.test_inbound import Phone, phone

from recado.channels.core.events import Status
from recado.domain.channels.email import EMAIL
from recado.domain.channels.source import Source
from recado.domain.contacts.contact import email_hash
from recado.domain.core.phones import recipient_hash

__all__ = ["phone"]  # a fixture
SOURCE = Source(EMAIL, "sandbox", "test")
NOW = datetime.now(UTC)
ANA = "Ana@example.com"


class Inbox:
    """E-mails that left to one address, and what is reported of them."""

    def __init__(self, phone: Phone) -> None:
        self.phone = phone
        self.owner: str = phone.number.organization_id
        self._sent = 0

    async def sent(self, status: str = "sent", **more: Any) -> str:
        self._sent += 1
        row = {
            "id": message_id(NOW, self._sent), "channel": EMAIL, "status": status, "recipient": ANA,
            "recipient_hash": recipient_hash(self.owner, ANA.lower()), "sender_id": "email:test:mail",
            "sent_at": NOW.isoformat(), **more,
        }  # fmt: skip
        await insert_messages(self.phone.db, self.owner, "test", [row])
        name = "insert into provider_messages (reference, account, adapter, organization_id, env, channel, message_id) "
        values = "values ($1, '', 'sandbox', $2, 'test', 'email', $3)"
        await self.phone.db.execute(name + values, row["id"], self.owner, row["id"])
        return str(row["id"])

    async def report(self, *reports: tuple[str, str, str | None]) -> None:
        """Each: of which message, what, and the code."""
        events = [Status(status, NOW, None, message, code) for message, status, code in reports]  # type: ignore[arg-type]
        async with self.phone.receipts.transaction() as connection:
            await self.phone.receipts.take_in(connection, SOURCE, events)

    async def suppressions(self) -> list[tuple[str, str]]:
        rows = await self.phone.db.fetch("select email, reason from email_suppressions order by id")
        return [tuple(row) for row in rows]

    async def status(self, message: str) -> Any:
        return await self.phone.db.fetchval("select status from messages where id = $1", message)

    async def opted_out(self) -> list[str]:
        hashed = email_hash(self.owner, ANA)
        rows = await self.phone.db.fetch("select source from opt_outs where kind = 'email' and hash = $1", hashed)
        return [row[0] for row in rows]


@pytest.fixture
def inbox(phone: Phone) -> Inbox:
    return Inbox(phone)


async def test_a_permanent_bounce_suppresses_and_a_temporary_one_does_not(inbox: Inbox) -> None:
    first, second = await inbox.sent(), await inbox.sent()
    await inbox.report((first, "bounced", "mailbox_full"))
    assert (await inbox.status(first), await inbox.suppressions()) == ("bounced", [])
    await inbox.report((second, "bounced", "invalid_address"))
    assert (await inbox.status(second), await inbox.suppressions()) == ("bounced", [(ANA, "bounce")])
    assert await inbox.opted_out() == []


async def test_a_complaint_refuses_for_everybody_with_the_address(inbox: Inbox) -> None:
    await inbox.phone.say("hello")
    await inbox.phone.db.execute("update contacts set email = $1, email_key = lower($1)", ANA)
    message = await inbox.sent("delivered")
    await inbox.report((message, "complained", None))
    assert await inbox.status(message) == "complained"
    assert await inbox.suppressions() == [(ANA, "complaint")]
    contact = await inbox.phone.contact()
    assert (contact["opt_in_status"], contact["opt_in_source"]) == ("denied", "complaint")
    assert await inbox.opted_out() == ["complaint"]
    assert [row[1:3] for row in await inbox.phone.history()] == [("denied", "complaint")]


async def test_a_complaint_of_nobody_known_refuses_for_the_address_and_for_whom_the_message_names(inbox: Inbox) -> None:
    await inbox.phone.say("hello")
    contact_id = (await inbox.phone.contact())["id"]
    await inbox.report((await inbox.sent(), "complained", None))
    assert ((await inbox.phone.contact())["opt_in_status"], await inbox.opted_out()) == ("unknown", ["complaint"])
    await inbox.report((await inbox.sent(contact_id=contact_id), "complained", None))
    assert (await inbox.phone.contact())["opt_in_status"] == "denied"


async def test_what_comes_again_or_late_suppresses_nothing_anew(inbox: Inbox) -> None:
    message = await inbox.sent()
    await inbox.report((message, "bounced", "invalid_address"))
    await inbox.phone.db.execute("delete from email_suppressions")
    await inbox.report((message, "bounced", "invalid_address"), (message, "complained", None))
    assert (await inbox.status(message), await inbox.suppressions(), await inbox.opted_out()) == ("bounced", [], [])


async def test_of_an_erased_recipient_nothing_is_written(inbox: Inbox) -> None:
    message = await inbox.sent(recipient="a***@example.com", recipient_hash=None)
    await inbox.report((message, "complained", None))
    assert (await inbox.status(message), await inbox.suppressions(), await inbox.opted_out()) == ("complained", [], [])


async def test_many_reports_of_one_address_are_one_entry(inbox: Inbox) -> None:
    messages = [await inbox.sent() for _ in range(3)]
    await inbox.report(*((message, "bounced", "invalid_address") for message in messages))
    assert await inbox.suppressions() == [(ANA, "bounce")]
