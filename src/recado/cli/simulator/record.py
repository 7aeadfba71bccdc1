"""The simulator's own account of every request: what the crash tests believe about who was sent what, and how often.

One JSON line per request, handed to the operating system before the request is answered, and one when it is answered: a
killed process loses none.
"""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from recado.cli.simulator.behaviour import Given


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it was received. `number`: the provider's phone number id; `recipient`: see `recipient_hash`.

    `receipts`: the reports that will follow, in their order; `referenced`: whether they name the sender's id.
    `answered_at`: when the answer was handed over; None while it is open, or lost.
    """

    id: str
    at: datetime
    number: str
    outcome: Given
    idempotency_key: str | None
    recipient: str
    provider_message_id: str | None
    receipts: tuple[str, ...] = ()
    referenced: bool = True
    answered_at: datetime | None = None


class Record:
    """Appends to the file; several lives of the process continue one file."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            os.write(self._file, b"\n")  # a torn last line, after a power cut, must not swallow the next one

    def add(self, request: Request) -> None:
        """Write the line of a request; raises OSError when the disk does not take it whole."""
        self._write(
            {
                "id": request.id,
                "at": request.at,
                "number": request.number,
                "outcome": request.outcome,
                "key": request.idempotency_key,
                "recipient": request.recipient,
                "providerMessageId": request.provider_message_id,
                "receipts": request.receipts,
                "referenced": request.referenced,
            }
        )

    def answered(self, request: Request, at: datetime) -> None:
        """Write that the request is answered now; raises OSError as `add` does."""
        self._write({"answered": request.id, "received": request.at, "at": at})

    def _write(self, entry: dict[str, Any]) -> None:
        line = orjson.dumps(entry) + b"\n"
        if os.write(self._file, line) != len(line):
            raise OSError("the record was not written whole: is the disk full?")

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def read_record(path: Path) -> list[Request]:
    """All requests of the file, in the order in which they were received; torn lines are left out."""
    requests: dict[tuple[str, str], Request] = {}
    for entry in _entries(path):
        if "answered" in entry:
            key = (entry["answered"], entry["received"])
            requests[key] = replace(requests[key], answered_at=datetime.fromisoformat(entry["at"]))
        else:
            requests[entry["id"], entry["at"]] = Request(
                id=entry["id"],
                at=datetime.fromisoformat(entry["at"]),
                number=entry["number"],
                outcome=Given(entry["outcome"]),
                idempotency_key=entry["key"],
                recipient=entry["recipient"],
                provider_message_id=entry["providerMessageId"],
                receipts=tuple(entry["receipts"]),
                referenced=entry["referenced"],
            )
    return list(requests.values())


def recipient_hash(to: str) -> str:
    """Tells recipients apart in the record without naming them."""
    return hashlib.sha256(to.encode()).hexdigest()[:16]


def _entries(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        for line in file:
            try:
                yield orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
