"""The table in which the processes of a service keep their token buckets together: a limit holds over all (C6.1).

It is memory without a name: children inherit its descriptor. Its slots stand in groups, and each group has a lock,
which the kernel frees when its holder is killed (docs/decisions/0083).

A bucket that has no slot is full, so only those need one that are not. Where a group is crowded, a bucket that is full
again gives way; where there is none, the one that was used longest ago: a bucket that is not full is lost only after
eight others of its group were used later. What is lost begins full, so a crowd never makes anybody be refused; who has
some ten thousand addresses, and uses all of them within the seconds in which one fills, may get more for each.
Credentials and organizations have one part of the table, addresses the other: strangers take no slot of a credential's.

A process may be killed between any two of its writes, and a slot is written in an order in which that does no harm. The
bucket then has what it had after its last use, without what has flowed in since: never too much, and as much as an
empty one after the same time. A slot that was about to change its bucket is free: both buckets begin full.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import select
import struct
from collections.abc import Callable
from hashlib import blake2b
from typing import Final, Self

import structlog

GROUPS: Final = 16_384  # in both parts: 131,072 slots, 5 MiB
SLOTS: Final = 8  # of a group
SALT_BYTES: Final = 32

_WORD: Final = 8  # bytes
_MUTEX_WORDS: Final = 8  # a pthread_mutex_t has 40 bytes, 48 on ARM
_KEY, _FULL_AT, _AT, _TOKENS = range(4)  # the words of a slot; a free one has the key 0
_SLOT_WORDS: Final = 4
_GROUP_WORDS: Final = _MUTEX_WORDS + SLOTS * _SLOT_WORDS
_GROUP_BYTES: Final = _GROUP_WORDS * _WORD
_DIGEST: Final = struct.Struct("=QQ")

_PROCESS_SHARED: Final = 1  # PTHREAD_PROCESS_SHARED
_ROBUST: Final = 1  # PTHREAD_MUTEX_ROBUST
_ATTRIBUTE_BYTES: Final = 64

# Who holds a lock has it for microseconds. It may lose its core meanwhile, for some milliseconds; who has it for longer
# stands still, as by SIGSTOP, and may never go on.
_YIELDS: Final = 50
_PAUSES: Final = 250
_PAUSE_SECONDS: Final = 0.001

_log = structlog.get_logger(__name__)


class SharedBuckets:
    """The table. `descriptor`: what a child inherits (`pass_fds`), together with `salt`, which nobody else may know."""

    def __init__(self, descriptor: int, salt: bytes) -> None:
        """`descriptor` of a table that is made; it stays the caller's, and is used here only."""
        self.descriptor = descriptor
        self.salt = salt
        size = os.fstat(descriptor).st_size
        if not size or size % (2 * _GROUP_BYTES):
            raise ValueError(f"not a table of buckets: it has {size} bytes")
        self._part = size // _GROUP_BYTES // 2  # groups
        memory = mmap.mmap(descriptor, size)  # unmapped when nothing refers to it any more, as its locks' addresses do
        self.words = memoryview(memory).cast("Q")
        self.numbers = memoryview(memory).cast("d")
        self._memory = ctypes.c_char.from_buffer(memory)
        self._address = ctypes.addressof(self._memory)
        # It never lets another thread have the interpreter: who holds a lock would have to wait for that thread.
        library = ctypes.PyDLL(None)
        self.try_lock = library.pthread_mutex_trylock
        self.unlock = library.pthread_mutex_unlock
        self._mend = library.pthread_mutex_consistent
        for function in (self.try_lock, self.unlock, self._mend):
            function.argtypes = [ctypes.c_void_p]
        self.stuck: set[int] = set()  # locks of those who stand still

    @classmethod
    def make(cls, *, groups: int = GROUPS, random_bytes: Callable[[int], bytes] = os.urandom) -> Self:
        """A new table, all of whose buckets are full; `groups`: an even number. Its maker closes it."""
        descriptor = os.memfd_create("recado-limits", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(descriptor, groups * _GROUP_BYTES)
            # Who reads beyond the end of a file that shrank is killed.
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
            made = cls(descriptor, random_bytes(SALT_BYTES))
            made._make_locks(groups)
        except BaseException:
            os.close(descriptor)
            raise
        return made

    @classmethod
    def at(cls, descriptor: int, salt: bytes) -> Self:
        """The table of another process, by what that one gave. Raises ValueError where there is none."""
        return cls(descriptor, salt)

    def close(self) -> None:
        """No more children; safe to call twice. Buckets that are in use may be used on."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def place(self, key: tuple[str, str], *, stranger: bool) -> "SlotOfBucket":
        """The place of the bucket that `key` names. `stranger`: its caller is known by an address only."""
        name = "\0".join(key).encode("utf-8", "surrogatepass")
        digest, chosen = _DIGEST.unpack(blake2b(name, digest_size=_DIGEST.size, key=self.salt).digest())
        group = chosen % self._part + (self._part if stranger else 0)
        return SlotOfBucket(self, group, digest or 1)

    def address_of(self, group: int) -> int:
        """Where the lock of a group is."""
        return self._address + group * _GROUP_BYTES

    def wait(self, lock: int, code: int) -> bool:
        """Get a lock of which the first try ended with `code`; False where its holder stands still."""
        turn = 0
        while code == errno.EBUSY and lock not in self.stuck and turn < _YIELDS + _PAUSES:
            if turn < _YIELDS:
                os.sched_yield()
            else:
                select.select((), (), (), _PAUSE_SECONDS)
            turn += 1
            code = self.try_lock(lock)
        if code == errno.EOWNERDEAD:  # what it wrote is in order, whatever it had not written yet
            code = self._mend(lock)
        if not code:
            self.stuck.discard(lock)
            return True
        if lock not in self.stuck:
            self.stuck.add(lock)
            _log.warning("limits_not_shared", error=errno.errorcode.get(code, str(code)))
        return False

    def _make_locks(self, groups: int) -> None:
        library = ctypes.CDLL(None)
        attributes = ctypes.create_string_buffer(_ATTRIBUTE_BYTES)
        _check(library.pthread_mutexattr_init(attributes))
        _check(library.pthread_mutexattr_setpshared(attributes, _PROCESS_SHARED))
        _check(library.pthread_mutexattr_setrobust(attributes, _ROBUST))
        for group in range(groups):
            _check(library.pthread_mutex_init(ctypes.c_void_p(self.address_of(group)), attributes))
        library.pthread_mutexattr_destroy(attributes)


class SlotOfBucket:
    """Of one bucket in the table: its group, and the slot that it had when it was last looked for."""

    __slots__ = ("_first", "_key", "_last", "_lock", "_numbers", "_slot", "_stuck", "_table", "_try_lock", "_words")

    def __init__(self, table: SharedBuckets, group: int, key: int) -> None:
        self._table = table
        self._lock = table.address_of(group)
        self._try_lock = table.try_lock
        self._stuck = table.stuck
        self._words = table.words
        self._numbers = table.numbers
        self._key = key
        self._slot = self._first = group * _GROUP_WORDS + _MUTEX_WORDS
        self._last = self._first + SLOTS * _SLOT_WORDS

    def hold(self) -> bool:
        """Keep other processes from the bucket until `release`; False where one that stands still has it."""
        code = self._try_lock(self._lock)
        return not (code or self._stuck) or self._table.wait(self._lock, code)

    def release(self) -> None:
        """Let others have it."""
        self._table.unlock(self._lock)

    def read(self) -> tuple[float, float] | None:
        """Tokens, and the moment when there were so many; None: the bucket is full. For who holds it."""
        words, key, slot = self._words, self._key, self._slot
        if words[slot] != key:
            for slot in range(self._first, self._last, _SLOT_WORDS):
                if words[slot] == key:
                    break
            else:
                return None
            self._slot = slot
        return self._numbers[slot + _TOKENS], self._numbers[slot + _AT]

    def write(self, tokens: float, at: float, full_at: float, now: float) -> None:
        """Keep what the bucket has, until others need its slot more. For who holds it and has read it."""
        slot = self._slot
        new = self._words[slot] != self._key
        if new:
            slot = self._slot = self._free(now)
            self._words[slot] = 0
        numbers = self._numbers
        numbers[slot + _FULL_AT] = full_at
        numbers[slot + _AT] = at
        numbers[slot + _TOKENS] = tokens
        if new:
            self._words[slot] = self._key

    def _free(self, now: float) -> int:
        """The slot that is given away: a free one, one of a bucket that is full again, or that was used longest ago."""
        slots = range(self._first, self._last, _SLOT_WORDS)
        numbers = self._numbers
        return min(
            slots,
            key=lambda slot: (
                self._words[slot] != 0,
                numbers[slot + _FULL_AT] > now,
                numbers[slot + _AT],
            ),
        )


def _check(code: int) -> None:
    if code:
        raise OSError(code, os.strerror(code))
