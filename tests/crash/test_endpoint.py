"""The endpoint of the crash rounds tells a genuine delivery from every forged one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.crash.endpoint import Arrival, read_arrivals

from recado.channels.core.signing import signing_key
from recado.channels.webhooks.webhook_signing import new_secret, signed_lines

SECRET, NOW = new_secret(bytes), 1_795_228_093
BODY = '{"id":"evt_1","type":"message.sent","data":{"id":"msg_1"}}'

Entry = dict[str, Any]


def entry() -> Entry:
    lines = signed_lines(
        [signing_key(SECRET)],
        BODY.encode(),
        seconds=NOW,
        event_id="evt_1",
        event="message.sent",
        delivery_id="dlv_1",
        attempt=1,
    )
    headers = dict(line.split(": ", 1) for line in lines.decode().splitlines() if line)
    return {"at": NOW + 0.5, "headers": headers, "body": BODY}


def with_header(name: str, value: str) -> Callable[[Entry], Entry]:
    return lambda it: {**it, "headers": {**it["headers"], name: value}}


FORGERIES: dict[str, Callable[[Entry], Entry]] = {
    "its webhook-signature is wrong": with_header("webhook-signature", "v1,AAAA"),
    "its X-SVC-Signature is wrong": lambda it: {**it, "body": it["body"].replace("msg_1", "msg_2")},
    "it was signed at another time": lambda it: {**it, "at": NOW + 301},
    "its headers name another event": with_header("X-SVC-Event", "message.read"),
}


def recorded(folder: Path, *lines: bytes) -> list[Arrival]:
    record = folder / "arrived.jsonl"
    record.write_bytes(b"\n".join(lines))
    return read_arrivals(record, SECRET)


def test_a_genuine_delivery_has_no_fault(tmp_path: Path) -> None:
    assert recorded(tmp_path, orjson.dumps(entry())) == [Arrival("evt_1", "message.sent", "msg_1")]


@pytest.mark.parametrize("fault", FORGERIES)
def test_a_forged_delivery_is_told(fault: str, tmp_path: Path) -> None:
    (arrival,) = recorded(tmp_path, orjson.dumps(FORGERIES[fault](entry())))

    assert any(fault in found for found in arrival.faults), arrival.faults


def test_a_line_that_a_kill_tore_is_left_out(tmp_path: Path) -> None:
    assert len(recorded(tmp_path, b'{"at": 17', b"", orjson.dumps(entry()))) == 1
