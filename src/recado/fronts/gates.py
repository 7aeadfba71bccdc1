"""What closes the gates of messages, said to processes that send: pauses of batches and journeys, and withdrawals.

Each change is repeated there as it was made here, on a copy that was the same before.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from recado.fronts import pickled
from recado.services.dispatch.records import Records

PART: Final = 1 << 18
"""Characters of a frame: a change of what closes gates may be more than a frame holds."""
OF_A_PART: Final = 250
"""Entries of a snapshot in one part, which is less than a frame holds even where each has all the pauses it can."""
_OWNERS: Final = "owners"
_WITHDRAWING: Final = "withdrawing"


def follow(records: Records, say: Callable[[str], None]) -> None:
    """Have each change of them said from now on."""

    def changed(which: str, method: str, *given: Any, **named: Any) -> None:
        say(pickled.text((which, method, given, named)))

    records.owners.told = partial(changed, _OWNERS)
    records.withdrawing.told = partial(changed, _WITHDRAWING)


def snapshot(records: Records) -> Iterator[tuple[str, bool]]:
    """All that is known now, in parts that are made one by one, whatever changes meanwhile; and whether more follow."""
    state = (*records.owners.state, records.withdrawing.state)
    return _parts_of([each.items() if isinstance(each, dict) else each for each in state])


def parts(said: str) -> Iterator[tuple[str, bool]]:
    """A change, in parts of which each goes into a frame; and whether more follow."""
    for start in range(0, len(said), PART):
        yield said[start : start + PART], start + PART < len(said)


class FollowedGates:
    """Knows in `records` what another process says. What changed after a snapshot was taken comes amid its parts."""

    def __init__(self) -> None:
        self._came: list[str] = []  # of a change
        self._state: tuple[Any, ...] | None = None  # what came of a snapshot
        self._since: list[str] = []  # changes since that was taken

    def change(self, records: Records | None, part: str, more: bool) -> None:
        """A part of a change came. `records` None: nothing is known yet, and it is in the snapshot that comes."""
        self._came.append(part)
        if more:
            return
        said, self._came = "".join(self._came), []
        if self._state is not None:
            self._since.append(said)
        elif records is not None:
            _repeat(records, said)

    def snapshot(self, records: Records, part: str, more: bool) -> None:
        """A part of a snapshot came. With the last one all of it is known, and what was changed since."""
        if self._state is None:
            self._state = set(), {}, set(), {}, {}
        if more:
            place, entries = pickled.value(part)
            self._state[place].update(entries)
            return
        *owners, withdrawing = self._state
        records.owners.restore((owners[0], owners[1], owners[2], owners[3]))
        records.withdrawing.restore(withdrawing)
        since, self._state, self._since = self._since, None, []
        for said in since:
            _repeat(records, said)


def _parts_of(state: list[Any]) -> Iterator[tuple[str, bool]]:
    for part in pickled.parts_of(state, OF_A_PART):
        yield part, True
    yield "", False


def _repeat(records: Records, said: str) -> None:
    which, method, given, named = pickled.value(said)
    getattr(records.owners if which == _OWNERS else records.withdrawing, method)(*given, **named)
