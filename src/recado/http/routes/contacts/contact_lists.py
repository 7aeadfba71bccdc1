"""Contacts as lists show them, with their debt groups (C12.1, C12.9)."""

from collections.abc import Iterable
from typing import Any

from recado.domain.access.scopes import PII
from recado.domain.contacts.contact import Contact
from recado.http.api.call import Call
from recado.http.api.page_items import Views
from recado.http.routes.contacts.contact_answers import contact_view
from recado.storage.contacts import debtor_groups
from recado.storage.core.connections.postgres import Database


def contact_views(database: Database, call: Call) -> Views[Contact]:
    """What the caller sees of contacts of its environment."""
    principal = call.principal
    unmasked, hashed = call.can(PII), principal.sees_phone_hashes

    async def views(contacts: list[Contact]) -> Iterable[Any]:
        if not contacts:
            return ()
        ids = [contact.id for contact in contacts]
        groups = await debtor_groups.of_contacts(database, principal.organization_id, principal.env, ids)
        return (contact_view(each, groups.get(each.id, ()), unmasked=unmasked, hashed=hashed) for each in contacts)

    return views
