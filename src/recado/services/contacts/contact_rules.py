"""From what was given to a contact: a new one, and one that is changed (C12.2, C12.3); its documents are sealed here.

`given` are the values of `contact_input.py`.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from recado.domain.contacts.consent import ConsentRefusal
from recado.domain.contacts.contact import (
    FIELDS,
    MOST_TAGS,
    Contact,
    ContactFieldSpec,
    ContactSource,
    Kind,
    tags_united,
    tags_without,
)
from recado.domain.contacts.contact_attributes import merged as merged_attributes
from recado.domain.core.errors import FieldError, Problem, validation_error
from recado.domain.core.ids import COMPANY, created_at
from recado.domain.core.phones import phone_hash
from recado.domain.core.reading import Refusal
from recado.domain.core.references import reference_not_found
from recado.storage.contacts.documents import INDEX_COLUMNS, DocumentCipher

Values = Mapping[str, Any]

_AS_GIVEN = frozenset({Kind.TEXT, Kind.ID, Kind.EMAIL, Kind.PICTURE, Kind.ROLE})
_PLAIN = tuple(each.name for each in FIELDS if each.given and each.kind in _AS_GIVEN)
_DOCUMENTS = tuple(each for each in FIELDS if each.kind is Kind.DOCUMENT)


def new_contact(
    given: Values,
    documents: DocumentCipher,
    *,
    organization_id: str,
    env: str,
    contact_id: str,
    source: str | None = None,
) -> Contact:
    """A contact to store, its consent still unknown. `source`: in place of the one given; else it is `manual`."""
    phone = given["phone"]
    return Contact(
        organization_id=organization_id,
        env=env,
        id=contact_id,
        phone=phone,
        phone_hash=phone_hash(organization_id, phone),
        source=source or given.get("source") or ContactSource.MANUAL.value,
        updated_at=created_at(contact_id),
        **_changes(None, (organization_id, env, contact_id), given, documents),
    )


def changed_contact(before: Contact, given: Values, documents: DocumentCipher) -> Contact:
    """The contact after a change of everything but consent and debt groups; the same one when nothing differs.

    Raises `Problem` 422: PHONE_IMMUTABLE, another source, more than 100 tags or attributes.
    """
    _check_fixed(before, given)
    changes = _changes(before, (before.organization_id, before.env, before.id), given, documents)
    return replace(before, **changes) if changes else before


def _changes(
    before: Contact | None, place: tuple[str, str, str], given: Values, documents: DocumentCipher
) -> dict[str, Any]:
    """The fields of a contact that `given` sets. `place`: its organization, environment and id."""
    changes: dict[str, Any] = {name: given[name] for name in _PLAIN if name in given}
    if "attributes" in given or "removed_attributes" in given:
        changes["attributes"] = _attributes({} if before is None else before.attributes, given)
    if "external_ids" in given:
        changes["external_ids"] = _external_ids({} if before is None else before.external_ids, given["external_ids"])
    if "tags" in given or "added_tags" in given or "removed_tags" in given:
        changes["tags"] = _tags(() if before is None else before.tags, given)
    if "social_identities" in given:
        changes["social_identities"] = given["social_identities"] or ()
    for document in _DOCUMENTS:
        if document.name in given:
            changes |= _sealed(document, given[document.name], place, documents)
    return changes


def _check_fixed(before: Contact, given: Values) -> None:
    if given.get("phone", before.phone) != before.phone:
        message = "The phone of a contact cannot change: create another contact."
        raise validation_error([FieldError("/phone", "PHONE_IMMUTABLE", message)], code="PHONE_IMMUTABLE")
    if given.get("source", before.source) != before.source:
        raise validation_error([FieldError("/source", "NOT_ALLOWED", "The source of a contact cannot change.")])


def _attributes(has: Mapping[str, Any], given: Values) -> dict[str, Any]:
    try:
        return merged_attributes(has, given.get("attributes") or {}, given.get("removed_attributes") or ())
    except Refusal as refusal:
        raise validation_error(refusal.under("attributes").errors) from None


def _external_ids(has: Mapping[str, str], given: Mapping[str, str | None] | None) -> dict[str, str]:
    merged = {} if given is None else {**has, **given}
    return {name: value for name, value in merged.items() if value is not None}


def _tags(has: tuple[str, ...], given: Values) -> tuple[str, ...]:
    tags = has if given.get("tags") is None else given["tags"]
    tags = tags_without(tags_united(tags, given.get("added_tags") or ()), given.get("removed_tags") or ())
    if len(tags) > MOST_TAGS:
        field = "addTags" if "added_tags" in given else "tags"
        raise validation_error([FieldError(f"/{field}", "TOO_MANY", f"A contact holds at most {MOST_TAGS} tags.")])
    return tags


def _sealed(
    field: ContactFieldSpec, value: str | None, place: tuple[str, str, str], documents: DocumentCipher
) -> dict[str, Any]:
    """The columns of a document; None clears it."""
    organization_id, env, contact_id = place
    cipher, index = None, None
    if value is not None:
        sealed = documents.seal(field.key, value, organization_id=organization_id, env=env, contact_id=contact_id)
        cipher, index = sealed.cipher, sealed.index
    columns = {field.column: cipher}
    return columns | {INDEX_COLUMNS[field.key]: index} if field.key in INDEX_COLUMNS else columns


def refusal_of(refused: ConsentRefusal) -> Problem:
    """The problem that a refused change of consent is answered with (C12.5)."""
    return Problem(refused.code, refused.error.message, errors=[refused.error])


def no_such_company(company_id: str, env: str) -> Problem:
    """422: `companyId` names no company of this environment."""
    return reference_not_found("companyId", COMPANY, company_id, env)


def taken(by_phone: bool, holder: str | None = None) -> Problem:
    """409: another contact has the phone, or else the external id. `holder`: its id."""
    if by_phone:
        error = FieldError("/phone", "PHONE_TAKEN", "Another contact has this phone.")
    else:
        error = FieldError("/externalId", "EXTERNAL_ID_TAKEN", "Another contact has this external id.")
    return validation_error([error], code=error.code, contactId=holder)


def future_refusal() -> Problem:
    """422: the date of a refusal lies more than five minutes ahead (C12.5.1)."""
    code = "DATA_DO_CONSENTIMENTO_NO_FUTURO"
    return validation_error([FieldError("/at", code, "The date is more than 5 minutes in the future.")], code=code)
