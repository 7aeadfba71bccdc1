"""Journeys of an earlier version come to use what their definitions say."""

import re
from typing import Any

from tests.domain.journeys.definitions import LIST, SEGMENT, document, with_step

from recado.domain.journeys.uses import uses_of
from recado.storage.core.connections.postgres import Database
from recado.storage.core.upkeep.migrate import read_migrations

DOCUMENTS: list[dict[str, Any]] = [
    document(),
    document(gatilho={}, passos=[]),
    document(gatilho={"tipo": "api", "listId": LIST, "segmentId": SEGMENT}),
    document(gatilho={"tipo": "segmento", "listId": LIST, "segmentId": SEGMENT}),
    document(gatilho={"tipo": "lista", "segmentId": SEGMENT}),
    with_step("chat", canal="sms"),
    with_step("chat", canal=None),
    with_step("chat", templateId="tpl_other", numberId=None),
    with_step("mail", numberId="num_other"),
    with_step("wait", templateId="tpl_other", canal="chatapp"),
]


async def test_the_migration_finds_what_the_program_does(database: Database) -> None:
    (sql,) = (each.sql for each in read_migrations() if each.name.endswith("uses_of_journeys"))
    for place, each in enumerate(DOCUMENTS):
        await database.execute(
            "insert into journeys (organization_id, env, id, chain_id, status, name, fuso_horario, gatilho, inicio, "
            "reentrada, intervalo_reentrada_horas, passos, canais, fluxo, uses, updated_at) "
            "select 'org_1', 'test', $1, $1, 'rascunho', 'a', 'UTC', $2, 'a', 'nunca', 24, $3, '{}', '{}', '{}', now()",
            f"jrn_{place}", each["gatilho"], each["passos"],
        )  # fmt: skip
    (fill,) = re.findall(r"update journeys.*?;", sql, re.DOTALL)
    await database.execute(fill)
    rows = await database.fetch("select uses from journeys order by id")
    assert [row["uses"] for row in rows] == [uses_of(each["gatilho"], each["passos"]) for each in DOCUMENTS]
