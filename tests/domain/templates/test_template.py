"""A template's states, and what a provider's report of one means (C11.3)."""

import pytest

from recado.domain.templates.template import TEMPLATE_MACHINE, TemplateEvent, TemplateStatus, reported_events


@pytest.mark.parametrize(
    ("state", "event", "target"),
    [
        ("draft", "submit", "submitted"),
        ("rejected", "submit", "submitted"),
        ("submitted", "taken", "pending"),
        ("submitted", "refused", "rejected"),
        ("submitted", "unreachable", "submitted"),
        ("submitted", "given_up", "draft"),
        ("pending", "approve", "approved"),
        ("pending", "reject", "rejected"),
        ("approved", "pause", "paused"),
        ("paused", "release", "approved"),
        ("approved", "disable", "disabled"),
        ("paused", "disable", "disabled"),
        ("pending", "disable", "disabled"),
        ("approved", "edit", "draft"),
        ("paused", "edit", "draft"),
        ("rejected", "edit", "draft"),
        ("draft", "edit", "draft"),
        ("approved", "recategorize", "approved"),
    ],
)
def test_a_template_moves_as_the_contract_says(state: str, event: str, target: str) -> None:
    assert TEMPLATE_MACHINE.move(TemplateStatus(state), TemplateEvent(event)) is TemplateStatus(target)


def test_a_disabled_template_moves_no_more() -> None:
    assert all(TemplateStatus.DISABLED not in TEMPLATE_MACHINE.sources(event) for event in TemplateEvent)


@pytest.mark.parametrize("status", TemplateStatus)
@pytest.mark.parametrize("reported", TemplateStatus)
def test_a_reported_status_is_reached_or_ignored(status: TemplateStatus, reported: TemplateStatus) -> None:
    state, events = status, reported_events(status, reported)
    for event in events:
        state = TEMPLATE_MACHINE.move(state, event)
    assert state is (reported if events else status)
