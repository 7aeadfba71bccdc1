"""A contact's consent: its states, and what a change that somebody asks for means (C12.5).

`decide` is pure: from the consent as it is, the change, the registry's entry and the time to a new consent, to nothing,
or to a refusal.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from recado.domain.contacts.keywords import OWN_SOURCES
from recado.domain.core.errors import FieldError
from recado.domain.core.machine import Machine

LATEST_AHEAD: Final = timedelta(minutes=5)
MOST_SOURCE: Final = 100
MOST_USER_AGENT: Final = 512
MOST_REASON: Final = 200


class ConsentStatus(StrEnum):
    """What a contact consented to."""

    UNKNOWN = "unknown"  # may be sent to, unless the organization asks for `granted`
    GRANTED = "granted"
    DENIED = "denied"  # nothing that is subject to consent leaves


class ConsentEvent(StrEnum):
    """What happens to a consent: a caller, a keyword, a provider or a public page says so."""

    GRANT = "grant"
    DENY = "deny"


CONSENT_MACHINE: Final = Machine(
    "consent",
    {
        (ConsentStatus.UNKNOWN, ConsentEvent.GRANT): ConsentStatus.GRANTED,
        (ConsentStatus.UNKNOWN, ConsentEvent.DENY): ConsentStatus.DENIED,
        (ConsentStatus.GRANTED, ConsentEvent.DENY): ConsentStatus.DENIED,
        (ConsentStatus.DENIED, ConsentEvent.GRANT): ConsentStatus.GRANTED,
    },
    initial={"created": ConsentStatus.UNKNOWN, "created while in the opt-out registry": ConsentStatus.DENIED},
)

_EVENTS: Final = {ConsentStatus.GRANTED: ConsentEvent.GRANT, ConsentStatus.DENIED: ConsentEvent.DENY}


@dataclass(frozen=True, slots=True)
class Consent:
    """A consent as it is stored: the status, and who said so. `ip` and `user_agent` are personal data."""

    status: ConsentStatus = ConsentStatus.UNKNOWN
    source: str | None = None
    at: datetime | None = None  # of the consent
    ip: str | None = field(default=None, repr=False)
    user_agent: str | None = field(default=None, repr=False)
    revoked_at: datetime | None = None
    revoked_reason: str | None = field(default=None, repr=False)


CONSENT_FIELDS: Final = {
    "status": "status",
    "source": "source",
    "at": "at",
    "ip": "ip",
    "userAgent": "user_agent",
    "revokedAt": "revoked_at",
    "revokedReason": "revoked_reason",
}
"""The members of `optIn`, as callers name them, and the attributes of `Consent` and `ConsentChange`."""

UNKNOWN: Final = Consent()


@dataclass(frozen=True, slots=True)
class ConsentChange(Consent):
    """What is asked for, with the date of a consent or a refusal.

    Dates count for a caller with an API key only (`dates_count`).
    """

    dates_count: bool = False


@dataclass(frozen=True, slots=True)
class OptOutEntry:
    """An entry of the opt-out registry, of a phone or an e-mail address (C12.5.8)."""

    at: datetime
    source: str | None = None

    @property
    def own(self) -> bool:
        """Whether the person refused, who alone may take it back; else an operator or a complaint did."""
        return self.source in OWN_SOURCES

    def joined(self, other: "OptOutEntry") -> "OptOutEntry":
        """Both as one: the later date, and the later source, but of an operator or a complaint before the person's."""
        if self.own != other.own:
            return OptOutEntry(max(self.at, other.at), other.source if self.own else self.source)
        return self if other.at <= self.at else OptOutEntry(other.at, other.source or self.source)


@dataclass(frozen=True, slots=True)
class ConsentUpdate:
    """The consent becomes `after`. `at`: when it was given or refused; `date_given`: the caller named that moment."""

    before: ConsentStatus
    after: Consent
    at: datetime
    date_given: bool

    @property
    def denies(self) -> bool:
        """Whether it is a refusal, which withdraws what waits and enters the registry."""
        return self.after.status is ConsentStatus.DENIED

    @property
    def grants(self) -> bool:
        """Whether it is a consent, which leaves the registry."""
        return self.after.status is ConsentStatus.GRANTED


@dataclass(frozen=True, slots=True)
class ConsentRefusal:
    """The change is not allowed: a problem code, and what is wrong with which field of `optIn`."""

    code: str
    error: FieldError


OPTED_OUT: Final = "CONTACT_OPTED_OUT"
CONSENT_REQUIRED: Final = "CONSENT_REQUIRED"


def refusal_to_send(status: ConsentStatus | None, *, registered: bool, granted_only: bool) -> str | None:
    """The code that forbids a send that is subject to consent; None when it may be sent (C12.5.5, C12.5.6).

    `status` None: nobody is known with that recipient. `granted_only`: the organization asks for `granted`.
    """
    if registered or status is ConsentStatus.DENIED:
        return OPTED_OUT
    if granted_only and status is not ConsentStatus.GRANTED:
        return CONSENT_REQUIRED
    return None


UNCHANGED: Final = None
"""`decide` answers this when the contact has the status already: no event, no later date."""


