"""What tests of audiences begin with: people, lists and segments of them, and batches that were made for them."""

from typing import Any

import pytest
from tests.acme import add_template
from tests.people import insert_people
from tests.services.batches.conftest import Workshop

from recado.domain.core.errors import Problem
from recado.domain.core.ids import SEGMENT
from recado.domain.templates.template import TemplateCategory
from recado.storage.audience import lists, segments
from recado.storage.audience.lists import StaticList
from recado.storage.audience.segments import Segment
from recado.storage.batches.batches import Batch


async def people(
    workshop: Workshop, given: list[dict[str, Any]], first: int = 1, organization_id: str | None = None
) -> list[str]:
    return await insert_people(workshop.db, organization_id or workshop.organization.id, "test", given, first)


async def a_list(
    workshop: Workshop, members: list[str], list_id: str = "lst_1", organization_id: str | None = None
) -> str:
    now, owner = workshop.clock.now(), organization_id or workshop.organization.id
    async with workshop.db.transaction() as connection:
        new = StaticList(organization_id=owner, env="test", id=list_id, name=list_id, updated_at=now)
        await lists.insert(connection, new)
        await lists.join(connection, owner, "test", list_id, members, now)
    return list_id


async def a_segment(workshop: Workshop, tag: str) -> str:
    now = workshop.clock.now()
    new = Segment(
        organization_id=workshop.organization.id,
        env="test",
        id=workshop.ids.new(SEGMENT),
        name=tag,
        filters=[{"field": "tag", "operator": "is", "value": tag}],
        due_at=now,
        updated_at=now,
    )
    async with workshop.db.transaction() as connection:
        return (await segments.insert(connection, new)).id


async def a_template(workshop: Workshop, category: TemplateCategory) -> str:
    added = await add_template(
        workshop.db, workshop.clock, workshop.ids, workshop.number, name=f"of {category}", category=category
    )
    return added.id


async def built(workshop: Workshop, **to: Any) -> Batch:
    """A batch to an audience, as it is when all of it is made."""
    return await workshop.built(await workshop.made(workshop.draft(0, recipients=(), **to)))


async def reached(workshop: Workshop) -> list[str]:
    return [row["contact_id"] for row in await workshop.db.fetch("select contact_id from messages order by id")]


async def refusal(workshop: Workshop, **to: Any) -> Problem:
    with pytest.raises(Problem) as caught:
        await workshop.acceptance.accept(workshop.draft(0, recipients=(), **to))
    for table in ("batches", "batch_audiences", "messages", "idempotency"):
        assert await workshop.db.fetchval(f"select count(*) from {table}") == 0, table
    return caught.value
