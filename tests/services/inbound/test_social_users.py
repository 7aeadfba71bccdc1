"""Users of social accounts who are contacts, and what a provider tells of the accounts (C26, C28)."""

from datetime import timedelta
from typing import Any

import pytest
from tests.services.inbound.test_inbound import ENV, Phone, phone

from recado.channels.core.events import NumberNews, Preference
from recado.domain.channels.source import Source
from recado.domain.messages.changes import SocialAccountChanged
from recado.domain.senders.social_account import SocialAccountStatus
from recado.engine.clock import SystemClock
from recado.services.senders.social_accounts import SocialAccountReports
from recado.storage.contacts import social_identities
from recado.storage.senders.social_accounts import SOCIAL_ACCOUNTS, SocialAccount

__all__ = ["phone"]  # a fixture
SOCIAL = Source("social", "sandbox", ENV)
USER = "17841400"


@pytest.fixture
async def page(phone: Phone) -> SocialAccount:
    """The account of test, and a contact who is one of its users."""
    row = await phone.db.fetchrow(
        "select * from social_accounts where organization_id = $1", phone.number.organization_id
    )
    made = SOCIAL_ACCOUNTS.read(row)
    await phone.write(phone.event("hello"))
    contact = await phone.contact()
    async with phone.db.transaction() as connection:
        key = (contact["organization_id"], contact["env"], contact["id"])
        await social_identities.replace(connection, key, (), (f"{made.id} {USER}",))
    return made


async def write(phone: Phone, *events: Any) -> None:
    async with phone.receipts.transaction() as connection:
        await phone.receipts.take_in(connection, SOCIAL, events)


async def test_what_a_known_user_writes_is_the_contacts(phone: Phone, page: SocialAccount) -> None:
    contact, at = await phone.contact(), phone.event().at
    known = phone.event(sender=USER, account=page.external_account_id, at=at, profile_name="Somebody")
    stranger = phone.event(sender="99999999", account=page.external_account_id)
    await write(phone, known, stranger)
    rows = await phone.db.fetch("select recipient, contact_id from messages where channel = 'social' order by id")
    assert [*map(tuple, rows)] == [(USER, contact["id"]), ("99999999", None)]
    after = await phone.contact()
    assert after["last_interaction_at"] == at
    assert after["chatapp_profile_name"] == contact["chatapp_profile_name"]  # that is the chat app's alone
    assert await phone.count("contacts") == 1


async def test_a_known_user_opts_out_by_a_word_and_is_not_answered(phone: Phone, page: SocialAccount) -> None:
    await write(phone, phone.event("Sair", sender=USER, account=page.external_account_id))
    contact = await phone.contact()
    assert (contact["opt_in_status"], contact["opt_in_revoked_reason"]) == ("denied", "social: sair")
    assert await phone.count("opt_out_replies") == 0


async def test_a_known_user_whom_the_provider_heard_stop_has_opted_out(phone: Phone, page: SocialAccount) -> None:
    at = phone.event().at
    await write(phone, *(Preference(page.external_account_id, user, True, at) for user in ("99999999", USER)))
    contact = await phone.contact()
    assert (contact["opt_in_status"], contact["opt_in_source"]) == ("denied", "provider")
    assert await phone.count("opt_outs") == 1


async def test_a_user_whose_contact_was_deleted_is_nobody_and_makes_none(phone: Phone, page: SocialAccount) -> None:
    await phone.db.execute("delete from contacts")
    await write(phone, phone.event("Sair", sender=USER, account=page.external_account_id))
    assert await phone.count("contacts") == 0
    rows = await phone.db.fetch("select contact_id from messages where channel = 'social'")
    assert [*map(tuple, rows)] == [(None,)]


async def test_all_that_a_user_wrote_before_becomes_the_contacts(
    phone: Phone, page: SocialAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(social_identities, "BLOCK", 2)
    await write(phone, *(phone.event(sender="5555", account=page.external_account_id) for _ in range(5)))
    await write(phone, phone.event(sender="6666", account=page.external_account_id))
    contact = await phone.contact()
    key = (contact["organization_id"], contact["env"], contact["id"])
    has = (f"{page.id} {USER}",)
    async with phone.db.transaction() as connection:
        await social_identities.replace(connection, key, has, (*has, f"{page.id} 5555"))
    rows = await phone.db.fetch("select recipient, contact_id from messages where channel = 'social' order by id")
    assert [*map(tuple, rows)] == [("5555", contact["id"])] * 5 + [("6666", None)]


# What is told of an account -------------------------------------------------------------------------------------------


async def state(phone: Phone, page: SocialAccount) -> SocialAccountStatus:
    found = await SOCIAL_ACCOUNTS.get(phone.db, page.organization_id, page.env, page.id)
    assert found is not None
    return found.status


async def test_an_account_whose_token_is_refused_is_disconnected(phone: Phone, page: SocialAccount) -> None:
    told: list[Any] = []
    reports = SocialAccountReports(phone.db, SystemClock(), told.append)
    at = phone.event().at
    for news in (
        NumberNews(page.external_account_id, at, status="connected"),
        NumberNews(page.external_account_id, at, quality="red"),
        NumberNews("nobody's", at, status="disconnected"),
        NumberNews(None, at, status="disconnected", business_account="page"),
    ):
        await reports.report(ENV, news)
    assert (await state(phone, page), told) == (SocialAccountStatus.CONNECTED, [])
    await reports.report(ENV, NumberNews(page.external_account_id, at, status="disconnected"))
    assert await state(phone, page) is SocialAccountStatus.DISCONNECTED
    assert told == [SocialAccountChanged(page.organization_id, ENV, page.id)]
    await reports.report(ENV, NumberNews(page.external_account_id, at, status="connected"))
    assert await state(phone, page) is SocialAccountStatus.DISCONNECTED  # nobody but the customer connects


async def test_what_was_told_before_an_account_was_connected_is_late(phone: Phone, page: SocialAccount) -> None:
    at = phone.event().at
    await phone.db.execute("update social_accounts set connected_at = $1", at)
    reports = SocialAccountReports(phone.db, SystemClock(), lambda change: None)
    early = NumberNews(page.external_account_id, at - timedelta(seconds=1), status="disconnected")
    await reports.report(ENV, early)
    assert await state(phone, page) is SocialAccountStatus.CONNECTED
