"""Passwords as they are stored: scrypt with a salt each (C24.3).

One derivation takes 32 MiB and about a tenth of a second of a processor: it runs in a thread of low priority, and one
processor is left to everybody else. Callers take turns: who signs in again and again waits for itself. Anyone who has
no password costs as much as anyone who has one, so that time tells nothing.
"""

import asyncio
import contextlib
import hmac
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from recado.domain.core.base64url import base64url, from_base64url
from recado.domain.core.errors import Unavailable
from recado.storage.core.shares.callers import working_for
from recado.storage.core.shares.fair_places import FairPlaces

_LOG_N = 15
_R = 8
_P = 1
_SALT_BYTES = 16
_HASH_BYTES = 32
_FORM = f"scrypt.{_LOG_N}.{_R}.{_P}"

AT_ONCE = max(1, (os.cpu_count() or 1) - 1)
MOST_WAITING = 100  # derivations in all
MOST_OF_CALLER = 20
_NICENESS = 10


class Passwords:
    """Makes and checks password hashes, `scrypt.15.8.1.<salt>.<hash>`."""

    def __init__(self, random_bytes: Callable[[int], bytes]) -> None:
        """`random_bytes` must be unpredictable: it makes the salts."""
        self._random_bytes = random_bytes
        self._places = FairPlaces(AT_ONCE, most_waiting=MOST_OF_CALLER, each=AT_ONCE)
        self._threads = ThreadPoolExecutor(AT_ONCE, "password", _give_way)
        self._waiting = 0
        self._nobodys = _stored(random_bytes(_SALT_BYTES), random_bytes(_HASH_BYTES))

    async def hash(self, password: str) -> str:
        """Return what is stored of a password; raises Unavailable when too many wait for their turn."""
        salt = self._random_bytes(_SALT_BYTES)
        return _stored(salt, await self._derive(password, salt))

    async def check(self, password: str, stored: str | None) -> bool:
        """Whether this is the password of which `stored` was kept; None takes as long and is never right.

        Raises Unavailable when too many wait for their turn.
        """
        salt, expected = _parts(stored or self._nobodys)
        right = hmac.compare_digest(await self._derive(password, salt), expected)
        return right and stored is not None

    async def _derive(self, password: str, salt: bytes) -> bytes:
        if self._waiting >= MOST_WAITING:
            raise Unavailable("Too many people are signing in: try again shortly.", retry_after=5)
        self._waiting += 1
        try:
            async with self._places.place(working_for.get()):
                work = asyncio.get_running_loop().run_in_executor(self._threads, _scrypt, password, salt)
                # The thread goes on when its caller goes away: until it ends, its turn is not over.
                try:
                    return await asyncio.shield(work)
                except asyncio.CancelledError:
                    await asyncio.wait({work})
                    raise
        finally:
            self._waiting -= 1


def _give_way() -> None:
    """A thread of its own priority, where the system has such: Linux does."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)


def _scrypt(password: str, salt: bytes) -> bytes:
    derivation = Scrypt(salt=salt, length=_HASH_BYTES, n=2**_LOG_N, r=_R, p=_P)
    return derivation.derive(password.encode("utf-8", "surrogatepass"))


def _stored(salt: bytes, derived: bytes) -> str:
    return f"{_FORM}.{base64url(salt)}.{base64url(derived)}"


def _parts(stored: str) -> tuple[bytes, bytes]:
    form, _, rest = stored.partition(f"{_FORM}.")
    salt, separator, derived = rest.partition(".")
    if form or not separator:
        raise ValueError("a stored password has another form")
    return from_base64url(salt), from_base64url(derived)
