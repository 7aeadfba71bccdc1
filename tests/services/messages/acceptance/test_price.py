"""What an accepted message costs, and the wallet that must cover it (C15.2.6, C25.3)."""

from typing import Any

import pytest
from tests.services.messages.acceptance.conftest import PHONE

from recado.domain.templates.template import TemplateCategory
from recado.services.messages.acceptance import Replayed
from recado.services.messages.chatapp_rules import ChatAppRules
from recado.storage.core.audit import AuditPrincipal

ABROAD = "+14155552671"


async def empty(house: Any) -> None:
    await house.db.execute(
        "update wallets set balance_coins = 0, status = 'depleted' where organization_id = $1 and env = 'test'",
        house.organization.id,
    )


@pytest.mark.parametrize(
    ("category", "to", "coins"),
    [
        (TemplateCategory.UTILITY, PHONE, 600),
        (TemplateCategory.UTILITY, ABROAD, 1_800),
        (TemplateCategory.AUTHENTICATION, PHONE, 600),
        (TemplateCategory.AUTHENTICATION, ABROAD, 2_500),
        (TemplateCategory.MARKETING, PHONE, 4_500),
        (TemplateCategory.MARKETING, ABROAD, 9_000),
    ],
)
async def test_a_template_costs_by_its_category_and_region(
    house: Any, category: TemplateCategory, to: str, coins: int
) -> None:
    template = await house.add_template(category=category)
    message = await house.accepted(house.draft(template_id=template.id, to=to))
    assert (message.coins, message.price_kind) == (coins, None)  # test counts for no tier
    assert (await house.row(message.id)).price_coins == coins


async def test_a_message_of_several_units_costs_so_many_times_what_one_does_and_is_known_with_its_details(
    house: Any,
) -> None:
    message = await house.accepted(house.draft(units=3, details={"encoding": "gsm7", "segments": 3}))
    assert message.coins == 1_800
    stored = await house.row(message.id)
    assert (stored.price_coins, stored.units, stored.details) == (1_800, 3, {"encoding": "gsm7", "segments": 3})
    queued = await house.db.fetchrow("select coins, units, source_kind from dispatch where id = $1", message.id)
    assert tuple(queued) == (1_800, 3, "single")
    held = "select held_coins from wallets where organization_id = $1 and env = 'test'"
    assert await house.db.fetchval(held, house.organization.id) == 1_800


async def test_free_form_and_numbers_that_pay_their_provider_cost_the_platform_price(house: Any) -> None:
    await house.hear_from(ABROAD, house.clock.now())
    assert (await house.accepted(house.free_form(to=ABROAD))).coins == 100
    await house.db.execute("update numbers set byo = true where id = $1", house.number.id)
    house.directories.numbers.clear()
    assert (await house.accepted(house.draft(to=ABROAD))).coins == 100


async def test_what_the_wallet_does_not_cover_is_not_stored(house: Any) -> None:
    await empty(house)
    refusal = await house.refusal(house.draft())
    assert (refusal.code, refusal.status) == ("PAYMENT_REQUIRED", 402)
    assert refusal.meta == {"requiredCoins": 600, "availableCoins": 0}


async def test_the_audit_knows_no_force_that_the_wallet_refused(house: Any) -> None:
    await empty(house)
    forced = house.draft(forced_by=AuditPrincipal("key", "key_1"))
    for _ in range(2):  # together with others, and then in order of arrival
        assert (await house.refusal(forced)).code == "PAYMENT_REQUIRED"
        assert await house.db.fetchval("select count(*) from audit where action = 'message.force'") == 0
    await house.db.execute("update wallets set balance_coins = 600 where organization_id = $1", house.organization.id)
    stored = await house.accepted(forced)
    assert await house.db.fetchval("select target_id from audit where action = 'message.force'") == stored.id


async def test_a_repeat_gets_its_message_when_the_wallet_is_empty_by_then(house: Any) -> None:
    keyed = {"key_hash": b"k" * 32, "fingerprint": b"f" * 32}
    first = await house.accepted(house.draft(**keyed))
    await empty(house)
    again = await house.acceptance.accept(house.draft(**keyed))
    assert isinstance(again, Replayed)
    assert again.message.id == first.id
    other = {"key_hash": b"o" * 32, "fingerprint": b"f" * 32}
    assert (await house.refusal(house.draft(**other))).code == "PAYMENT_REQUIRED"


def rules_of(house: Any) -> ChatAppRules:
    rules: ChatAppRules = house.acceptance._rules["chatapp"]
    return rules


async def test_where_nothing_is_billed_no_wallet_is_asked(house: Any) -> None:
    await empty(house)
    rules_of(house)._prices = None
    free = house.acceptance
    message = (await free.accept(house.draft())).message
    assert (message.coins, (await house.row(message.id)).price_coins) == (None, None)


async def test_what_is_not_covered_is_said_before_that_nothing_can_be_sent_here(house: Any) -> None:
    rules_of(house).sends_in = frozenset()
    assert (await house.refusal(house.draft())).code == "DEPENDENCY_FAILED"
    await empty(house)
    assert (await house.refusal(house.draft())).code == "PAYMENT_REQUIRED"
