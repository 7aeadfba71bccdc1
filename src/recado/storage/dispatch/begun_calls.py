"""The file of begun calls: which calls to providers this process has begun and ended, known after it was killed (C32).

Notes of fixed size in a ring, mapped into memory: writing one costs no call to the system, and the pages belong to the
machine, so that they outlive the process. After a crash of the machine nothing is concluded from them.
"""

import mmap
import os
import struct
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import structlog

from recado.domain.dispatch.leases import endless

log = structlog.get_logger()

NAME = "begun-calls"
NOTES = 65_536  # 4.5 MiB: calls in flight, and the last ones that ended
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

_MAGIC = b"recado calls 2"
_HEADER = struct.Struct("16s40sqq")  # magic, boot, epoch, taken at
_FORGOTTEN, _FENCED, _UNNOTED = 80, 88, 89  # latest moment in a note written over; both flags: one byte
_NEXT = 96  # the word in which the next note begins, if that is free: written after each note
_FIRST = 128
_NOTE = struct.Struct("qq28s28s")  # departure, negative once the call has ended; its claim; organization; message
_WHOSE = struct.Struct("q28s28s")
_MOMENT = struct.Struct("q")  # native: read and written in one piece, as the items of `_words` are
_FIRST_WORD, _FORGOTTEN_WORD, _NEXT_WORD, _NOTE_WORDS = (
    _FIRST // _MOMENT.size,
    _FORGOTTEN // _MOMENT.size,
    _NEXT // _MOMENT.size,
    _NOTE.size // _MOMENT.size,
)
_NONE = (None, 0, -1)  # of a call that is not under way
_NEVER = (0, 0)
_KEPT = 1_024  # calls of which is known where their notes are, before those that ended are let go
_TRIES = range(64)  # places of the ring that are looked at for one that is free

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class FormerCalls:
    """What the owner before noted.

    `begun`: by message, the later moment of its last call's claim and departure, and its departure. `forgotten_until`:
    notes of claims up to it may be missing. Neither trusts a clock: a note names the very claim whose call it tells of.
    """

    epoch: int
    begun: dict[str, tuple[datetime, datetime]]
    forgotten_until: datetime

    def never_began(self, message_id: str, claimed_at: datetime) -> bool:
        """Whether it is certain that no call began for this claim: its note would be here, and the notes of its message
        are of claims before.

        `claimed_at`: as the table has it. Who began to sort out claims before us may have put the departure there.
        """
        return self.began_at(message_id, claimed_at) is None and claimed_at > self.forgotten_until

    def began_at(self, message_id: str, claimed_at: datetime) -> datetime | None:
        """When the call for this claim, or for a later one of its message, began; None where no note tells of one."""
        until, departed_at = self.begun.get(message_id, (None, None))
        return None if until is None or until < claimed_at else departed_at


def boot_id() -> str | None:
    """Names the run of this machine's kernel; None where it has no name."""
    try:
        return BOOT_ID.read_text().strip() or None
    except OSError:
        return None


