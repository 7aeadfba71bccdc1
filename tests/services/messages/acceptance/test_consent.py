"""Consent to marketing, asked for in the commit that accepts it (C12.5.6), after repeats and before prices (C2.6)."""

import asyncio
from functools import partial
from typing import Any

import pytest
from tests.services.messages.acceptance.conftest import PHONE

from recado.domain.core.errors import Problem
from recado.domain.core.ids import CONTACT
from recado.domain.core.phones import phone_hash
from recado.domain.templates.template import TemplateCategory
from recado.services.messages import chatapp_rules
from recado.services.messages.acceptance import AcceptedMessage, Replayed
from recado.services.messages.acceptance_rules import new_message
from recado.services.messages.draft import Again, MessageDraft
from recado.services.messages.replacing import draft_again
from recado.storage.core.audit import AuditPrincipal

OTHER = "+5511987654322"
OPERATOR = AuditPrincipal("key", "key_000000000000000000001", ip="203.0.113.9", request_id="req_1")
KEYED: dict[str, Any] = {"key_hash": b"k" * 32, "fingerprint": b"f" * 32}
OPTED_OUT = ("CONTACT_OPTED_OUT", 422, {"motivo": "opt_out"})
UNGRANTED = ("CONSENT_REQUIRED", 422, {"motivo": "sem_consentimento"})


@pytest.fixture
async def marketing(house: Any) -> Any:
    """Its template is a marketing one: 4,500 coins a message."""
    house.template = await house.add_template(category=TemplateCategory.MARKETING)
    return house


async def contact(house: Any, phone: str, status: str) -> str:
    contact_id = str(house.ids.new(CONTACT))
    await house.db.execute(
        "insert into contacts (organization_id, env, id, phone, phone_hash, source, opt_in_status, search, updated_at) "
        "values ($1, 'test', $2, $3, $4, 'api', $5, '', now())",
        house.organization.id, contact_id, phone, phone_hash(house.organization.id, phone), status,
    )  # fmt: skip
    return contact_id


async def register(house: Any, phone: str) -> None:
    await house.db.execute(
        "insert into opt_outs values ($1, 'test', 'phone', $2, now())",
        house.organization.id,
        phone_hash(house.organization.id, phone),
    )


async def granted_only(house: Any) -> None:
    await house.db.execute(
        "update organizations set require_granted_for_marketing = true where id = $1", house.organization.id
    )
    house.directories.organizations.clear()


async def coins(house: Any, balance: int) -> None:
    await house.db.execute(
        "update wallets set balance_coins = $2 where organization_id = $1 and env = 'test'",
        house.organization.id,
        balance,
    )


async def held(house: Any) -> int:
    return int(
        await house.db.fetchval(
            "select held_coins from wallets where organization_id = $1 and env = 'test'", house.organization.id
        )
    )


async def refused(house: Any, draft: MessageDraft) -> tuple[str, int, Any]:
    refusal = await house.refusal(draft)
    assert (
        await house.db.fetchval("select count(*) from dispatch where organization_id = $1", house.organization.id) == 0
    )
    return refusal.code, refusal.status, refusal.meta


def codes(outcomes: list[Any]) -> list[str | None]:
    assert all(isinstance(outcome, AcceptedMessage | Problem) for outcome in outcomes), outcomes
    return [outcome.code if isinstance(outcome, Problem) else None for outcome in outcomes]


async def test_whoever_opted_out_gets_no_marketing(marketing: Any) -> None:
    await contact(marketing, PHONE, "denied")
    await register(marketing, OTHER)
    assert await refused(marketing, marketing.draft()) == OPTED_OUT
    assert await refused(marketing, marketing.draft(to=OTHER)) == OPTED_OUT
    assert await held(marketing) == 0


async def test_whoever_did_not_consent_gets_none_where_the_organization_asks_for_it(marketing: Any) -> None:
    await contact(marketing, PHONE, "unknown")
    await granted_only(marketing)
    assert await refused(marketing, marketing.draft()) == UNGRANTED
    assert await refused(marketing, marketing.draft(to=OTHER)) == UNGRANTED
    await marketing.db.execute("update contacts set opt_in_status = 'granted'")
    await marketing.accepted(marketing.draft())


async def test_what_asks_for_no_grant_goes_to_anyone_who_did_not_refuse(
    marketing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chatapp_rules, "new_message", partial(new_message, asks_grant=False))
    contact_id = await contact(marketing, PHONE, "unknown")
    await granted_only(marketing)
    drafts = [marketing.draft(), marketing.draft(contact_id=contact_id), marketing.draft(to=OTHER)]
    for draft in drafts:
        await marketing.accepted(draft)
    await register(marketing, OTHER)
    await marketing.db.execute("update contacts set opt_in_status = 'denied'")
    await marketing.db.execute("delete from dispatch")
    assert [await refused(marketing, draft) for draft in drafts] == [OPTED_OUT] * 3


