"""The whole way of a message on a PostgreSQL that somebody else runs (`RECADO_DATABASE_URL`)."""

import base64
import os
from pathlib import Path
from typing import Any

import asyncpg
from tests.program import Api, Service, running
from tests.system_postgres import url_of
from tests.waiting import until

PHONE = "+5511987650001"  # the sandbox reports delivered and read


def _key() -> str:
    return base64.b64encode(os.urandom(32)).decode()


async def test_a_message_is_accepted_sent_and_read_on_a_database_of_the_systems_packages(
    system_postgres: dict[str, Any], tmp_path: Path
) -> None:
    settings = {
        "DATABASE_URL": url_of(system_postgres),
        "ENCRYPTION_KEYS": f"k1:{_key()}",
        "INDEX_KEY": _key(),
        "CURSOR_KEY": _key(),
        "SANDBOX_TIME_SCALE": "0.01",
    }
    prepared = Service(tmp_path, **settings)
    prepared.command("migrate", "--json")
    prepared.command("org", "create", "--name", "Padaria Central", "--json")
    async with running(prepared) as service, Api(service.url, service.key("test")) as api:
        number = await api.number("external")
        template = await approved(api, number["id"])
        contact = await api.call("POST", "/contacts", {"phone": PHONE, "name": "Ana Souza"})
        new = {"numberId": number["id"], "contactId": contact["id"], "type": "template", "templateId": template}
        sent = await api.call("POST", "/messages", {**new, "templateVars": ["Ana"]})

        async def read() -> bool:
            return bool((await api.call("GET", f"/messages/{sent['id']}"))["status"] == "read")

        await until(read, "the message is read")
        for q in ("ana", "ouza"):  # its pg_trgm finds words inside words
            assert [each["id"] for each in (await api.call("GET", "/contacts", q=q))["items"]] == [contact["id"]]
    assert not (tmp_path / "data" / "cluster").exists()
    database = await asyncpg.connect(**system_postgres)
    assert await database.fetchval("select status from messages where id = $1", sent["id"]) == "read"
    await database.close()


async def approved(api: Api, number_id: str) -> str:
    """The id of a template that the sandbox has approved."""
    template = await api.call(
        "POST",
        "/v2/templates",
        {
            "numberId": number_id,
            "name": "welcome",
            "language": "en-US",
            "category": "marketing",
            "components": [{"type": "BODY", "payload": {"text": "Hello {{1}}.", "example": ["Ana"]}}],
        },
    )
    await api.call("POST", f"/v2/sandbox/templates/{template['id']}", {"status": "approved"})
    return str(template["id"])
