"""What a provider's answers and reports make of a template (C11.3)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.channels.core.events import Followup, TemplateVerdict, Verdict
from recado.channels.core.provider import Submission
from recado.domain.core.machine import IllegalMove
from recado.domain.templates.template import Language, TemplateCategory
from recado.domain.templates.template import TemplateStatus as Status
from recado.services.templates.template_review import (
    SUBMIT_AGAIN,
    submitted,
    with_provider_away,
    with_refusal,
    with_report,
    with_submission,
)
from recado.storage.templates.templates import Template

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
TEMPLATE = Template(
    organization_id="org_1",
    id="tpl_" + "0" * 21,
    env="live",
    number_id="num_1",
    name="welcome",
    language=Language.PT_BR,
    category=TemplateCategory.UTILITY,
    components=(),
    version=3,
    updated_at=NOW,
)


def at(status: Status, **fields: Any) -> Template:
    return replace(TEMPLATE, status=status, **fields)


def report(status: Any, **fields: Any) -> TemplateVerdict:
    return TemplateVerdict(status, NOW, "p1", **fields)


def test_submission_begins_at_once_and_forgets_the_last_refusal() -> None:
    handed_in = submitted(at(Status.REJECTED, rejection_reason="tone", submit_attempts=2), NOW)
    assert (handed_in.status, handed_in.next_step_at, handed_in.submit_attempts) == (Status.SUBMITTED, NOW, 0)
    assert handed_in.rejection_reason is None
    with pytest.raises(IllegalMove):
        submitted(at(Status.APPROVED), NOW)


def test_a_template_taken_for_review_waits_for_the_report() -> None:
    pending = with_submission(at(Status.SUBMITTED, next_step_at=NOW), Submission("p1"), NOW)
    assert (pending.status, pending.provider_template_id) == (Status.PENDING, "p1")
    assert (pending.next_step_at, pending.verdict) == (None, None)


def test_the_verdict_of_the_sandbox_waits_in_the_row() -> None:
    taken = Submission("p1", (Followup(2.0, report("approved")),))
    pending = with_submission(at(Status.SUBMITTED), taken, NOW)
    assert pending.next_step_at == NOW + timedelta(seconds=2)
    assert pending.verdict is not None
    assert pending.verdict["status"] == "approved"


def test_an_answer_that_comes_after_the_report_only_names_the_template() -> None:
    named = with_submission(at(Status.REJECTED, rejection_reason="tone"), Submission("p1"), NOW)
    assert named == at(Status.REJECTED, rejection_reason="tone", provider_template_id="p1")
    assert with_refusal(at(Status.APPROVED), "late") == at(Status.APPROVED)
    assert with_provider_away(at(Status.DRAFT), NOW) == at(Status.DRAFT)


def test_an_unreachable_provider_is_tried_five_times_from_a_minute_to_an_hour() -> None:
    template = at(Status.SUBMITTED)
    waits = []
    while (template := with_provider_away(template, NOW)).status is Status.SUBMITTED:
        assert template.next_step_at is not None
        waits.append(template.next_step_at - NOW)
    assert waits == list(SUBMIT_AGAIN)
    assert (len(waits), waits[0], waits[-1]) == (5, timedelta(minutes=1), timedelta(hours=1))
    assert (template.status, template.rejection_reason) == (Status.DRAFT, "provider_unreachable")
    assert (template.next_step_at, template.submit_attempts) == (None, 0)


def test_an_approval_is_of_the_version_that_was_reviewed() -> None:
    approved = with_report(at(Status.PENDING, rejection_reason="old"), report("approved"))
    assert (approved.status, approved.approved_version, approved.rejection_reason) == (Status.APPROVED, 3, None)


def test_a_report_ends_whatever_was_still_to_come() -> None:
    waiting = at(Status.PENDING, next_step_at=NOW, verdict={"status": "rejected"}, submit_attempts=2)
    decided = with_report(waiting, report("approved"))
    assert (decided.next_step_at, decided.verdict, decided.submit_attempts) == (None, None, 0)


def test_a_rejection_has_a_reason_even_when_the_provider_gives_none() -> None:
    assert with_report(at(Status.PENDING), report("rejected", reason="tone")).rejection_reason == "tone"
    assert with_report(at(Status.PENDING), report("rejected")).rejection_reason


def test_a_category_follows_the_provider_on_approved_templates_only() -> None:
    changed = report("approved", category="marketing")
    assert with_report(at(Status.APPROVED), changed).category is TemplateCategory.MARKETING
    assert with_report(at(Status.PENDING), changed).category is TemplateCategory.MARKETING
    assert with_report(at(Status.DRAFT), changed).category is TemplateCategory.UTILITY


@given(st.sampled_from(list(Status)), st.lists(st.sampled_from(get_args(Verdict)), max_size=6))
def test_reports_in_any_order_never_fail_and_never_undo_an_end(start: Status, verdicts: list[Any]) -> None:
    template = at(start, next_step_at=NOW)
    ended = start is Status.DISABLED
    for verdict in verdicts:
        after = with_report(template, report(verdict))
        assert with_report(after, report(verdict)) == after
        assert not (ended and after.status is not Status.DISABLED)
        assert not (start is Status.DRAFT and after != template)
        ended = ended or after.status is Status.DISABLED
        template = after
