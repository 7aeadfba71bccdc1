"""An RCS message whose SMS nobody would send: told when all else is fit, as on every channel (C2.6, C17)."""

import os
from functools import partial
from typing import Any

from tests.services.messages.acceptance.test_consent import register
from tests.services.messages.acceptance.test_price import empty

from recado.domain.links.tracked import MessageLinks
from recado.domain.messages.message import Priority
from recado.services.messages.draft import MessageDraft
from recado.services.messages.rcs_content import RcsForm
from recado.services.messages.rcs_rules import RcsRules

PHONE = "+5511987654321"
SMS = {"text": {"body": "Hello"}, "fallback": {"text": "Hello"}}


def draft(house: Any, payload: Any) -> MessageDraft:
    return MessageDraft(
        organization_id=house.organization.id, env="test", channel="rcs", sender_id="", to=PHONE, type="text",
        priority=Priority.NORMAL, payload=payload, details=RcsForm().asked,
    )  # fmt: skip


async def test_that_nobody_sends_the_sms_is_told_after_consent_and_balance(house: Any) -> None:
    house.acceptance._rules["rcs"] = RcsRules(
        organizations=house.acceptance._organizations, ids=house.ids, clock=house.clock, sends_in=["test"], sms_in=[],
        prices=house.acceptance._rules["chatapp"]._prices, links=partial(MessageLinks, "https://l.co", os.urandom),
    )  # fmt: skip
    refusal = await house.refusal(draft(house, SMS))
    assert (refusal.code, "provider of sms" in refusal.detail) == ("DEPENDENCY_FAILED", True)
    await empty(house)
    assert (await house.refusal(draft(house, SMS))).code == "PAYMENT_REQUIRED"
    await register(house, PHONE)
    assert (await house.refusal(draft(house, SMS))).code == "CONTACT_OPTED_OUT"
