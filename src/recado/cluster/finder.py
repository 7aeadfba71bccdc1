"""Asks Ray each second where cells are, in a process of its own: `finder ADDRESS`.

Ray ends a process that has lost it. One whose node Ray has no more ends by itself: it would hear of no actor again. The
entry stays, and begins another finder. Over standard input comes a line of
JSON, again when it changes: `{"cells": {NAME: VARIABLE}, "mayMake": …, "end": [NAME…]}`; its end is the end. `mayMake`:
a cell that has no actor gets one. `end`: cells that shall have none. On standard output stand lines of JSON:
`{"loaded": true}`, `{"joined": true, "room": …}`, then `{"places": {NAME: [URL, TROUBLE]}, "ended": [NAME…],
"notEnded": {NAME: KIND}}`, of each cell whose actor answers, of those that have none any more, and of those that Ray
cannot end now; or `{"error": …}`. `room`: some node runs cells. Nobody reads what else this process writes.
"""

import os
import select
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import orjson

LOOK_EVERY: Final = 1.0  # seconds
ASK_IF_JOINED_EVERY: Final = 5.0  # seconds
LONGEST: Final = 1024 * 1024  # bytes


def main(arguments: Sequence[str]) -> int:
    """Ask until standard input ends."""
    said = os.dup(1)
    os.dup2(2, 1)  # what Ray prints is no line of ours

    def say(value: object) -> None:
        os.write(said, orjson.dumps(value) + b"\n")

    from recado.cluster.on_ray import NoRay, RayCells, join, still_joined  # loads Ray: seconds

    say({"loaded": True})

    try:
        join(arguments[0])
    except NoRay as error:
        say({"error": str(error)})
        return 1
    threading.Thread(target=end_when_left_behind, args=(still_joined,), name="still joined", daemon=True).start()
    cells = RayCells()
    say({"joined": True, "room": cells.room()})
    wanted: dict[str, Any] = {"cells": {}, "mayMake": False, "end": []}
    rest = b""
    while True:
        while select.select([0], [], [], LOOK_EVERY)[0]:
            read = os.read(0, 65_536)
            if not read:
                return 0
            *lines, rest = (rest + read).split(b"\n")
            if lines:
                wanted = orjson.loads(lines[-1])
                break
        ended, not_ended = cells.end(wanted["end"])
        places = cells.look(wanted["cells"], may_make=wanted["mayMake"])
        say({"places": places, "ended": ended, "notEnded": not_ended})


def end_when_left_behind(still_joined: Callable[[], bool]) -> None:
    """End this process when Ray has its node no more.

    In a thread of its own: while the head is away the question waits, and actors are asked nevertheless.
    """
    pause = threading.Event().wait
    while True:
        pause(ASK_IF_JOINED_EVERY)
        try:
            joined = still_joined()
        except Exception:  # noqa: BLE001, S112 - Ray has no kind for all; whether it is joined is not known
            continue
        if not joined:
            os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
