"""The simulator's own account of every request: what the crash tests believe about who was sent what, and how often.

One JSON line per request, handed to the operating system before the request is answered, one when it is answered, and
one for every batch of receipts that was taken: a killed process loses none, and its next life sends what is left.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import orjson

from recado.simulator.behaviour import Given

Protocol = Literal["bridge", "cloud", "smpp", "smtp"]
Mark = tuple[str, int]
"""One receipt: the provider's message id, and its place among the message's receipts."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it was received. `number`: the provider's phone number id, of an e-mail the domain of its
    sender; `recipient`: see `recipient_hash`.

    `receipts`: the reports that will follow, in their order, each `delays` seconds after `at`, to the address
    `callback`; `code`: the reason of a failure among them; `referenced`: whether they name the sender's id.
    `answered_at`: when the answer was handed over; None while it is open, or lost. `part` of `parts`: which part of a
    long message it is.
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
    delays: tuple[float, ...] = ()
    code: str | None = None
    callback: str | None = None
    protocol: Protocol = "bridge"
    part: int = 1
    parts: int = 1


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
                "delays": request.delays,
                "code": request.code,
                "callback": request.callback,
                "protocol": request.protocol,
                "part": request.part,
                "parts": request.parts,
            }
        )

    def answered(self, request: Request, at: datetime) -> None:
        """Write that the request is answered now; raises OSError as `add` does."""
        self._write({"answered": request.id, "received": request.at, "at": at})

    def taken(self, marks: Sequence[Mark]) -> None:
        """Write that the service has those receipts; raises OSError as `add` does."""
        if marks:
            self._write({"taken": marks})

    def note(self, kind: str, value: Mapping[str, Any]) -> None:
        """Write what the provider knows beside its requests; the last note of a kind and `id` counts."""
        self._write({"note": kind, "value": value})

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
        if "taken" in entry or "note" in entry:
            continue
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
                delays=tuple(entry.get("delays", ())),
                code=entry.get("code"),
                callback=entry.get("callback"),
                protocol=entry.get("protocol", "bridge"),
                part=entry.get("part", 1),
                parts=entry.get("parts", 1),
            )
    return list(requests.values())


def unsent(path: Path) -> list[tuple[Request, int]]:
    """The receipts that nobody has taken: their requests, and their places."""
    taken = {(mark[0], mark[1]) for entry in _entries(path) for mark in entry.get("taken", ())}
    return [
        (request, place)
        for request in read_record(path)
        if request.provider_message_id is not None
        for place in range(len(request.delays))
        if (request.provider_message_id, place) not in taken
    ]


def notes(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """What was noted, oldest first."""
    return [(entry["note"], entry["value"]) for entry in _entries(path) if "note" in entry]


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