def decide(
    current: Consent | None, change: ConsentChange | None, *, now: datetime, registered: OptOutEntry | None = None
) -> ConsentUpdate | ConsentRefusal | None:
    """What `change` does to a contact's consent; None when nothing (C12.5).

    `current` None: the contact is being created. `registered`: what the opt-out registry says of its phone or address,
    the latest entry; a contact that is created without a change is born denied by it.
    """
    if change is not None and (refused := _in_the_future(change, now)):
        return refused
    if current is None:
        return _born(change, now, registered)
    if change is None or change.status is current.status:
        return UNCHANGED
    event = _EVENTS.get(change.status)
    if event is None:
        return _refused(
            "VALIDATION_ERROR", "status", "A consent that was given or refused cannot become unknown again."
        )
    if event is ConsentEvent.DENY:
        return _denied(current, change, now)
    if current.status is ConsentStatus.UNKNOWN and registered is None:
        return _granted(current, change, now)
    return _granted_again(current, change, now, _refused_at(current, registered))


def repeated_refusal(current: Consent, change: ConsentChange | None, *, now: datetime) -> OptOutEntry | None:
    """The registry's entry of a refusal that changes nothing, as the contact refused before (C12.5); None of others.

    The refusal before may have been the person's, whom a keyword lets in again; an operator's must not be lost then.
    """
    if change is None or change.status is not ConsentStatus.DENIED or current.status is not ConsentStatus.DENIED:
        return None
    return OptOutEntry(_refusal_date(change) or now, change.source)


def readdressed(current: Consent, registered: OptOutEntry | None) -> ConsentUpdate | None:
    """What becomes of a contact's consent when it receives an address that the opt-out registry may know (C12.5).

    Anyone who asked for nothing more under that address is a contact that refused, unless it consented after that.
    """
    if registered is None or current.status is ConsentStatus.DENIED:
        return UNCHANGED
    if current.status is ConsentStatus.GRANTED and current.at is not None and current.at > registered.at:
        return UNCHANGED
    after = Consent(
        CONSENT_MACHINE.move(current.status, ConsentEvent.DENY),
        source=registered.source,
        at=current.at,
        revoked_at=registered.at,
    )
    return ConsentUpdate(current.status, after, registered.at, date_given=False)


def _born(
    change: ConsentChange | None, now: datetime, registered: OptOutEntry | None
) -> ConsentUpdate | ConsentRefusal | None:
    if change is None or change.status is ConsentStatus.UNKNOWN:
        if registered is None:
            return UNCHANGED
        after = Consent(ConsentStatus.DENIED, source=registered.source, revoked_at=registered.at)
        return ConsentUpdate(ConsentStatus.UNKNOWN, after, registered.at, date_given=False)
    if change.status is ConsentStatus.DENIED:
        return _denied(UNKNOWN, change, now)
    if registered is None:
        return _granted(UNKNOWN, change, now)
    return _granted_again(UNKNOWN, change, now, registered.at)


def _denied(current: Consent, change: ConsentChange, now: datetime) -> ConsentUpdate:
    """A refusal takes effect whatever its date."""
    given = _refusal_date(change)
    consented = change.at if change.dates_count and change.at is not None else current.at
    at = now if given is None else given
    after = Consent(
        CONSENT_MACHINE.move(current.status, ConsentEvent.DENY),
        source=change.source,
        at=consented,
        ip=change.ip,
        user_agent=change.user_agent,
        revoked_at=at,
        revoked_reason=change.revoked_reason,
    )
    return ConsentUpdate(current.status, after, at, date_given=given is not None)


def _refusal_date(change: ConsentChange) -> datetime | None:
    return change.revoked_at if change.dates_count else None


def _granted(current: Consent, change: ConsentChange, now: datetime) -> ConsentUpdate:
    given = change.at if change.dates_count else None
    at = now if given is None else given
    after = Consent(
        CONSENT_MACHINE.move(current.status, ConsentEvent.GRANT),
        source=change.source,
        at=at,
        ip=change.ip,
        user_agent=change.user_agent,
    )
    return ConsentUpdate(current.status, after, at, date_given=given is not None)


def _granted_again(
    current: Consent, change: ConsentChange, now: datetime, refused_at: datetime | None
) -> ConsentUpdate | ConsentRefusal:
    """A consent after a refusal: it says where it comes from, and is younger than the refusal."""
    if not change.source:
        return _refused(
            "CONSENTIMENTO_SEM_ORIGEM",
            "source",
            "`source` is required: a consent after a refusal says where it comes from.",
        )
    changed = _granted(current, change, now)
    if refused_at is not None and changed.at <= refused_at:
        return _refused(
            "CONSENTIMENTO_ANTERIOR_A_RECUSA",
            "at",
            "`at` must be later than the refusal, which is newer than this consent.",
        )
    return changed


def _refused_at(current: Consent, registered: OptOutEntry | None) -> datetime | None:
    moments = [current.revoked_at, None if registered is None else registered.at]
    return max((at for at in moments if at is not None), default=None)


def _in_the_future(change: ConsentChange, now: datetime) -> ConsentRefusal | None:
    if not change.dates_count:
        return None
    dates = [("at", change.at)]
    if change.status is ConsentStatus.DENIED:
        dates.append(("revokedAt", change.revoked_at))
    for name, at in dates:
        if at is not None and at > now + LATEST_AHEAD:
            return _refused("DATA_DO_CONSENTIMENTO_NO_FUTURO", name, "The date is more than 5 minutes in the future.")
    return None


def _refused(code: str, name: str, message: str) -> ConsentRefusal:
    return ConsentRefusal(code, FieldError(f"/optIn/{name}", code, message))


def with_request(change: ConsentChange, *, ip: str, user_agent: str | None) -> ConsentChange:
    """A session's change: its dates count for nothing, and what it does not say of itself the request says."""
    agent = change.user_agent or (user_agent[:MOST_USER_AGENT] if user_agent else None)
    return replace(change, ip=change.ip or ip, user_agent=agent, dates_count=False)
