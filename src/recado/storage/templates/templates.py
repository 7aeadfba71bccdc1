"""Chat-app templates (C11): content, state and the steps of a review that are still to come.

`version` counts the edits of the content, `revision` every change that a reader can see (C6.3).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem
from recado.domain.core.ids import created_at
from recado.domain.templates.template import Language, TemplateCategory, TemplateStatus
from recado.storage.core.directory import Directory
from recado.storage.core.rows import Executor, Page, page, reader
from recado.storage.core.sql import load
from recado.storage.core.wide_rows import bounded, rows_of

SQL = load("templates")
PAGE: Final = bounded(SQL.page, ("components", "rejection_reason"), "p.id desc")

MAX_OF_A_NUMBER = 250  # C31

Components = tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
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

    @property
    def created_at(self) -> datetime:
        return created_at(self.id)


read = reader(Template, language=Language, category=TemplateCategory, status=TemplateStatus, components=tuple)


async def insert(connection: Executor, template: Template) -> Template:
    """Store a new template. Run it in a transaction.

    Raises `Problem` TEMPLATE_NAME_TAKEN (name and language are unique in a number) or LIMIT_REACHED (250 in a number).
    """
    await connection.execute(SQL.lock_number, template.organization_id, template.env, template.number_id)
    count = await connection.fetchval(SQL.count_of_number, template.organization_id, template.env, template.number_id)
    if count >= MAX_OF_A_NUMBER:
        raise Problem(
            "LIMIT_REACHED",
            f"A number holds at most {MAX_OF_A_NUMBER} templates.",
            meta={"limit": MAX_OF_A_NUMBER},
        )
    row = await connection.fetchrow(
        SQL.insert,
        template.organization_id,
        template.id,
        template.env,
        template.number_id,
        template.name,
        template.language,
        template.category,
        template.status,
        list(template.components),
        template.header_example_url,
        template.provider_template_id,
        template.version,
        template.approved_version,
        template.rejection_reason,
        template.revision,
        template.updated_at,
    )
    if row is None:
        holder = await connection.fetchval(
            SQL.named, template.organization_id, template.env, template.number_id, template.name, template.language
        )
        detail = "Another template of this number has this name and language."
        raise Problem("TEMPLATE_NAME_TAKEN", detail, meta={"templateId": holder})
    return read(row)


async def get(executor: Executor, organization_id: str, env: str, template_id: str) -> Template | None:
    row = await executor.fetchrow(SQL.by_id, organization_id, env, template_id)
    return read(row) if row else None


async def get_locked(connection: Executor, organization_id: str, env: str, template_id: str) -> Template | None:
    """As `get`, and nobody else changes the row until this transaction ends."""
    row = await connection.fetchrow(SQL.by_id_locked, organization_id, env, template_id)
    return read(row) if row else None


async def by_name_locked(
    connection: Executor, organization_id: str, env: str, number_id: str, name: str, language: str
) -> Template | None:
    row = await connection.fetchrow(SQL.by_name_locked, organization_id, env, number_id, name, language)
    return read(row) if row else None


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


async def list_page(
    executor: Executor,
    organization_id: str,
    env: str,
    *,
    status: str | None = None,
    category: str | None = None,
    language: str | None = None,
    number_id: str | None = None,
    limit: int,
    skip: int = 0,
    before_id: str | None = None,
) -> Page[Template]:
    """Newest first, what is read of the page at once; `before_id`: only older ones, and nobody counts them."""
    filters = (organization_id, env, status, category, language, number_id)
    rows = await executor.fetch(PAGE, *filters, before_id, limit, skip)
    total = 0 if before_id else await executor.fetchval(SQL.page_count, *filters)
    return page([read(row) for row in rows], total, more=rows_of(rows) > len(rows))


async def save(executor: Executor, before: Template, after: Template, now: datetime) -> Template:
    """Write what differs; a visible difference raises the revision.

    Raises `Problem` VERSION_MISMATCH when the row is no longer at `before.revision`.
    """
    if after == before:
        return before
    visible = before != replace(
        after,
        approved_version=before.approved_version,
        submit_attempts=before.submit_attempts,
        next_step_at=before.next_step_at,
        verdict=before.verdict,
        reported_at=before.reported_at,
    )
    row = await executor.fetchrow(
        SQL.save,
        before.organization_id,
        before.env,
        before.id,
        before.revision,
        after.category,
        after.status,
        list(after.components),
        after.header_example_url,
        after.provider_template_id,
        after.version,
        after.approved_version,
        after.rejection_reason,
        after.submit_attempts,
        after.next_step_at,
        after.verdict,
        after.deleted_at,
        before.revision + 1 if visible else before.revision,
        now if visible else before.updated_at,
        after.reported_at,
    )
    if row is None:
        raise Problem(
            "VERSION_MISMATCH",
            "Another request changed the template at the same time: read it again and repeat the change.",
        )
    return read(row)


async def claim_due(executor: Executor, env: str, now: datetime, *, lease: timedelta, limit: int) -> list[Template]:
    """Templates with a step to take now; each is due again after `lease` unless the step says otherwise."""
    return [read(row) for row in await executor.fetch(SQL.claim_due, env, now, now + lease, limit)]


TemplateKey = tuple[str, str, str]  # organization, environment, template


class TemplateDirectory(Directory[TemplateKey, Template]):
    """Templates that exist, by (organization, environment, id), read through, at most 5 s old."""

    def __init__(self, executor: Executor, *, clock: Clock) -> None:
        super().__init__(lambda key: get(executor, *key), clock=clock)
