"""Contacts as callers see them: what has no value is absent, phones are masked without `pii:full` (C2.3.2, C2.5)."""

from collections.abc import Mapping, Sequence
from typing import Any

from recado.domain.debts import DebtGroup
from recado.domain.masking import mask_phone
from recado.storage.contact_consents import ConsentEntry
from recado.storage.contacts import Contact


def contact_view(contact: Contact, groups: Sequence[DebtGroup] = (), *, unmasked: bool) -> dict[str, Any]:
    """One contact."""
    consent = contact.consent
    view: dict[str, Any] = {
        "id": contact.id,
        "organizationId": contact.organization_id,
        "phone": contact.phone if unmasked else mask_phone(contact.phone),
        "phoneHash": contact.phone_hash.hex(),
        "attributes": dict(contact.attributes),
        "tags": list(contact.tags),
        "optIn": _present(
            {
                "status": consent.status.value,
                "source": consent.source,
                "at": consent.at,
                "ip": consent.ip,
                "userAgent": consent.user_agent,
                "revokedAt": consent.revoked_at,
                "revokedReason": consent.revoked_reason,
            }
        ),
        "source": contact.source,
        "createdAt": contact.created_at,
        "updatedAt": contact.updated_at,
    }
    optional = {
        "name": contact.name,
        "email": contact.email,
        "avatarUrl": contact.avatar_url,
        "chatappProfileName": contact.chatapp_profile_name,
        "cpfCipher": contact.cpf_cipher,
        "cnpjCipher": contact.cnpj_cipher,
        "birthDateCipher": contact.birth_date_cipher,
        "debtorGroups": [group_view(group, unmasked=unmasked) for group in groups] or None,
        "externalId": contact.external_id,
        "externalIds": dict(contact.external_ids) or None,
        "companyId": contact.company_id,
        "papelNaEmpresa": contact.company_role,
        "lastInteractionAt": contact.last_interaction_at,
    }
    return view | _present(optional)


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


def masked(view: dict[str, Any]) -> dict[str, Any]:
    """A view that was made unmasked, for a caller without `pii:full`."""
    view = view | {"phone": mask_phone(view["phone"])}
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


def _present(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
