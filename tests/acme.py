"""What tests of actors and of services begin with: an organization, and a template of its number."""

import os
from typing import Any

from recado.domain.core.clock import Clock
from recado.domain.core.ids import TEMPLATE, IdSource
from recado.domain.templates.template import Language, TemplateCategory, TemplateStatus
from recado.storage.access.organizations import NewOrganization, create_organization
from recado.storage.core.connections.postgres import Database
from recado.storage.senders.numbers import Number
from recado.storage.templates import templates
from recado.storage.templates.templates import Template

BODY = ({"type": "BODY", "payload": {"text": "Hello {{1}}!"}},)


async def acme(database: Database, clock: Clock, ids: IdSource) -> NewOrganization:
    """A new organization, with what each has from its start."""
    async with database.transaction() as connection:
        return await create_organization(connection, ids, name="Acme", now=clock.now(), random_bytes=os.urandom)


async def add_template(database: Database, clock: Clock, ids: IdSource, number: Number, **changes: Any) -> Template:
    """An approved utility template of a number, with one variable."""
    fields: dict[str, Any] = {
        "organization_id": number.organization_id,
        "id": ids.new(TEMPLATE),
        "env": number.env,
        "number_id": number.id,
        "name": "hello",
        "language": Language.PT_BR,
        "category": TemplateCategory.UTILITY,
        "status": TemplateStatus.APPROVED,
        "components": BODY,
        "updated_at": clock.now(),
    }
    async with database.transaction() as connection:
        return await templates.insert(connection, Template(**{**fields, **changes}))
