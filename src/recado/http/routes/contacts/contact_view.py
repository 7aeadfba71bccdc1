"""Contacts as callers see them: what has no value is absent, phones are masked without `pii:full` (C2.3.2, C2.5)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from recado.domain.contacts.contact import Contact
from recado.domain.contacts.debts import DebtGroup
from recado.domain.core.masking import mask_phone
from recado.storage.contacts.contact_consents import ConsentEntry

# What is shown only where there is something: the names of the API, and the fields of a contact.
_OPTIONAL: Final = {
    "name": "name",
    "email": "email",
    "avatarUrl": "avatar_url",
    "chatappProfileName": "chatapp_profile_name",
    "cpfCipher": "cpf_cipher",
    "cnpjCipher": "cnpj_cipher",
    "birthDateCipher": "birth_date_cipher",
    "externalId": "external_id",
    "companyId": "company_id",
    "papelNaEmpresa": "company_role",
    "lastInteractionAt": "last_interaction_at",
}.items()
_CONSENT: Final = {
    "source": "opt_in_source",
    "at": "opt_in_at",
    "ip": "opt_in_ip",
    "userAgent": "opt_in_user_agent",
    "revokedAt": "opt_in_revoked_at",
    "revokedReason": "opt_in_revoked_reason",
}.items()


def contact_view(
    contact: Contact, groups: Sequence[DebtGroup] = (), *, unmasked: bool, hashed: bool = True
) -> dict[str, Any]:
    """One contact. `hashed`: with `phoneHash`."""
    view: dict[str, Any] = {
        "id": contact.id,
        "organizationId": contact.organization_id,
        "phone": contact.phone if unmasked else mask_phone(contact.phone),
        **({"phoneHash": contact.phone_hash.hex()} if hashed else {}),
        "attributes": contact.attributes,
        "tags": contact.tags,
        "optIn": _fill({"status": contact.opt_in_status.value}, contact, _CONSENT),
        "source": contact.source,
        "createdAt": contact.created_at,
        "updatedAt": contact.updated_at,
    }
    if groups:
        view["debtorGroups"] = [group_view(group, unmasked=unmasked) for group in groups]
    if contact.external_ids:
        view["externalIds"] = contact.external_ids
    return _fill(view, contact, _OPTIONAL)


def group_view(group: DebtGroup, *, unmasked: bool) -> dict[str, Any]:
    """One debt group."""
    view: dict[str, Any] = {
        "id": group.id,
        "company": group.company,
        "phones": list(group.phones) if unmasked else [mask_phone(phone) for phone in group.phones],
    }
    return view | _present(
        {
            "amountCents": group.amount_cents,
            "status": None if group.status is None else group.status.value,
            "reference": group.reference,
        }
    )


def masked(view: dict[str, Any], *, hashed: bool) -> dict[str, Any]:
    """A view that was made unmasked, for a caller without `pii:full`."""
    view = view | {"phone": mask_phone(view["phone"])}
    if not hashed:
        del view["phoneHash"]
    if "debtorGroups" in view:
        view["debtorGroups"] = [
            group | {"phones": [mask_phone(phone) for phone in group["phones"]]} for group in view["debtorGroups"]
        ]
    return view


def consent_view(entry: ConsentEntry) -> dict[str, Any]:
    """One change of consent."""
    return _present(
        {
            "from": None if entry.from_status is None else entry.from_status.value,
            "to": entry.to_status.value,
            "at": entry.at,
            "dataInformada": entry.date_given,
            "source": entry.source,
            "ip": entry.ip,
            "userAgent": entry.user_agent,
            "revokedReason": entry.reason,
            "recordedAt": entry.recorded_at,
        }
    )


def _fill(view: dict[str, Any], contact: Contact, fields: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """`view`, with those of the fields that the contact has."""
    for name, attribute in fields:
        value = getattr(contact, attribute)
        if value is not None:
            view[name] = value
    return view


def _present(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
