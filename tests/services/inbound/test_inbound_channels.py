"""What people send on channels that differ from chat-app: without windows, answers or phones, or by a shared sender."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.services.inbound.test_inbound import ENV, OTHER, PHONE, Phone, phone

from recado.channels.core.events import Preference
from recado.domain.channels import chatapp
from recado.domain.channels.address import Address, AddressKind
from recado.domain.channels.policies import POLICIES
from recado.domain.channels.policy import Policy, SenderKind
from recado.domain.channels.source import Source
from recado.domain.core.phones import phone_hash
from recado.services.inbound import account_owners
from recado.services.inbound.account_owners import AccountOwner

__all__ = ["phone"]  # a fixture
LETTERS = replace(
    chatapp.POLICY, channel="sms", sender=SenderKind.ROUTE, received="sms.received", opens_window=False,
    answers_opt_outs=False,
)  # fmt: skip
CHATS = replace(chatapp.POLICY, channel="social", addresses=(AddressKind.SOCIAL,), received="social.message.received")
SECOND = "org_" + "9" * 21


class Shared:
    """Owners as a look-up of the last messages to a person would find them."""

    def __init__(self, owners: Sequence[AccountOwner]) -> None:
        self.owners = owners
        self.asked: list[tuple[str, Address | None]] = []

    async def __call__(
        self, executor: Any, source: Source, asked: Sequence[tuple[str, Address | None]], now: datetime
    ) -> list[Sequence[AccountOwner]]:
        self.asked += asked
        return [self.owners if address is not None else [] for _, address in asked]


def enter(monkeypatch: pytest.MonkeyPatch, policy: Policy, owners: Any = account_owners.sole_owners) -> Source:
    """Install the channel; its source."""
    monkeypatch.setitem(POLICIES, policy.channel, policy)  # type: ignore[arg-type]
    monkeypatch.setitem(account_owners._OWNERS, policy.sender, owners)  # type: ignore[arg-type]
    return Source(policy.channel, "sandbox", ENV)


async def write(phone: Phone, source: Source, *events: Any) -> None:
    async with phone.receipts.transaction() as connection:
        await phone.receipts.take_in(connection, source, events)


@pytest.fixture
def letters(monkeypatch: pytest.MonkeyPatch, phone: Phone) -> tuple[Source, Shared]:
    """Text messages, by a sender that two organizations share."""
    owners = [AccountOwner(phone.number.organization_id, "sms:test:a"), AccountOwner(SECOND, "sms:test:b")]
    shared = Shared(owners)
    return enter(monkeypatch, LETTERS, shared), shared


async def test_a_message_is_one_of_its_channel_and_opens_no_window_where_there_is_none(
    phone: Phone, letters: tuple[Source, Shared]
) -> None:
    source, shared = letters
    await phone.write(phone.event())
    await phone.db.execute("update contacts set unreachable = '{chatapp,sms}'")
    await write(phone, source, phone.event(account="a gateway"))
    rows = await phone.db.fetch("select channel, sender_id, contact_id is not null from messages order by id")
    assert [*map(tuple, rows)] == [("chatapp", phone.number.id, True), ("sms", "sms:test:a", True)]
    assert await phone.db.fetch("select sender_id from chat_windows") == [(phone.number.id,)]
    assert (await phone.contact())["unreachable"] == ["chatapp"]
    assert shared.asked == [("a gateway", Address(AddressKind.PHONE, PHONE))]


async def test_what_comes_to_a_route_from_someone_to_whom_nobody_sent_is_nobodys(phone: Phone) -> None:
    source = Source("sms", "bridge", "live")
    asked: list[tuple[str, Address | None]] = [("a gateway", Address(AddressKind.PHONE, PHONE)), ("a gateway", None)]
    found = await account_owners.owners_in("sms")(phone.db, source, asked, phone.event().at)
    assert found == [[], []]


async def test_what_comes_to_a_shared_sender_is_for_whoever_sent_there_last_and_to_a_dedicated_one_for_its_owner(
    phone: Phone,
) -> None:
    first, source, now = phone.number.organization_id, Source("sms", "bridge", "live"), phone.event().at
    written = [(first, "sms:live:otp", 2), (SECOND, "sms:live:premium", 1), ("org_" + "8" * 21, "sms:live:premium", 31)]
    for organization_id, sender_id, days in written:
        await phone.db.execute(
            "insert into reached_recipients values ('live', 'sms', $1, $2, $3, $4)",
            Address(AddressKind.PHONE, PHONE).hash("sms"), organization_id, sender_id, now - timedelta(days=days),
        )  # fmt: skip
    await phone.db.execute("update organizations set dedicated_sender = '28282' where id = $1", first)
    asked: list[tuple[str, Address | None]] = [
        ("a gateway", Address(AddressKind.PHONE, PHONE)),
        ("a gateway", Address(AddressKind.PHONE, OTHER)),
        ("28282", Address(AddressKind.PHONE, PHONE)),
    ]
    assert await account_owners.owners_in("sms")(phone.db, source, asked, now) == [
        [AccountOwner(SECOND, "sms:live:premium"), AccountOwner(first, "sms:live:otp")],
        [],
        [AccountOwner(first, "sms:live:premium")],
    ]


@pytest.mark.parametrize(
    ("own", "told"), [("+551140028922", "551140028922"), ("551140028922", "+551140028922"), ("28282", "+28282")]
)
async def test_a_dedicated_sender_is_found_with_and_without_its_plus(phone: Phone, own: str, told: str) -> None:
    first, source = phone.number.organization_id, Source("sms", "smpp", "live")
    await phone.db.execute("update organizations set dedicated_sender = $2 where id = $1", first, own)
    asked: list[tuple[str, Address | None]] = [(told, Address(AddressKind.PHONE, PHONE)), ("9" + told, None)]
    found = await account_owners.owners_in("sms")(phone.db, source, asked, phone.event().at)
    assert found == [[AccountOwner(first, "sms:live:premium")], []]


async def test_an_opt_out_there_is_not_answered_and_is_one_at_each_that_shares_the_sender(
    phone: Phone, letters: tuple[Source, Shared]
) -> None:
    source, _ = letters
    await write(phone, source, phone.event("stop"), phone.event("hello", sender=OTHER), phone.event("sim, voltar"))
    contact = await phone.contact()
    assert (contact["opt_in_status"], contact["opt_in_revoked_reason"]) == ("denied", "sms: stop")
    assert await phone.count("opt_out_replies") == 0
    assert await phone.count("messages") == 3
    second = "select source, hash from opt_outs where organization_id = $1"
    assert await phone.db.fetch(second, SECOND) == [("inbound_keyword", phone_hash(SECOND, PHONE))]
    await write(phone, source, phone.event("start"))
    assert (await phone.contact())["opt_in_status"] == "granted"
    assert len(await phone.db.fetch(second, SECOND)) == 1  # a consent is one to who is written to


async def test_a_refusal_told_by_the_provider_is_one_at_each_that_shares_the_sender(
    phone: Phone, letters: tuple[Source, Shared]
) -> None:
    await write(phone, letters[0], Preference("a gateway", PHONE, True, phone.event().at))
    found = await phone.db.fetch("select organization_id, source from opt_outs order by 1")
    assert {*map(tuple, found)} == {(phone.number.organization_id, "provider"), (SECOND, "provider")}


async def test_whoever_shows_no_phone_is_no_contact_and_says_nothing_of_consent(
    phone: Phone, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = enter(monkeypatch, CHATS)
    await phone.db.execute(
        "insert into sender_owners (env, channel, account, organization_id, sender_id) "
        "values ('test', 'social', 'page', $1, 'soc_1')",
        phone.number.organization_id,
    )
    hello = phone.event("hello", sender=" 17841400 ", account="page")
    stop = phone.event("stop", sender="17841400", account="page", quoted=hello.provider_message_id)
    await write(phone, source, hello, stop, phone.event(account="nobody's"))
    rows = await phone.db.fetch("select channel, sender_id, recipient, contact_id, recipient_hash from messages")
    hashed = Address(AddressKind.SOCIAL, "17841400").recipient_hash(phone.number.organization_id)
    assert [*map(tuple, rows)] == [("social", "soc_1", "17841400", None, hashed)] * 2
    assert await phone.db.fetch("select sender_id, recipient_hash from chat_windows") == [("soc_1", hashed)]
    assert (await phone.count("contacts"), await phone.count("opt_outs")) == (0, 0)
    assert await phone.count("opt_out_replies") == 0


async def test_an_answer_is_owed_on_the_channel_on_which_the_person_opted_out(phone: Phone) -> None:
    await phone.say("sair")
    assert await phone.db.fetch("select channel, sender_id from opt_out_replies") == [("chatapp", phone.number.id)]
