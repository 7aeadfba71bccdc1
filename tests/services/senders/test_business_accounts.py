"""Reports that name a business account and no number: each number that is meant takes them (C14.2, C11.3)."""

import random
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from recado.channels.core.events import NumberNews, TemplateVerdict
from recado.domain.core.ids import NUMBER, ORGANIZATION, TEMPLATE, IdSource
from recado.domain.senders.number import NumberStatus as State
from recado.domain.templates.template import Language, TemplateCategory
from recado.domain.templates.template import TemplateStatus as Verdict
from recado.engine.clock import VirtualClock
from recado.services.senders.number_refresh import NumberRefresh
from recado.services.templates.template_review import TemplateReview
from recado.storage.core.connections.postgres import Database
from recado.storage.core.crypto import KeyRing
from recado.storage.senders import numbers
from recado.storage.senders.numbers import Number
from recado.storage.templates import templates
from recado.storage.templates.templates import Template

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
KEYS = KeyRing.parse("k1:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
PLACES = [("org_a", "ba-1", "+5511900000001"), ("org_a", "ba-1", "+5511900000002"), ("org_b", "ba-2", "+5511900000001")]


def an_id(prefix: str, number: int) -> str:
    return f"{prefix}{number:021}"


class Place:
    """Two business accounts with three numbers of two organizations; each holds the provider's template 77."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.told: list[Any] = []
        clock = VirtualClock(NOW)
        parts: dict[str, Any] = {
            "clock": clock,
            "ids": IdSource(clock, random.Random(1)),
            "keys": KEYS,
            "provider_for": lambda env: None,
            "changed": self.told.append,
        }
        self.refresh = NumberRefresh(database, **parts)
        self.review = TemplateReview(database, **parts)

    async def fill(self) -> None:
        async with self.database.transaction() as connection:
            for index, (organization, account, phone) in enumerate(PLACES):
                owner = an_id(ORGANIZATION, int(organization == "org_b"))
                number = await numbers.insert(
                    connection,
                    Number(
                        organization_id=owner,
                        id=an_id(NUMBER, index),
                        env="live",
                        phone_number_id=f"pn-{index}",
                        business_account_id=account,
                        display_phone=phone,
                        status=State.CONNECTED,
                        updated_at=NOW,
                    ),
                )
                await templates.insert(
                    connection,
                    Template(
                        organization_id=owner,
                        id=an_id(TEMPLATE, index),
                        env="live",
                        number_id=number.id,
                        name="ola",
                        language=Language.PT_BR,
                        category=TemplateCategory.UTILITY,
                        components=(),
                        status=Verdict.APPROVED,
                        provider_template_id="77",
                        updated_at=NOW,
                    ),
                )

    async def column(self, table: str, name: str) -> list[Any]:
        return [row[0] for row in await self.database.fetch(f"select {name} from {table} order by id")]


@pytest.fixture
async def place(database: Database) -> Place:
    made = Place(database)
    await made.fill()
    return made


async def test_news_of_an_account_is_news_of_all_its_numbers_and_of_no_other(place: Place) -> None:
    await place.refresh.report("live", NumberNews(None, NOW, "disconnected", business_account="ba-1"))

    assert await place.column("numbers", "status") == ["disconnected", "disconnected", "connected"]
    assert len(place.told) == 2


@pytest.mark.parametrize("phone", ["+5511900000002", "5511900000002", "551100000002"])
async def test_a_phone_names_one_number_of_the_account(phone: str, place: Place) -> None:
    await place.refresh.report("live", NumberNews(None, NOW, tier="tier_10k", business_account="ba-1", phone=phone))

    known = phone != "551100000002"  # the last is another phone
    assert await place.column("numbers", "messaging_tier") == [
        "tier_250",
        "tier_10k" if known else "tier_250",
        "tier_250",
    ]


@pytest.mark.parametrize(
    "change",
    [{"business_account": "ba-9"}, {"business_account": None}, {"phone": "Ana"}, {"phone": ""}, {"account": "pn-9"}],
)
async def test_news_of_a_number_that_is_not_here_is_dropped(change: dict[str, Any], place: Place) -> None:
    news = NumberNews(None, NOW, "disconnected", business_account="ba-1", phone="+5511900000009")

    await place.refresh.report("live", replace(news, **change))
    await place.refresh.report("test", replace(news, phone=None))

    assert await place.column("numbers", "status") == ["connected"] * 3


async def test_a_verdict_is_for_each_number_of_the_account_that_holds_the_template(place: Place) -> None:
    await place.review.report("live", TemplateVerdict("paused", NOW, "77", business_account="ba-1"))
    await place.review.report("live", TemplateVerdict("disabled", NOW, "78", business_account="ba-2"))

    assert await place.column("templates", "status") == ["paused", "paused", "approved"]


async def test_a_verdict_that_is_faster_than_the_answer_finds_the_submission_by_its_name(place: Place) -> None:
    await place.database.execute("update templates set status = 'submitted', provider_template_id = null")
    named: dict[str, Any] = {"name": "ola", "language": "pt-BR"}

    for other in (
        TemplateVerdict("approved", NOW, "99", business_account="ba-1"),
        TemplateVerdict("approved", NOW, "99", business_account="ba-1", name="ola", language="en-US"),
        TemplateVerdict("disabled", NOW, "99", business_account="ba-1", **named),  # of one that had the name before
        TemplateVerdict("approved", NOW, "99", business_account="ba-9", **named),
        TemplateVerdict("approved", NOW, "99", account="pn-9", **named),
        TemplateVerdict("approved", NOW, "99", **named),  # whose is not said
    ):
        await place.review.report("live", other)
    await place.review.report("test", TemplateVerdict("approved", NOW, "99", business_account="ba-1", **named))
    assert await place.column("templates", "status") == ["submitted"] * 3

    await place.review.report("live", TemplateVerdict("approved", NOW, "99", business_account="ba-1", **named))
    await place.review.report("live", TemplateVerdict("rejected", NOW, "98", account="pn-2", **named))
    assert await place.column("templates", "status") == ["approved", "approved", "rejected"]
    assert await place.column("templates", "provider_template_id") == ["99", "99", "98"]


async def test_news_of_an_account_does_not_reach_another_organization_that_names_it(place: Place) -> None:
    """As a database may have it from before an account had one owner."""
    await place.database.execute("update numbers set business_account_id = 'ba-1'")
    await place.database.execute("update templates set provider_template_id = '77'")

    await place.refresh.report("live", NumberNews(None, NOW, "disconnected", business_account="ba-1"))
    await place.review.report("live", TemplateVerdict("paused", NOW, "77", business_account="ba-1"))

    assert await place.column("numbers", "status") == ["disconnected", "disconnected", "connected"]
    assert await place.column("templates", "status") == ["paused", "paused", "approved"]
    await place.database.execute("update templates set status = 'submitted', provider_template_id = null")
    named: dict[str, Any] = {"name": "ola", "language": "pt-BR", "business_account": "ba-1"}
    await place.review.report("live", TemplateVerdict("approved", NOW, "99", **named))
    assert await place.column("templates", "status") == ["approved", "approved", "submitted"]


async def test_a_category_alone_moves_no_state(place: Place) -> None:
    await place.review.report("live", TemplateVerdict("paused", NOW, "77", business_account="ba-1"))

    await place.review.report("live", TemplateVerdict(None, NOW, "77", category="marketing", business_account="ba-1"))
    await place.review.report("live", TemplateVerdict(None, NOW, "77", category="marketing", business_account="ba-2"))

    assert await place.column("templates", "status") == ["paused", "paused", "approved"]
    assert await place.column("templates", "category") == ["utility", "utility", "marketing"]
