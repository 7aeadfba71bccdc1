"""Reads what a caller or a file gives for a contact into values that can be stored (C12.2, C12.3).

Errors are values, with JSON pointers, so that an import refuses a row and goes on. Their texts repeat nothing of what
was given.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import partial
from typing import Any, Final

from recado.domain.contacts.consent import (
    CONSENT_FIELDS,
    MOST_REASON,
    MOST_SOURCE,
    MOST_USER_AGENT,
    ConsentChange,
    ConsentStatus,
)
from recado.domain.contacts.contact import (
    FIELDS,
    GIVEN_SOURCES,
    INTEGRATIONS,
    MOST_AVATAR,
    MOST_EMAIL,
    MOST_EXTERNAL_ID,
    MOST_TAG,
    MOST_TAGS,
    CompanyRole,
    ContactFieldSpec,
    ContactSource,
    Kind,
    tags_united,
)
from recado.domain.contacts.contact_attributes import read_attributes, read_keys
from recado.domain.contacts.debts import phone, read_groups
from recado.domain.contacts.documents import CANONICAL
from recado.domain.contacts.social_identities import read_identities
from recado.domain.core.errors import FieldError, Problem
from recado.domain.core.mail_domains import ADDRESS_FORM
from recado.domain.core.reading import Refusal, members, one_of, text, texts
from recado.domain.core.timestamps import parse_timestamp
from recado.domain.core.web_addresses import LONGEST_WEB_ADDRESS, is_web_address

MOST_IP: Final = 45

_EMAIL = re.compile(ADDRESS_FORM).fullmatch
_URL = re.compile(r"https?://([^\s/?#@]+)([/?#]\S*)?", re.IGNORECASE).fullmatch
_DATA = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}").fullmatch


@dataclass(frozen=True, slots=True)
class GivenFields:
    """What was read. `values` by the names of `FIELDS`: absent is not given, None is to be cleared."""

    values: Mapping[str, Any] = field(repr=False)
    errors: tuple[FieldError, ...] = ()


def read_new(document: Any, today: date) -> GivenFields:
    """A contact to create: `phone` is required; null is the same as absent."""
    return _read(document, _NEW, today, new=True)


def read_changes(document: Any, today: date) -> GivenFields:
    """A PATCH: null clears, but not what a contact always has (C2.3.3)."""
    return _read(document, _CHANGES, today, new=False)


def _read(document: Any, readers: "Mapping[str, tuple[str, Reader]]", today: date, *, new: bool) -> GivenFields:
    if not isinstance(document, dict):
        return GivenFields({}, (FieldError("", "WRONG_TYPE", "must be an object"),))
    values: dict[str, Any] = {}
    errors: list[FieldError] = []
    if new and document.get("phone") is None:
        errors.append(FieldError("/phone", "REQUIRED", "is required"))
    for key, (name, read) in readers.items():
        if key not in document:
            continue
        value = document[key]
        try:
            if value is not None:
                values[name] = read(value, today)
            elif not new:
                if name in _ALWAYS_THERE:
                    raise Refusal("REQUIRED", "cannot be cleared")
                values[name] = None
        except Refusal as refusal:
            errors += refusal.under(key).errors
    return GivenFields(values, tuple(errors))


# The fields ---------------------------------------------------------------------------------------------------------


def read_email(value: Any) -> str:
    """An address in the spelling given, at most 254 characters."""
    address = text(value, MOST_EMAIL)
    if _EMAIL(address) is None:
        raise Refusal("INVALID", "must be an e-mail address")
    return address


def read_avatar(value: Any) -> str:
    """An http(s) address without user info, or a picture as a data URI of at most 64 KB; it is never fetched."""
    url = text(value, MOST_AVATAR)
    if url[:5].lower() == "data:":
        if _DATA(url) is None:
            raise Refusal("URL_NOT_ALLOWED", "must be data:image/png, jpeg, gif or webp in base64")
        return url
    if len(url) > LONGEST_WEB_ADDRESS:
        raise Refusal("TOO_LONG", f"must have at most {LONGEST_WEB_ADDRESS} characters")
    if _URL(url) is None or not is_web_address(url):
        raise Refusal("URL_NOT_ALLOWED", "must be an http or https address without user info")
    return url


def read_tags(value: Any) -> tuple[str, ...]:
    """At most 100 tags; of those that differ in case only the first stays."""
    return tags_united(texts(value, MOST_TAGS, MOST_TAG))


def read_external_ids(value: Any) -> dict[str, str | None]:
    """Ids by integration; null: not in it any more."""
    found: dict[str, str | None] = {}
    for name, item in members(value).items():
        if name in INTEGRATIONS:
            try:
                found[name] = None if item is None else text(item, MOST_EXTERNAL_ID)
            except Refusal as refusal:
                raise refusal.under(name) from None
    return found


def read_consent(value: Any) -> ConsentChange:
    """`optIn` of a body, with its dates counting (C12.5)."""
    given = members(value)
    if given.get("status") is None:
        raise Refusal("REQUIRED", "is required", "/status")
    found: dict[str, Any] = {}
    for key, name in CONSENT_FIELDS.items():
        if (item := given.get(key)) is not None:
            try:
                found[name] = _CONSENT_READERS[name](item) or None
            except Refusal as refusal:
                raise refusal.under(key) from None
    return ConsentChange(**found, dates_count=True)


def read_moment(value: Any) -> datetime:
    """An RFC 3339 date-time with an offset."""
    if not isinstance(value, str):
        raise Refusal("WRONG_TYPE", "must be a text with an RFC 3339 date-time, such as 2026-01-31T12:00:00Z")
    try:
        return parse_timestamp(value.strip())
    except ValueError:
        raise Refusal(
            "WRONG_TYPE", "must be an RFC 3339 date-time with an offset, such as 2026-01-31T12:00:00Z"
        ) from None


_CONSENT_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "status": lambda value: one_of(value, ConsentStatus),
    "source": lambda value: text(value, MOST_SOURCE, least=0),
    "at": read_moment,
    "ip": lambda value: text(value, MOST_IP, least=0),
    "user_agent": lambda value: text(value, MOST_USER_AGENT, least=0),
    "revoked_at": read_moment,
    "revoked_reason": lambda value: text(value, MOST_REASON, least=0),
}


def _document(name: str, value: Any, today: date) -> str:
    if not isinstance(value, str):
        raise Refusal("WRONG_TYPE", "must be a text")
    try:
        return CANONICAL[name](value, today)
    except Problem as problem:
        code = "INVALID" if problem.code == "VALIDATION_ERROR" else problem.code
        raise Refusal(code, problem.detail) from None


Reader = Callable[[Any, date], Any]


def _reader(field: ContactFieldSpec) -> Reader:
    """What reads a value of the field at birth."""
    match field.kind:
        case Kind.DOCUMENT:
            return partial(_document, field.key)
        case Kind.TEXT | Kind.ID:
            return lambda value, _: text(value, field.most)
    read = _READERS[field.kind]
    return lambda value, _: read(value)


_READERS: Final[Mapping[Kind, Callable[[Any], Any]]] = {
    Kind.PHONE: phone,
    Kind.EMAIL: read_email,
    Kind.PICTURE: read_avatar,
    Kind.ROLE: lambda value: one_of(value, CompanyRole).value,
    Kind.SOURCE: lambda value: one_of(value, ContactSource, GIVEN_SOURCES),
    Kind.TAGS: read_tags,
    Kind.ATTRIBUTES: read_attributes,
    Kind.CONSENT: read_consent,
    Kind.INTEGRATIONS: read_external_ids,
    Kind.GROUPS: read_groups,
}

_TOLD: Final = sorted(FIELDS, key=lambda each: (each.kind is not Kind.PHONE, each.kind is Kind.SOURCE))
"""The order in which errors are told: of the phone first, and of the source last."""

_NEW: Final[Mapping[str, tuple[str, Reader]]] = {each.key: (each.name, _reader(each)) for each in _TOLD if each.given}

_CHANGES: Final[Mapping[str, tuple[str, Reader]]] = {
    **_NEW,
    "source": ("source", lambda value, _: one_of(value, ContactSource)),
    "removeAttributes": ("removed_attributes", lambda value, _: read_keys(value)),
    "addTags": ("added_tags", lambda value, _: read_tags(value)),
    "socialIdentities": ("social_identities", lambda value, _: read_identities(value)),
    "removeTags": ("removed_tags", lambda value, _: texts(value, MOST_TAGS, MOST_TAG)),
}

_ALWAYS_THERE: Final = frozenset(each.name for each in FIELDS if each.always)
