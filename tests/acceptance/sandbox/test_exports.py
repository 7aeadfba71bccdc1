"""What was sent and what came in is exported, over HTTP and by the command, through a running service (C18)."""

import asyncio
import csv
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests import forked
from tests.acceptance.sandbox.conftest import Newcomer
from tests.acceptance.sandbox.customer import phone
from tests.program import Service
from tests.waiting import until

from recado.domain.channels.exported import COLUMNS
from recado.domain.core.timestamps import format_timestamp

SAME = ("id", "channel", "direction", "to", "status", "campaignId", "contactId", "metadata", "createdAt", "sentAt",
        "deliveredAt", "readAt", "failedAt")  # fmt: skip


async def test_an_export_holds_what_was_sent_and_what_came_in_over_http_and_in_files(
    service: Service, newcomer: Newcomer, tmp_path: Path
) -> None:
    organization_id, customer = await newcomer()
    api, began = customer.api, datetime.now(UTC)
    person = phone()
    contact = await api.call("POST", "/contacts", {"phone": person, "externalId": "crm-7"})
    belongs = {"contactId": contact["id"], "campaignId": "spring sale", "metadata": {"order": 1042}}
    await customer.reaches(await customer.send(person, **belongs), "read")
    failed = await customer.reaches(await customer.send(phone("9001")), "failed")
    await api.call("POST", "/v2/sandbox/inbound", {"numberId": customer.number_id, "from": person, "text": "hello"})
    sms = await api.call("POST", "/v2/sms/messages", {"to": person, "text": "x" * 161, "contactId": contact["id"]})

    async def delivered() -> bool:
        return bool((await api.call("GET", f"/v2/sms/messages/{sms['id']}"))["status"] == "delivered")

    await until(delivered, "the SMS is delivered")
    listed = (await api.call("GET", "/messages"))["items"]
    period = f"from={format_timestamp(began)}&to={format_timestamp(datetime.now(UTC) + timedelta(minutes=1))}"
    rows: dict[str, Any] = {}
    for channel in ("chatapp", "sms", "rcs", "email"):
        rows[channel] = (await api.call("GET", f"/v2/exports/{channel}?{period}"))["items"]
        expected = [message for message in listed if message["channel"] == channel]
        assert [_same(row) for row in rows[channel]] == [_same(message) for message in expected]
    assert [len(found) for found in rows.values()] == [3, 1, 0, 0]
    by_id = {row["id"]: row for found in rows.values() for row in found}
    assert by_id[failed["id"]]["reason"] == failed["lastError"].partition(":")[0]
    assert (by_id[sms["id"]]["segments"], by_id[sms["id"]]["contactExternalId"]) == (2, "crm-7")

    token = await asyncio.to_thread(lambda: service.key("test", org=organization_id))

    def export(file: str, *arguments: str) -> Any:
        command = ["export", *arguments, file, "--url", service.url, "--json"]
        when = ["--from", format_timestamp(began), "--rows", "2", "--key-from", "A_KEY"]
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "A_KEY": token}
        done = forked.run([*command, *when], env=environment, cwd=tmp_path, timeout=60)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    told = await asyncio.to_thread(export, "chat.ndjson", "chatapp")
    lines = (tmp_path / "chat.ndjson").read_text("utf-8").splitlines()
    assert [json.loads(line) for line in lines] == rows["chatapp"]
    assert (told["rows"], told["bytes"]) == (3, (tmp_path / "chat.ndjson").stat().st_size)
    await asyncio.to_thread(export, "texts.csv", "sms")
    (row,) = csv.DictReader((tmp_path / "texts.csv").read_text("utf-8").splitlines())
    assert tuple(row) == COLUMNS
    assert {name: value for name, value in row.items() if value} == {
        name: str(value) for name, value in rows["sms"][0].items()
    }


def _same(record: Any) -> dict[str, Any]:
    """What a row of an export and the record of a message have in common."""
    return {name: record[name] for name in SAME if name in record}
