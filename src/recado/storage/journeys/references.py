"""What there is of what a journey refers to, read in one statement whatever its size (C9.14)."""

from collections.abc import Iterable
from typing import Final

import orjson

from recado.domain.journeys.graph import JourneyDefinition
from recado.domain.journeys.problems import JourneyReferences, TemplateState
from recado.domain.senders.number import NumberStatus
from recado.domain.templates.template import TemplateStatus
from recado.domain.templates.template_content import variable_count
from recado.domain.webhooks.webhook import SubscriptionStatus
from recado.storage.core.statements.rows import Executor
from recado.storage.core.statements.sql import load

SQL: Final = load("journeys")


async def references_of(
    executor: Executor, organization_id: str, env: str, definition: JourneyDefinition
) -> JourneyReferences:
    """Of e-mail templates those that are not archived. The default sender is a verified one."""
    trigger, steps = definition.gatilho, definition.passos
    rows = await executor.fetch(
        SQL.references,
        organization_id,
        env,
        _named([trigger.list_id]),
        _named([trigger.segment_id]),
        _named(step.number_id for step in steps),
        _named(step.webhook_id for step in steps),
        _named(step.template_id for step in steps),
    )
    return JourneyReferences(
        lists=frozenset(row["id"] for row in rows if row["kind"] == "list"),
        segments=frozenset(row["id"] for row in rows if row["kind"] == "segment"),
        numbers={row["id"]: NumberStatus(row["status"]) for row in rows if row["kind"] == "number"},
        webhooks={row["id"]: SubscriptionStatus(row["status"]) for row in rows if row["kind"] == "webhook"},
        email_templates={row["id"]: _variables(row) for row in rows if row["kind"] == "email_template"},
        email_sender=any(row["kind"] == "email_sender" for row in rows),
        templates={row["id"]: _template(row) for row in rows if row["kind"] == "template"},
    )


def _named(ids: Iterable[str | None]) -> list[str]:
    return sorted({each for each in ids if each is not None})


def _template(row: dict[str, str]) -> TemplateState:
    body = [{"type": "BODY", "payload": {"text": row["body"]}}]
    return TemplateState(
        row["number_id"],
        approved=row["status"] == TemplateStatus.APPROVED,
        variables=tuple(str(number) for number in range(1, variable_count(body) + 1)),
    )


def _variables(row: dict[str, str | None]) -> tuple[str, ...]:
    return tuple(orjson.loads(row["body"] or "[]"))
