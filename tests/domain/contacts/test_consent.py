"""The table of consent, and what each change of it means (C12.5)."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.contacts.consent import (
    LATEST_AHEAD,
    Consent,
    ConsentChange,
    ConsentRefusal,
    ConsentStatus,
    ConsentUpdate,
    OptOutEntry,
    decide,
    readdressed,
    refusal_to_send,
    repeated_refusal,
    with_request,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
UNKNOWN, GRANTED, DENIED = ConsentStatus

moments = st.datetimes(datetime(2020, 1, 1), datetime(2026, 3, 2), timezones=st.just(UTC))
statuses = st.sampled_from(ConsentStatus)
sources = st.none() | st.sampled_from(["loja", "site"])


@st.composite
def consents(draw: st.DrawFn) -> Consent:
    """A consent as it can be stored."""
    status = draw(statuses)
    if status is UNKNOWN:
        return Consent()
    at = draw(moments) if status is GRANTED else draw(st.none() | moments)
    return Consent(status, draw(sources), at=at, revoked_at=draw(moments) if status is DENIED else None)


changes = st.builds(
    ConsentChange,
    statuses,
    source=sources,
    at=st.none() | moments,
    revoked_at=st.none() | moments,
    dates_count=st.booleans(),
)
registered = st.none() | st.builds(OptOutEntry, moments, sources)


@given(consents(), changes, registered)
def test_the_same_status_changes_nothing_and_unknown_is_never_reached(
    current: Consent, change: ConsentChange, entry: OptOutEntry | None
) -> None:
    decided = decide(current, change, now=NOW, registered=entry)
    if isinstance(decided, ConsentRefusal):
        assert decided.error.path.startswith("/optIn/")
    elif change.status is current.status:
        assert decided is None
    else:
        assert decided is not None
        assert change.status is not UNKNOWN
        assert (decided.before, decided.after.status) == (current.status, change.status)


@given(consents() | st.none(), changes, registered)
def test_a_refusal_takes_effect_whatever_its_date(
    current: Consent | None, change: ConsentChange, entry: OptOutEntry | None
) -> None:
    decided = decide(current, change, now=NOW, registered=entry)
    if change.status is not DENIED or (current is not None and current.status is DENIED):
        return
    if isinstance(decided, ConsentRefusal):
        assert decided.code == "DATA_DO_CONSENTIMENTO_NO_FUTURO"
        return
    assert isinstance(decided, ConsentUpdate)
    given_date = change.revoked_at if change.dates_count else None
    assert decided.after.revoked_at == decided.at == (given_date or NOW)
    assert decided.date_given is (given_date is not None)
    assert decided.after.revoked_reason is change.revoked_reason


@given(consents() | st.none(), changes, registered)
def test_a_consent_after_a_refusal_is_younger_and_says_where_it_comes_from(
    current: Consent | None, change: ConsentChange, entry: OptOutEntry | None
) -> None:
    decided = decide(current, change, now=NOW, registered=entry)
    if not isinstance(decided, ConsentUpdate) or not decided.grants:
        return
    refusals = [entry.at] if entry is not None else []
    if current is not None and current.revoked_at is not None:
        refusals.append(current.revoked_at)
    if refusals:
        assert change.source
        assert decided.at > max(refusals)
    assert (decided.after.revoked_at, decided.after.revoked_reason) == (None, None)
    assert decided.after.at == decided.at


@given(changes, registered)
def test_a_date_far_ahead_counts_for_nobody_and_a_session_names_none(
    change: ConsentChange, entry: OptOutEntry | None
) -> None:
    decided = decide(None, change, now=NOW, registered=entry)
    if isinstance(decided, ConsentUpdate) and decided.date_given:
        assert change.dates_count
        assert decided.at <= NOW + LATEST_AHEAD
    if isinstance(decided, ConsentUpdate) and not change.dates_count and not (entry and change.status is UNKNOWN):
        assert decided.at == NOW


@pytest.mark.parametrize("change", [None, ConsentChange(UNKNOWN)])
def test_whoever_is_registered_is_born_denied_by_that_refusal(change: ConsentChange | None) -> None:
    entry = OptOutEntry(NOW - timedelta(days=9), "site")
    decided = decide(None, change, now=NOW, registered=entry)
    assert isinstance(decided, ConsentUpdate)
    assert decided.after == Consent(DENIED, source="site", revoked_at=entry.at)
    assert (decided.before, decided.at, decided.date_given) == (UNKNOWN, entry.at, False)
    assert decide(None, change, now=NOW) is None


refusals = st.builds(
    OptOutEntry,
    st.datetimes(datetime(2026, 1, 1), datetime(2026, 1, 4), timezones=st.just(UTC)),
    st.sampled_from([None, "call centre", "complaint", "inbound_keyword", "provider"]),
)


@given(refusals, refusals, refusals)
def test_of_several_refusals_the_latest_date_stays_and_no_operators_source_is_lost(
    one: OptOutEntry, two: OptOutEntry, three: OptOutEntry
) -> None:
    joined = one.joined(two).joined(three)
    assert joined.at == max(one.at, two.at, three.at)
    assert joined.own == (one.own and two.own and three.own)
    assert joined.source in {each.source for each in (one, two, three) if each.own == joined.own}


@given(consents(), changes)
def test_a_refusal_either_changes_a_consent_or_is_told_to_the_registry_once_more(
    current: Consent, change: ConsentChange
) -> None:
    decided = decide(current, change, now=NOW)
    repeat = repeated_refusal(current, change, now=NOW)
    if change.status is DENIED and not isinstance(decided, ConsentRefusal):
        assert (decided is None) == (repeat is not None)
    if repeat is not None:
        assert (current.status, change.status, repeat.source) == (DENIED, DENIED, change.source)
        assert repeat.at == (change.revoked_at if change.dates_count and change.revoked_at else NOW)


def test_a_key_keeps_the_date_of_a_consent_that_was_refused_later() -> None:
    at, revoked = NOW - timedelta(days=9), NOW - timedelta(days=1)
    change = ConsentChange(DENIED, at=at, revoked_at=revoked, dates_count=True)
    for current in (None, Consent(GRANTED, at=NOW)):
        decided = decide(current, change, now=NOW)
        assert isinstance(decided, ConsentUpdate)
        assert (decided.after.at, decided.after.revoked_at) == (at, revoked)
    kept = decide(Consent(GRANTED, at=at), ConsentChange(DENIED), now=NOW)
    assert isinstance(kept, ConsentUpdate)
    assert kept.after.at == at


def test_exactly_five_minutes_ahead_are_tolerated() -> None:
    for ahead, code in (
        (LATEST_AHEAD, None),
        (LATEST_AHEAD + timedelta(microseconds=1), "DATA_DO_CONSENTIMENTO_NO_FUTURO"),
    ):
        decided = decide(None, ConsentChange(GRANTED, at=NOW + ahead, dates_count=True), now=NOW)
        assert (decided.code if isinstance(decided, ConsentRefusal) else None) == code


def test_what_a_session_does_not_say_of_itself_its_request_says() -> None:
    change = ConsentChange(GRANTED, at=NOW, dates_count=True)
    asked = with_request(change, ip="192.0.2.1", user_agent="x" * 600)
    assert (asked.ip, asked.user_agent, asked.dates_count) == ("192.0.2.1", "x" * 512, False)
    said = with_request(ConsentChange(GRANTED, ip="192.0.2.9", user_agent="mine"), ip="192.0.2.1", user_agent="other")
    assert (said.ip, said.user_agent) == ("192.0.2.9", "mine")


@pytest.mark.parametrize("granted_only", [False, True])
@pytest.mark.parametrize("status", [None, *ConsentStatus])
def test_nothing_that_is_subject_to_consent_goes_to_whoever_is_registered(
    status: ConsentStatus | None, granted_only: bool
) -> None:
    assert refusal_to_send(status, registered=True, granted_only=granted_only) == "CONTACT_OPTED_OUT"


@pytest.mark.parametrize(
    ("status", "usually", "granted_only"),
    [
        (None, None, "CONSENT_REQUIRED"),
        (ConsentStatus.UNKNOWN, None, "CONSENT_REQUIRED"),
        (ConsentStatus.GRANTED, None, None),
        (ConsentStatus.DENIED, "CONTACT_OPTED_OUT", "CONTACT_OPTED_OUT"),
    ],
)
def test_consent_says_who_may_be_sent_to(
    status: ConsentStatus | None, usually: str | None, granted_only: str | None
) -> None:
    assert refusal_to_send(status, registered=False, granted_only=False) == usually
    assert refusal_to_send(status, registered=False, granted_only=True) == granted_only


@pytest.mark.parametrize(
    ("current", "expected"),
    [
        (Consent(), DENIED),
        (Consent(GRANTED, at=NOW - 2 * DAY), DENIED),
        (Consent(GRANTED), DENIED),
        (Consent(GRANTED, at=NOW), None),
        (Consent(DENIED, revoked_at=NOW - 2 * DAY), None),
    ],
)
def test_an_address_that_refused_is_a_refusal_unless_the_contact_consented_since(
    current: Consent, expected: ConsentStatus | None
) -> None:
    decided = readdressed(current, OptOutEntry(NOW - DAY, "site"))
    assert readdressed(current, None) is None
    if expected is None:
        assert decided is None
    else:
        assert isinstance(decided, ConsentUpdate)
        assert (decided.after.status, decided.after.revoked_at, decided.after.source) == (DENIED, NOW - DAY, "site")
        assert (decided.at, decided.after.at, decided.date_given) == (NOW - DAY, current.at, False)
