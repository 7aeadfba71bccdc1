"""Hashes bytes while they come: all of them, and each part that a bucket takes (C30.4). Pure."""

from hashlib import sha256


class PartHashes:
    """SHA-256. `size`: bytes of a part; None: nobody asks for parts."""

    __slots__ = ("_ended", "_left", "_part", "_size", "_whole")

    def __init__(self, size: int | None) -> None:
        self._size = size
        self._whole = sha256()
        self._part = self._whole  # until the first one ends, both have the same bytes
        self._left = size or 0  # bytes of the part that is open
        self._ended = list[str]()

    def update(self, step: bytes | memoryview) -> None:
        if self._size is None:
            self._whole.update(step)
            return
        rest = memoryview(step)
        while rest:
            some, rest = rest[: self._left], rest[self._left :]
            self._whole.update(some)
            if self._part is not self._whole:
                self._part.update(some)
            self._left -= len(some)
            if not self._left:
                self._ended.append(self._part.hexdigest())
                self._part, self._left = sha256(), self._size

    def digest(self) -> bytes:
        """Of all that came."""
        return self._whole.digest()

    def parts(self) -> tuple[str, ...]:
        """In hexadecimal digits, each of its size but the last one; none where nobody asks."""
        if self._size is None or self._left == self._size:
            return tuple(self._ended)
        return (*self._ended, self._part.hexdigest())
