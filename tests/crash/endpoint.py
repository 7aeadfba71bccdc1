"""A webhook endpoint in a process of its own: what arrives is on record before it is answered, and some answers fail.

`python -m tests.crash.endpoint PORT RECORD SEED`; a further life on the same record goes on with other troubles.
"""

import asyncio
import base64
import hashlib
import hmac
import os
import random
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson
import uvloop
from aiohttp import web

REFUSED_SHARE, LOST_SHARE = 0.01, 0.005
LATEST = 300  # seconds: signatures that are older or younger are refused (C23.4)
KEY = "X-SVC-Idempotency-Key"
KEPT = ("webhook-id", "webhook-timestamp", "webhook-signature", "X-SVC-Signature", "X-SVC-Event", KEY)


@dataclass(frozen=True, slots=True)
class Arrival:
    """One delivery, or call of a journey (`key`), as it came. `faults`: what a receiver would refuse it for."""

    event_id: str
    type: str
    message_id: str | None
    faults: tuple[str, ...] = ()
    key: str = ""


def read_arrivals(record: Path, secret: str) -> list[Arrival]:
    """Everything that arrived, in its order; a line that a kill tore was not answered, and is left out."""
    arrivals = []
    for line in record.read_bytes().splitlines() if record.exists() else ():
        try:
            entry = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        body = orjson.loads(entry["body"])
        faults = [*_faults(secret, entry["headers"], entry["body"].encode(), entry["at"])]
        if (body["id"], body["type"]) != (entry["headers"]["webhook-id"], entry["headers"]["X-SVC-Event"]):
            faults.append("its headers name another event than its body")
        key = entry["headers"].get(KEY, "")
        arrivals.append(Arrival(body["id"], body["type"], body["data"].get("id"), tuple(faults), key))
    return arrivals


def _faults(secret: str, headers: Mapping[str, str], body: bytes, at: float) -> list[str]:
    """What is wrong with the two signatures (C23.4), by the standard library alone."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    name, seconds = headers["webhook-id"], headers["webhook-timestamp"]
    standard = hmac.new(key, f"{name}.{seconds}.".encode() + body, hashlib.sha256).digest()
    ours = hmac.new(key, f"{seconds}.".encode() + body, hashlib.sha256).hexdigest()
    faults = []
    if headers["webhook-signature"] != f"v1,{base64.b64encode(standard).decode()}":
        faults.append("its webhook-signature is wrong")
    if headers["X-SVC-Signature"] != f"t={seconds},v1={ours}":
        faults.append("its X-SVC-Signature is wrong")
    if abs(at - int(seconds)) > LATEST:
        faults.append("it was signed at another time")
    return faults


class Endpoint:
    """Takes deliveries. A line is with the operating system before its answer leaves."""

    def __init__(self, record: Path, seed: int) -> None:
        self._file = os.open(record, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        lived = os.fstat(self._file).st_size
        self._random = random.Random(f"{seed}:{lived}")
        if lived:
            os.write(self._file, b"\n")  # what a kill may have torn ends here

    async def handle(self, request: web.BaseRequest) -> web.Response:
        body = await request.read()
        headers = {name: request.headers.get(name, "") for name in KEPT}
        entry = {"at": time.time(), "headers": headers, "body": body.decode()}
        os.write(self._file, orjson.dumps(entry) + b"\n")
        draw = self._random.random()
        if draw < LOST_SHARE and request.transport is not None:
            request.transport.abort()
        return web.Response(status=503 if draw > 1 - REFUSED_SHARE else 200)


async def serve(port: int, record: Path, seed: int) -> None:
    endpoint = Endpoint(record, seed)
    runner = web.ServerRunner(web.Server(endpoint.handle, access_log=None))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    print("endpoint listens", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
        loop.run(serve(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))
