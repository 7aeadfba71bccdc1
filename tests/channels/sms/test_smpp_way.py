"""An SMS leaves over SMPP, to the simulated SMS centre, and its receipt comes back (C29.1)."""

import re
import signal
from pathlib import Path
from typing import Any

import orjson
from tests.program import Api, Program, Service, free_port, running
from tests.waiting import until


async def test_an_sms_leaves_over_smpp_and_is_delivered_by_its_receipt(tmp_path: Path) -> None:
    record, port = tmp_path / "record.jsonl", free_port()
    simulator = Program(
        tmp_path, "simulator", "simulator", "--listen", f"127.0.0.1:{free_port()}", "--record", str(record),
        "--secret", "any", "--token", "pass", "--smpp", f"127.0.0.1:{port}",
    )  # fmt: skip
    service = Service(
        tmp_path, BILLING_ENABLED="false", ADAPTER_SMS="smpp", SMPP_URL=f"smpp://127.0.0.1:{port}",
        SMPP_SYSTEM_ID="recado", SMPP_PASSWORD="pass", SMPP_SOURCE="28282",
    )  # fmt: skip
    simulator.spawn()
    try:
        await until(lambda: re.search("listens on", simulator.output.read_text()), "the simulator listens")
        async with running(service), Api(service.url, service.key("live")) as api:
            body = {"to": "+5511987654321", "text": "Olá! " + "ã" * 70, "route": "otp"}
            sent = await api.call("POST", "/v2/sms/messages", body)

            read: dict[str, Any] = {}

            async def delivered() -> bool:
                read.update(await api.call("GET", f"/v2/sms/messages/{sent['id']}"))
                return bool(read["status"] == "delivered" and read["provider"] == "gateway_a")

            await until(delivered, "its receipt has come", every=0.1)
            assert read["providerReceipt"]["status"] == "DELIVRD"
    finally:
        simulator.end(signal.SIGTERM)
    rows = [orjson.loads(line) for line in record.read_bytes().splitlines()]
    assert sent["segments"] == 2
    assert [each["number"] for each in rows if each.get("outcome") == "accepted"] == ["28282"] * 2
