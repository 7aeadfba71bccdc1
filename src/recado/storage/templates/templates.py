"""Chat-app templates (C11): content, state and the steps of a review that are still to come.

`version` counts the edits of the content, `revision` every change that a reader can see (C6.3).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from recado.domain.core.clock import Clock
from recado.domain.core.errors import conflict
from recado.domain.core.ids import Identified
from recado.domain.templates.template import Language, TemplateCategory, TemplateStatus
from recado.storage.core.directory import Directory
from recado.storage.core.statements.rows import Executor, columns
from recado.storage.core.statements.sql import load
from recado.storage.core.statements.tables import Table, Unique

MAX_OF_A_NUMBER = 250  # C31

Components = tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Template(Identified):
    """One template in one language. `next_step_at`: when its submission goes on, or the `verdict` is due.

    `reported_at`: of when the latest report of its status was, by the provider's clock.
    """

    organization_id: str
    id: str
    env: str
    number_id: str
    name: str
    language: Language
    category: TemplateCategory
    status: TemplateStatus = TemplateStatus.DRAFT
    components: Components
    header_example_url: str | None = None
    provider_template_id: str | None = None
    version: int = 1
    approved_version: int | None = None
    rejection_reason: str | None = None
    submit_attempts: int = 0
    next_step_at: datetime | None = None
    verdict: Mapping[str, Any] | None = None
    reported_at: datetime | None = None
    deleted_at: datetime | None = None
    revision: int = 1
    updated_at: datetime


TEMPLATES: Final = Table(
    "templates",
    Template,
    "template",
    own=load("templates"),
    convert={"language": Language, "category": TemplateCategory, "status": TemplateStatus, "components": tuple},
    unseen=("approved_version", "submit_attempts", "next_step_at", "verdict", "reported_at"),
    unique=Unique(
        ("number_id", "name", "language"),
        "TEMPLATE_NAME_TAKEN",
        "Another template of this number has this name and language.",
        "templateId",
    ),
    wide=("components", "rejection_reason"),
    keeps_deleted=True,
)
SQL = TEMPLATES.sql
read, get, get_locked = TEMPLATES.read, TEMPLATES.get, TEMPLATES.get_locked
save, save_many = TEMPLATES.save, TEMPLATES.save_many


async def insert(connection: Executor, template: Template) -> Template:
    """Store a new template. Run it in a transaction.

    Raises `Problem` TEMPLATE_NAME_TAKEN (name and language are unique in a number) or LIMIT_REACHED (250 in a number).
    """
    await connection.execute(SQL.lock_number, template.organization_id, template.env, template.number_id)
    count = await connection.fetchval(SQL.count_of_number, template.organization_id, template.env, template.number_id)
    if count >= MAX_OF_A_NUMBER:
        raise conflict("LIMIT_REACHED", f"A number holds at most {MAX_OF_A_NUMBER} templates.", limit=MAX_OF_A_NUMBER)
    return await TEMPLATES.insert(connection, template)


async def insert_many(connection: Executor, templates: Sequence[Template]) -> list[Template]:
    """Store new templates of one number, as many as it still holds, the first ones; answers those that are stored.

    Run it in a transaction.
    """
    if not templates:
        return []
    key = (templates[0].organization_id, templates[0].env, templates[0].number_id)
    await connection.execute(SQL.lock_number, *key)
    room = MAX_OF_A_NUMBER - await connection.fetchval(SQL.count_of_number, *key)
    return await TEMPLATES.insert_many(connection, templates[:room]) if room > 0 else []


async def by_names_locked(
    connection: Executor, organization_id: str, env: str, number_id: str, names: Sequence[tuple[str, str]]
) -> list[Template]:
    """Those of a number with one of these names, each in its language."""
    rows = await connection.fetch(SQL.by_names_locked, organization_id, env, number_id, *columns(names, 2))
    return [read(row) for row in rows]


async def by_provider_id(
    executor: Executor, env: str, provider_template_id: str, number_id: str | None
) -> Template | None:
    """The template that a provider's report is about, whichever organization owns it; None when that is not clear."""
    rows = await executor.fetch(SQL.by_provider_id, env, provider_template_id, number_id)
    return read(rows[0]) if len(rows) == 1 else None


async def of_business_account(
    executor: Executor, env: str, provider_template_id: str, business_account_id: str
) -> list[Template]:
    """The templates that a report to a business account is about: one for each of its numbers that holds it."""
    rows = await executor.fetch(SQL.of_business_account, env, provider_template_id, business_account_id)
    return [read(row) for row in rows]


async def submitted(
    executor: Executor, env: str, name: str, language: str, *, business_account_id: str | None, number_id: str | None
) -> list[Template]:
    """The templates of that name whose submission is under way, of a number or of all numbers of a business account."""
    if business_account_id is None and number_id is None:
        return []
    rows = await executor.fetch(SQL.submitted, env, name, language, business_account_id, number_id)
    return [read(row) for row in rows]


async def claim_due(executor: Executor, env: str, now: datetime, *, lease: timedelta, limit: int) -> list[Template]:
    """Templates with a step to take now; each is due again after `lease` unless the step says otherwise."""
    return [read(row) for row in await executor.fetch(SQL.claim_due, env, now, now + lease, limit)]


TemplateKey = tuple[str, str, str]  # organization, environment, template


class TemplateDirectory(Directory[TemplateKey, Template]):
    """Templates that exist, by (organization, environment, id), read through, at most 5 s old.

    Ten thousand messages may wait for one that was deleted: they ask for it once a second.
    """

    def __init__(self, executor: Executor, *, clock: Clock) -> None:
        super().__init__(lambda key: get(executor, *key), clock=clock, gone=1.0)
