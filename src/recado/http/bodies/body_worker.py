"""The process that reads large bodies for the service: one at a time, within a limit of memory, until its input ends.

Input: frames of a pickled `Job`, or `ItemsJob`, and a body. Output for each: `WorkerAnswer`, pickled, and the pieces
that it counts. A frame is its length (8 bytes, big-endian) and its content. What it complains of while it starts is
logged by the service; after that nothing is: an error's text may hold what a caller sent.
"""

import contextlib
import os
import pickle
import resource
import signal
import sys
from pathlib import Path
from typing import BinaryIO, Final

from recado.http.bodies.body_reading import LENGTH, BodyOutcome, ItemsJob, Job, WorkerAnswer, read, read_items

# Bytes of address space that reading one body may take beside the program itself: the parser asks for twelve times the
# body, of which it uses little.
MEMORY_LIMIT: Final = 2 * 1024 * 1024 * 1024
_KEPT: Final = 256 * 1024 * 1024  # bytes; a process that holds more after its work makes way for a small one
_NICENESS: Final = 10  # small requests come first
_PAGE: Final = resource.getpagesize()


def main() -> None:
    """Read bodies from standard input until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who stops the service stops this process by closing its input
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.nice(_NICENESS)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = _held(0) + MEMORY_LIMIT
    resource.setrlimit(resource.RLIMIT_AS, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))
    incoming, outgoing = sys.stdin.buffer, sys.stdout.buffer
    _fall_silent()
    while (job := _frame(incoming)) is not None:
        body = _frame(incoming)
        if body is None:
            return
        last = _answer(pickle.loads(job), body, outgoing)  # noqa: S301 - written by the service
        del body
        if last:
            return


def _fall_silent() -> None:
    """Give up standard error, and all that is written to it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stderr.fileno())
    os.close(nowhere)


def _answer(job: Job | ItemsJob, body: bytes, outgoing: BinaryIO) -> bool:
    outcome: BodyOutcome | None = None
    pieces: list[bytes] = []
    with contextlib.suppress(MemoryError):
        outcome, pieces = read_items(job, body) if isinstance(job, ItemsJob) else read(job, body)
    last = outcome is None or _held(1) > _KEPT
    for frame in (pickle.dumps(WorkerAnswer(outcome, len(pieces), last)), *pieces):
        outgoing.write(len(frame).to_bytes(LENGTH, "big"))
        outgoing.write(frame)
    outgoing.flush()
    return last


def _frame(incoming: BinaryIO) -> bytes | None:
    length = incoming.read(LENGTH)
    if len(length) < LENGTH:
        return None
    size = int.from_bytes(length, "big")
    content = incoming.read(size)
    return content if len(content) == size else None


def _held(column: int) -> int:
    """Bytes of address space (0) or of memory (1) that this process has."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[column]) * _PAGE


if __name__ == "__main__":
    main()