class BegunCalls:
    """The calls of this process, and what the owner before left. Without a folder or a boot's name nothing is kept.

    Each file belongs to one ownership of the numbers, named by its epoch and the moment at which it was taken.
    """

    def __init__(self, folder: Path | None, *, boot: str | None = None, notes: int = NOTES, name: str = NAME) -> None:
        """`name`: of the file."""
        self._path = None if folder is None or boot is None else folder / name
        self._boot = (boot or "").encode()
        self._notes = notes
        self._map: mmap.mmap | None = None
        self._words: memoryview[int] | None = None  # of the file, eight bytes each
        self._at = _FIRST_WORD  # the place of the next note, if that is free
        self._last = _FIRST_WORD + (notes - 1) * _NOTE_WORDS
        # By message: its departure, the same in microseconds, and the place of its note or -1.
        self._calls: dict[str, tuple[datetime, int, int]] = {}
        self._overtaken = False
        self.lease = endless()

    def beside(self, epoch: int) -> "BegunCalls":
        """Those of a process with this epoch beside an owner, in the same folder, in a file of their own."""
        folder = None if self._path is None else self._path.parent
        return BegunCalls(folder, boot=self._boot.decode(), notes=self._notes, name=f"{NAME}-{epoch}")

    def open_beside(self, epoch: int, taken_at: datetime) -> None:
        """As `open`, of a process beside the owner: the owner's file stays."""
        if self._path is not None:
            self._path = self._path.with_name(f"{NAME}-{epoch}")
        self.open(epoch, taken_at)

    def seen(self) -> "SeenCalls | None":
        """The calls as they are now; None where the file is not here."""
        if self._path is None:
            return None
        try:
            with self._path.open("rb") as file:
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            return None
        return SeenCalls(content)

    def remove(self) -> None:
        """Remove the file: nothing of it is needed any more."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)

    # The owner before -----------------------------------------------------------------------------------------------

    def fence(self, epoch: int, taken_at: datetime) -> "Fenced | None":
        """Let the owner of this epoch begin no more calls, dead or alive; None when its file is not here.

        One that began at this very moment has written its note by the time that another process can read it.
        """
        if self._path is None:
            return None
        try:
            with self._path.open("r+b") as file:
                content = mmap.mmap(file.fileno(), 0)
        except (OSError, ValueError):
            return None
        if (
            len(content) < _FIRST
            or _HEADER.unpack_from(content) != _header(self._boot, epoch, taken_at)
            or content[_UNNOTED]
        ):
            content.close()
            return None
        content[_FENCED] = 1
        return Fenced(content, epoch)

    # Ours -----------------------------------------------------------------------------------------------------------

    def open(self, epoch: int, taken_at: datetime) -> None:
        """Begin the file of this ownership, in the place of the one before."""
        if self._path is None:
            return
        new = self._path.with_suffix(".new")
        size = _FIRST + self._notes * _NOTE.size
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            new.unlink(missing_ok=True)
            descriptor = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                os.posix_fallocate(descriptor, 0, size)  # a hole could find no room on a full disk: that ends a process
                content = mmap.mmap(descriptor, size)
            finally:
                os.close(descriptor)
            _HEADER.pack_into(content, 0, *_header(self._boot, epoch, taken_at))
            new.replace(self._path)
        except OSError as error:
            log.warning("begun_calls_not_kept", error=type(error).__name__)
            for each in (new, self._path):  # half a file would keep what is left of a full disk
                with suppress(OSError):
                    each.unlink(missing_ok=True)
            return
        self._map, self._words = content, memoryview(content).cast("q")

    def may_begin(self) -> bool:
        """Whether a call could begin now; nothing is noted."""
        fenced = self._map is not None and self._map[_FENCED]
        return not (self._overtaken or fenced) and self.lease.holds()

    def began(self, organization_id: str, message_id: str, claimed_at: datetime, departed_at: datetime) -> bool:
        """Note a call that is about to begin; False when it must not: another process owns the numbers, or may do so.

        `claimed_at`: the moment of its claim, as the table has it.
        """
        if self._overtaken or not self.lease.holds():
            return False
        content, words = self._map, self._words
        if content is None or words is None:
            self._calls[message_id] = (departed_at, 0, -1)
            return True
        moment = _microseconds(departed_at)
        at = self._place(words)
        self._calls[message_id] = (departed_at, moment, at)
        if at < 0:
            content[_UNNOTED] = 1  # from now on nothing can be concluded from a note that is missing
        else:  # the moment last: a note that has one is whole
            ids = organization_id.encode(), message_id.encode()
            _WHOSE.pack_into(content, (at + 1) * _MOMENT.size, _microseconds(claimed_at), *ids)
            words[at] = moment
            words[_NEXT_WORD] = self._at
        if content[_FENCED]:  # looked at after the note was written: anyone who fences reads the notes after that
            del self._calls[message_id]
            if at >= 0:
                words[at] = 0  # it does not begin: the next owner may send it
            return False
        return True

    def overtaken(self) -> None:
        """Begin no more calls: another process owns the numbers. It may run elsewhere, and not reach this file."""
        self._overtaken = True

    def ended(self, message_id: str) -> None:
        """The call is over, its outcome committed or not to be recorded. Its note stays until its place is needed."""
        _, moment, at = self._calls.pop(message_id, _NONE)
        if at >= 0 and self._words is not None:
            self._words[at] = -moment

    def moment_of(self, message_id: str) -> datetime | None:
        """When the call for this message began, while its outcome is not committed."""
        call = self._calls.get(message_id)
        return None if call is None else call[0]

    def close(self) -> None:
        """Keep the file, write nothing more, and begin nothing: a call without a note would be taken for none."""
        self._overtaken = True
        if self._map is not None and self._words is not None:
            self._words.release()
            self._map.close()
            self._map = self._words = None

    def _place(self, words: "memoryview[int]") -> int:
        """The word in which the next note begins: over the oldest of a call that has ended; -1 when none is nearby."""
        for _ in _TRIES:
            at = self._at
            self._at = at + _NOTE_WORDS if at < self._last else _FIRST_WORD
            moment = words[at]
            if moment > 0:
                continue  # under way
            if moment:
                words[_FORGOTTEN_WORD] = max(-moment, words[at + 1], words[_FORGOTTEN_WORD])
            words[at] = 0
            return at
        return -1


class Fenced:
    """The file of an owner that begins no more calls."""

    def __init__(self, content: mmap.mmap, epoch: int) -> None:
        self._content = content
        self._epoch = epoch

    def read(self) -> FormerCalls | None:
        """Its notes; None when some are missing. Closes the file."""
        content = bytes(self._content)
        self._content.close()
        if content[_UNNOTED]:
            return None
        begun: dict[str, tuple[int, int]] = {}
        end = _FIRST + (len(content) - _FIRST) // _NOTE.size * _NOTE.size
        for moment, claim, _, message in _NOTE.iter_unpack(content[_FIRST:end]):
            if moment:  # in the order of the ring, which is not that of the calls
                name = message.rstrip(b"\0").decode("ascii", "replace")
                departure = abs(moment)
                begun[name] = max((max(claim, departure), departure), begun.get(name, _NEVER))
        (forgotten,) = _MOMENT.unpack_from(content, _FORGOTTEN)
        moments = {name: (_moment(until), _moment(departure)) for name, (until, departure) in begun.items()}
        return FormerCalls(self._epoch, moments, _moment(forgotten))


class SeenCalls:
    """The calls of a process that runs, as another sees them in its file.

    Notes are read once each, in the order of the ring, when something is asked; those of calls that ended are let go.
    """

    def __init__(self, content: mmap.mmap) -> None:
        self._content = content
        self._words = memoryview(content).cast("q")
        self._end = _FIRST_WORD + (len(content) - _FIRST) // _NOTE.size * _NOTE_WORDS
        self._at = _FIRST_WORD
        self._places: dict[str, int] = {}  # by message: the word in which its last note begins
        self._most = _KEPT

    def __len__(self) -> int:
        """How many are under way."""
        return sum(moment > 0 for moment in self._words[_FIRST_WORD : self._end : _NOTE_WORDS])

    def moment_of(self, message_id: str) -> datetime | None:
        """When the call for this message began, while its outcome is not committed."""
        self._read()
        at = self._places.get(message_id)
        if at is None:
            return None
        moment = self._words[at]
        return _moment(moment) if moment > 0 and self._name(at) == message_id else None

    def close(self) -> None:
        """Let the file go; safe to call twice."""
        self._words.release()
        self._content.close()

    def _read(self) -> None:
        """The notes since the last look. Those that were written over meanwhile are of calls that have ended."""
        until = self._words[_NEXT_WORD] or _FIRST_WORD
        while self._at != until:
            if self._words[self._at] > 0:
                self._places[self._name(self._at)] = self._at
            self._at += _NOTE_WORDS
            if self._at >= self._end:
                self._at = _FIRST_WORD
        if len(self._places) > self._most:
            self._places = {name: at for name, at in self._places.items() if self._words[at] > 0}
            self._most = 2 * len(self._places) + _KEPT

    def _name(self, at: int) -> str:
        _, _, _, message = _NOTE.unpack_from(self._content, at * _MOMENT.size)
        return str(message.rstrip(b"\0").decode("ascii", "replace"))


def _microseconds(moment: datetime) -> int:
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _moment(microseconds: int) -> datetime:
    return _EPOCH + microseconds * _MICROSECOND


def _header(boot: bytes, epoch: int, taken_at: datetime) -> tuple[bytes, bytes, int, int]:
    return _MAGIC.ljust(16, b"\0"), boot.ljust(40, b"\0")[:40], epoch, (taken_at - _EPOCH) // _MICROSECOND
