"""A webhook step calls up to four times, and goes on by what was answered (C9.13)."""

from datetime import UTC, datetime, timedelta

import pytest

from recado.domain.journeys.execution import Awaited
from recado.domain.journeys.outcomes import Advance, Await, CallWebhook
from recado.domain.journeys.steps import WebhookStep
from recado.domain.journeys.webhook_calls import LastCall, decide_webhook

NOW = datetime(2026, 3, 13, 12, tzinfo=UTC)
TICK = timedelta(microseconds=1)
STEP = WebhookStep("w", "wbh_1", "next", "failed")
OK, FAILED = Advance("next", "webhook_ok"), Advance("failed", "webhook_falhou")


def after(attempt: int, status: int | None, seconds: float = 0.0, *, callable_now: bool = True) -> object:
    last = LastCall(attempt, status, NOW)
    return decide_webhook(STEP, last, NOW + timedelta(seconds=seconds), callable_now=callable_now)


def test_the_first_call_is_made_at_once() -> None:
    assert decide_webhook(STEP, None, NOW, callable_now=True) == CallWebhook(1)


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_any_2xx_goes_on(status: int) -> None:
    for attempt in (1, 2, 3, 4):
        assert after(attempt, status) == OK
    assert after(1, status, callable_now=False) == OK  # it was taken before the subscription was paused


@pytest.mark.parametrize("status", [400, 404, 410, 428, 430, 499, 301, 302, 304, 399, 300])
def test_any_other_answer_that_would_not_change_fails_at_once(status: int) -> None:
    assert after(1, status) == FAILED


@pytest.mark.parametrize("status", [None, 429, 500, 503, 599])
@pytest.mark.parametrize(("attempt", "seconds"), [(1, 10), (2, 60), (3, 300)])
def test_a_failure_that_may_pass_is_tried_again_later(status: int | None, attempt: int, seconds: int) -> None:
    waits = Await(Awaited.WEBHOOK, NOW + timedelta(seconds=seconds))
    assert after(attempt, status) == waits
    assert after(attempt, status, seconds - 0.001) == waits
    assert after(attempt, status, seconds) == CallWebhook(attempt + 1)


@pytest.mark.parametrize("status", [None, 429, 500])
def test_the_fourth_failure_is_the_last(status: int | None) -> None:
    assert after(4, status) == FAILED
    assert after(4, status, 1_000) == FAILED


def test_a_subscription_that_cannot_be_called_fails_without_a_call() -> None:
    assert decide_webhook(STEP, None, NOW, callable_now=False) == FAILED
    assert after(1, 500, 10, callable_now=False) == FAILED


def test_a_step_that_names_no_way_for_failures_goes_on() -> None:
    step = WebhookStep("w", "wbh_1", "next")
    assert decide_webhook(step, None, NOW, callable_now=False) == Advance("next", "webhook_falhou")