async def test_the_commit_alone_is_waited_for(marketing: Any) -> None:
    await marketing.accepted(marketing.draft())
    assert marketing.acceptance._recipients._look_ups.rows == 0


async def test_those_who_are_asked_before_the_commit_get_none_either(marketing: Any) -> None:
    failed = await marketing.accepted(marketing.draft())
    await marketing.fail(failed.id, "expired: too late")
    await marketing.db.execute("delete from dispatch")
    again = Again(await marketing.row(failed.id), OPERATOR, include_uncertain=False)
    contact_id = await contact(marketing, PHONE, "denied")
    drafts = [
        marketing.draft(contact_id=contact_id),
        marketing.draft(forced_by=OPERATOR),
        draft_again(again, key_hash=None, fingerprint=None),
    ]
    assert [await refused(marketing, draft) for draft in drafts] == [OPTED_OUT] * 3
    assert await marketing.db.fetchval("select count(*) from audit where action like 'message.%'") == 0
    assert (await marketing.row(failed.id)).replaced_by is None


async def test_an_environment_without_a_provider_is_told_after_a_refusal(marketing: Any) -> None:
    marketing.acceptance._rules["chatapp"].sends_in = frozenset()
    assert (await refused(marketing, marketing.draft()))[0] == "DEPENDENCY_FAILED"
    await register(marketing, PHONE)
    assert await refused(marketing, marketing.draft()) == OPTED_OUT


async def test_a_key_of_a_refused_request_makes_a_message_once_there_is_consent(marketing: Any) -> None:
    await contact(marketing, PHONE, "denied")
    assert await refused(marketing, marketing.draft(**KEYED)) == OPTED_OUT
    await marketing.db.execute("update contacts set opt_in_status = 'granted'")
    first = await marketing.accepted(marketing.draft(**KEYED))
    again = await marketing.acceptance.accept(marketing.draft(**KEYED))
    assert isinstance(again, Replayed)
    assert again.message.id == first.id


async def test_a_repeat_gets_its_message_though_its_recipient_opted_out_since(marketing: Any) -> None:
    first = await marketing.accepted(marketing.draft(**KEYED))
    await contact(marketing, PHONE, "denied")
    again = await marketing.acceptance.accept(marketing.draft(**KEYED))
    assert isinstance(again, Replayed)
    assert again.message.id == first.id
    reused = await marketing.refusal(marketing.draft(key_hash=b"k" * 32, fingerprint=b"g" * 32))
    assert reused.code == "IDEMPOTENCY_KEY_REUSED"


async def test_a_repeat_of_what_never_left_is_asked_again(marketing: Any) -> None:
    first = await marketing.accepted(marketing.draft(**KEYED))
    await marketing.fail(first.id, "opted_out: the contact opted out")
    await contact(marketing, PHONE, "denied")
    assert (await marketing.refusal(marketing.draft(**KEYED))).code == "CONTACT_OPTED_OUT"


@pytest.mark.parametrize("balance", [1_000_000, 9_000], ids=["covered", "just covered"])
async def test_of_many_at_once_exactly_those_are_held_that_are_accepted(marketing: Any, balance: int) -> None:
    await coins(marketing, balance)
    await contact(marketing, PHONE, "denied")
    phones = [PHONE, OTHER, PHONE, "+5511987654323", PHONE]
    outcomes = await asyncio.gather(
        *(marketing.acceptance.accept(marketing.draft(to=phone)) for phone in phones), return_exceptions=True
    )
    assert codes(outcomes) == [code := OPTED_OUT[0], None, code, None, code]
    assert await held(marketing) == 9_000
    assert await marketing.stored() == 2


async def test_a_refusal_comes_before_the_price_and_costs_others_nothing(marketing: Any) -> None:
    await coins(marketing, 4_500)
    await register(marketing, PHONE)
    for round_ in range(2):  # the second time the wallet is known to be tight
        outcomes = await asyncio.gather(
            *(marketing.acceptance.accept(marketing.draft(to=phone)) for phone in (PHONE, OTHER, OTHER, PHONE)),
            return_exceptions=True,
        )
        first = None if round_ == 0 else "PAYMENT_REQUIRED"
        assert codes(outcomes) == [OPTED_OUT[0], first, "PAYMENT_REQUIRED", OPTED_OUT[0]]
        assert await held(marketing) == 4_500
