"""The simulator's own account of every request: what the crash tests believe about who was sent what, and how often.

One JSON line per request, handed to the operating system before the request is answered: a killed process loses none.
"""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import orjson

from recado.cli.simulator.behaviour import Given


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it was received. `number`: the provider's phone number id; `recipient`: see `recipient_hash`."""

    id: str
    at: datetime
    number: str
    outcome: Given
    idempotency_key: str | None
    recipient: str
    provider_message_id: str | None


class Record:
    """Appends to the file; several lives of the process continue one file."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            os.write(self._file, b"\n")  # a torn last line, after a power cut, must not swallow the next one

    def add(self, request: Request) -> None:
        """Write one line; raises OSError when the disk does not take it whole."""
        line = (
            orjson.dumps(
                {
                    "id": request.id,
                    "at": request.at,
                    "number": request.number,
                    "outcome": request.outcome,
                    "key": request.idempotency_key,
                    "recipient": request.recipient,
                    "providerMessageId": request.provider_message_id,
                }
            )
            + b"\n"
        )
        if os.write(self._file, line) != len(line):
            raise OSError("the record was not written whole: is the disk full?")

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def read_record(path: Path) -> list[Request]:
    """All requests of the file, in the order in which they were received; torn lines are left out."""
    return list(_requests(path))


def recipient_hash(to: str) -> str:
    """Tells recipients apart in the record without naming them."""
    return hashlib.sha256(to.encode()).hexdigest()[:16]


def _requests(path: Path) -> Iterator[Request]:
    with path.open("rb") as file:
        for line in file:
            try:
                entry = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            yield Request(
                id=entry["id"],
                at=datetime.fromisoformat(entry["at"]),
                number=entry["number"],
                outcome=Given(entry["outcome"]),
                idempotency_key=entry["key"],
                recipient=entry["recipient"],
                provider_message_id=entry["providerMessageId"],
            )
