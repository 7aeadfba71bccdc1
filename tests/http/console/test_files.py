"""The console's files by themselves (C34.3): its texts in both languages, its views in their table."""

import json
import re
from enum import StrEnum
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest

from recado.domain.access.account import AccountStatus, Role
from recado.domain.batches.batch import BatchStatus
from recado.domain.batches.campaign import CampaignStatus
from recado.domain.billing.wallet import WalletStatus
from recado.domain.channels.email import EmailReason
from recado.domain.channels.rcs import RcsReason
from recado.domain.channels.sms import SmsReason
from recado.domain.contacts.consent import ConsentStatus
from recado.domain.contacts.contact import CompanyRole, ContactSource
from recado.domain.dispatch.breaker import BreakerState
from recado.domain.email.sender import EmailSenderStatus
from recado.domain.email.suppression import SuppressionReason
from recado.domain.email.template import EmailTemplateStatus
from recado.domain.journeys.execution import (
    Awaited,
    EndReason,
    ExecutionOrigin,
    ExecutionStatus,
    SkipReason,
    TrailResult,
)
from recado.domain.journeys.graph import FieldOperator, Reentry, StepKind, StepSignal
from recado.domain.journeys.journey import Hindrance, JourneyStatus
from recado.domain.messages.message import FailureCode, GenericStatus, Priority, WaitReason
from recado.domain.push.device import DeviceStatus
from recado.domain.push.message import DispatchStatus, PushStatus, RateKind
from recado.domain.senders.number import NumberStatus, QualityRating
from recado.domain.senders.social_account import Platform, SocialAccountStatus
from recado.domain.templates.template import Language, TemplateCategory, TemplateStatus
from recado.domain.webhooks.webhook import SubscriptionStatus
from recado.engine.child import State

CONSOLE = Path(str(files("recado.http") / "console"))
MODULES = sorted(each for each in CONSOLE.rglob("*.js") if "vendor" not in each.parts)
PLACE = re.compile(r"\{(\w+)\}")

NAMED: dict[str, type[StrEnum]] = {
    "accountStatus": AccountStatus,
    "actorState": State,
    "awaited": Awaited,
    "batchStatus": BatchStatus,
    "campaignStatus": CampaignStatus,
    "circuit": BreakerState,
    "companyRole": CompanyRole,
    "consent": ConsentStatus,
    "contactSource": ContactSource,
    "deviceStatus": DeviceStatus,
    "dispatchStatus": DispatchStatus,
    "emailReason": EmailReason,
    "emailTemplateStatus": EmailTemplateStatus,
    "endReason": EndReason,
    "executionStatus": ExecutionStatus,
    "failure": FailureCode,
    "hindrance": Hindrance,
    "journeyStatus": JourneyStatus,
    "language": Language,
    "messageStatus": GenericStatus,
    "numberStatus": NumberStatus,
    "operator": FieldOperator,
    "priority": Priority,
    "pushStatus": PushStatus,
    "quality": QualityRating,
    "rateKind": RateKind,
    "rcsReason": RcsReason,
    "reason": WaitReason,
    "reentry": Reentry,
    "result": TrailResult,
    "role": Role,
    "senderStatus": EmailSenderStatus,
    "signal": StepSignal,
    "skipped": SkipReason,
    "smsReason": SmsReason,
    "socialPlatform": Platform,
    "socialStatus": SocialAccountStatus,
    "stepKind": StepKind,
    "subscription": SubscriptionStatus,
    "suppressionReason": SuppressionReason,
    "templateCategory": TemplateCategory,
    "templateStatus": TemplateStatus,
    "trigger": ExecutionOrigin,
    "walletStatus": WalletStatus,
}
"""Values of the API that people read in words: the kind of their texts, and all of them."""


@cache
def texts() -> dict[str, list[str]]:
    """The rows of the table. Its files hold nothing but rows, in the form of JSON but for comments and last commas."""
    rows: list[tuple[str, list[str]]] = []
    for file in sorted((CONSOLE / "texts").glob("*.js")):
        source = re.sub(r"^\s*//.*$", "", file.read_text("utf-8"), flags=re.MULTILINE)
        table = re.fullmatch(r"\s*export const \w+ = (\{.*\});\s*", source, re.DOTALL)
        assert table, f"{file.name} holds more than a table of texts"
        rows += json.loads(re.sub(r",(\s*[}\]])", r"\1", table[1]), object_pairs_hook=list)
    assert len({key for key, _ in rows}) == len(rows), "a text stands twice"
    return dict(rows)


def test_every_text_stands_in_both_languages_with_the_same_places() -> None:
    assert len(texts()) > 200
    for key, row in texts().items():
        assert len(row) == 2, key
        portuguese, english = row
        assert portuguese.strip() == portuguese != "", key
        assert english.strip() == english != "", key
        assert set(PLACE.findall(portuguese)) == set(PLACE.findall(english)), key


def test_every_text_that_a_module_names_is_there() -> None:
    for module in MODULES:
        source = module.read_text("utf-8")
        named = re.findall(r'\bt\("([\w.]+)"', source) + re.findall(r'\btitle = "([\w.]+)"', source)
        assert [key for key in named if key not in texts()] == [], module.name


@pytest.mark.parametrize("kind", NAMED)
def test_every_value_of_the_api_that_is_shown_in_words_has_them(kind: str) -> None:
    assert [value for value in NAMED[kind] if f"{kind}.{value}" not in texts()] == []


def test_every_view_stands_in_the_table_of_views() -> None:
    table = (CONSOLE / "views.js").read_text("utf-8")
    views = [each for each in MODULES if each.parent.name == "views"]
    assert len(views) >= 10
    for view in views:
        name = view.stem
        source = view.read_text("utf-8")
        assert f'import * as {name} from "./views/{name}.js";' in table, name
        assert re.search(rf"^  (\{{ \.\.\.)?{name}\b", table, re.MULTILINE), name
        for exported in ("export const path = ", "export const title = ", "export function render("):
            assert exported in source, f"{name} has no {exported}"


def test_no_module_makes_markup_of_a_text() -> None:
    for module in MODULES:
        source = module.read_text("utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", source), (
            module.name
        )
