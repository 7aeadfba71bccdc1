"""A signal condition takes the other way only when it is certain, and within its window only (C9.6)."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.journeys.execution import Awaited, EndReason
from recado.domain.journeys.graph import StepSignal
from recado.domain.journeys.outcomes import Advance, Await, EndExecution
from recado.domain.journeys.signal_conditions import EarlierSend, SendState, decide_signal
from recado.domain.journeys.steps import SignalCondition

DISPATCH = datetime(2026, 3, 13, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
TICK = timedelta(microseconds=1)
END = DISPATCH + HOUR
LATEST = END + DAY

YES, NO = Advance("yes", "sim"), Advance("no", "nao")
UNDETERMINED = EndExecution(EndReason.SEND_UNDETERMINED)

DISPATCHED = (SendState.SENDING, SendState.UNKNOWN, SendState.ACCEPTED)
ENDED = (SendState.FAILED, SendState.SKIPPED)


def decided(
    state: SendState,
    now: datetime,
    seen: datetime | None = None,
    signal: StepSignal = StepSignal.LIDO,
    *,
    hurried: bool = False,
) -> Advance | Await | EndExecution:
    since = None if state is SendState.QUEUED else DISPATCH
    earlier = EarlierSend(state, since, {} if seen is None else {signal: seen})
    step = SignalCondition("c", "s", signal, "yes", "no", window_minutes=60)
    return decide_signal(step, earlier, now, hurried=hurried)


def waits(until: datetime | None) -> Await:
    return Await(Awaited.SIGNAL, until)


@pytest.mark.parametrize("state", [*DISPATCHED, *ENDED])
@pytest.mark.parametrize("signal", list(StepSignal))
@pytest.mark.parametrize("now", [END - TICK, END, LATEST, LATEST + DAY])
def test_a_signal_within_the_window_leads_to_yes_at_once(state: SendState, signal: StepSignal, now: datetime) -> None:
    assert decided(state, now, DISPATCH + TICK, signal) == YES
    assert decided(state, now, END, signal) == YES


@pytest.mark.parametrize("state", DISPATCHED)
def test_without_one_it_waits_until_the_window_ends(state: SendState) -> None:
    assert decided(state, DISPATCH) == waits(END)
    assert decided(state, END - TICK) == waits(END)


def test_after_the_window_of_an_accepted_message_it_is_no() -> None:
    assert decided(SendState.ACCEPTED, END) == NO
    assert decided(SendState.ACCEPTED, LATEST + DAY) == NO
    assert decided(SendState.ACCEPTED, LATEST, END + TICK) == NO  # it came too late


@pytest.mark.parametrize("state", ENDED)
def test_a_send_that_never_arrives_is_no_at_once(state: SendState) -> None:
    for signal in StepSignal:
        if signal is not StepSignal.CONVERTEU:
            assert decided(state, DISPATCH, signal=signal) == NO


@pytest.mark.parametrize("state", ENDED)
def test_people_may_convert_without_the_message_until_the_window_ends(state: SendState) -> None:
    assert decided(state, DISPATCH, signal=StepSignal.CONVERTEU) == waits(END)
    assert decided(state, END - TICK, signal=StepSignal.CONVERTEU) == waits(END)
    assert decided(state, END, signal=StepSignal.CONVERTEU) == NO
    assert decided(state, END, END + TICK, StepSignal.CONVERTEU) == NO


@pytest.mark.parametrize("signal", list(StepSignal))
def test_while_the_message_is_queued_it_waits_however_long_that_takes(signal: StepSignal) -> None:
    for now in (DISPATCH, END, LATEST, LATEST + 30 * DAY):
        assert decided(SendState.QUEUED, now, signal=signal) == waits(None)


@pytest.mark.parametrize("state", [SendState.SENDING, SendState.UNKNOWN])
@pytest.mark.parametrize("signal", list(StepSignal))
def test_a_send_that_may_have_left_leads_nowhere_until_a_day_is_over(state: SendState, signal: StepSignal) -> None:
    assert decided(state, END, signal=signal) == waits(LATEST)
    assert decided(state, LATEST - TICK, signal=signal) == waits(LATEST)
    assert decided(state, LATEST, signal=signal) == UNDETERMINED


def test_what_is_learned_in_that_day_decides() -> None:
    learned = END + 5 * HOUR
    assert decided(SendState.FAILED, learned) == NO
    assert decided(SendState.FAILED, learned, signal=StepSignal.CONVERTEU) == NO
    assert decided(SendState.ACCEPTED, learned) == NO
    assert decided(SendState.ACCEPTED, learned, END - TICK) == YES
    assert decided(SendState.ACCEPTED, learned, END + TICK) == NO


def test_an_execution_that_never_passed_the_send_is_no() -> None:
    step = SignalCondition("c", "s", StepSignal.CONVERTEU, "yes", "no")
    assert decide_signal(step, None, DISPATCH, hurried=False) == NO


def test_a_signal_of_another_kind_says_nothing() -> None:
    step = SignalCondition("c", "s", StepSignal.LIDO, "yes", "no", window_minutes=60)
    earlier = EarlierSend(SendState.ACCEPTED, DISPATCH, {StepSignal.ENTREGUE: DISPATCH + TICK})
    assert decide_signal(step, earlier, END, hurried=False) == NO


def test_a_test_that_leaves_waits_out_has_a_window_of_a_minute_at_most() -> None:
    minute = DISPATCH + timedelta(minutes=1)
    assert decided(SendState.ACCEPTED, DISPATCH, hurried=True) == waits(minute)
    assert decided(SendState.ACCEPTED, minute, hurried=True) == NO
    assert decided(SendState.ACCEPTED, minute, minute + TICK, hurried=True) == NO
    assert decided(SendState.UNKNOWN, minute, hurried=True) == waits(minute + DAY)


def test_only_a_queued_send_has_no_moment_to_count_from() -> None:
    with pytest.raises(ValueError, match="window"):
        EarlierSend(SendState.QUEUED, DISPATCH)
    for state in (*DISPATCHED, *ENDED):
        with pytest.raises(ValueError, match="window"):
            EarlierSend(state, None)


moments = st.timedeltas(timedelta(0), timedelta(days=3)).map(lambda after: DISPATCH + after)
states = st.sampled_from([*DISPATCHED, *ENDED])


@given(
    st.sampled_from([*DISPATCHED, *ENDED]), st.sampled_from(list(StepSignal)), moments, st.one_of(st.none(), moments)
)
def test_the_moment_until_which_it_waits_is_the_first_at_which_it_decides_otherwise(
    state: SendState, signal: StepSignal, now: datetime, seen: datetime | None
) -> None:
    found = decided(state, now, seen, signal)
    if isinstance(found, Await):
        assert found.until is not None
        assert found.until > now
        assert decided(state, found.until - TICK, seen, signal) == found
        assert decided(state, found.until, seen, signal) != found
