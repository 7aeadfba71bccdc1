"""What chat-app asks of a message (C12.5.4, C14.5, C15.2.2, C25.3)."""

from datetime import timedelta

import pytest

from recado.domain.channels.chatapp import POLICY
from recado.domain.messages.message import Priority
from recado.domain.templates.template import TemplateCategory

FREE_FORM = ("text", "media", "interactive")


@pytest.mark.parametrize(
    ("category", "priority", "ttl"),
    [
        (TemplateCategory.AUTHENTICATION, Priority.CRITICAL, timedelta(minutes=10)),
        (TemplateCategory.AUTHENTICATION, Priority.BULK, timedelta(minutes=10)),
        (TemplateCategory.UTILITY, Priority.CRITICAL, timedelta(hours=1)),
        (TemplateCategory.MARKETING, Priority.NORMAL, timedelta(hours=24)),
        (None, Priority.NORMAL, timedelta(hours=24)),
        (None, Priority.BULK, timedelta(hours=72)),
    ],
)
def test_the_time_to_live_follows_from_content_and_priority(
    category: TemplateCategory | None, priority: Priority, ttl: timedelta
) -> None:
    assert POLICY.ttl(category, priority) == ttl


def test_the_kind_is_that_of_the_template_and_numbers_of_their_own_pay_the_platform_only() -> None:
    assert POLICY.price_kind(TemplateCategory.AUTHENTICATION, False) == "chatapp_authentication"
    assert POLICY.price_kind(None, False) == "chatapp_free_form"
    for category in (None, *TemplateCategory):
        assert POLICY.price_kind(category, True) == "chatapp_platform"


def test_what_is_free_form_needs_an_open_window() -> None:
    assert not POLICY.needs_window("template")
    assert all(POLICY.needs_window(kind) for kind in FREE_FORM)


@pytest.mark.parametrize("category", [None, *TemplateCategory])
def test_marketing_alone_is_subject_to_consent(category: TemplateCategory | None) -> None:
    assert POLICY.subject_to_consent(category) is (category is TemplateCategory.MARKETING)


@pytest.mark.parametrize("priority", Priority)
@pytest.mark.parametrize("category", TemplateCategory)
def test_marketing_and_bulk_obey_quiet_hours(category: TemplateCategory, priority: Priority) -> None:
    obeys = category is TemplateCategory.MARKETING or priority is Priority.BULK
    assert POLICY.obeys_quiet_hours("template", category, priority) is obeys


def test_what_a_message_obeys_is_told_at_once() -> None:
    assert POLICY.obeys("template", TemplateCategory.MARKETING, Priority.NORMAL) == (False, True, True)
    assert POLICY.obeys("template", TemplateCategory.UTILITY, Priority.BULK) == (False, False, True)
    assert POLICY.obeys("text", None, Priority.BULK) == (True, False, False)


@pytest.mark.parametrize("priority", Priority)
@pytest.mark.parametrize("kind", FREE_FORM)
def test_a_reply_in_the_window_obeys_no_quiet_hours(kind: str, priority: Priority) -> None:
    assert not POLICY.obeys_quiet_hours(kind, None, priority)
