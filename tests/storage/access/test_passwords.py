"""Passwords as they are stored, and what checking one costs (C24.3)."""

import asyncio
import hashlib
import os
import threading
from typing import Any

import pytest

from recado.domain.core.base64url import from_base64url
from recado.domain.core.errors import Unavailable
from recado.storage.access import passwords as module
from recado.storage.access.passwords import AT_ONCE, MOST_OF_CALLER, MOST_WAITING, Passwords
from recado.storage.core.shares.callers import working_for


@pytest.fixture
def hasher() -> Passwords:
    return Passwords(os.urandom)


class Derivations:
    """Stands where scrypt does: counts who is inside at once, and lets nobody out before it is told to."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.full = threading.Event()
        self.inside = self.most = self.done = 0
        self._lock = threading.Lock()

    def __call__(self, password: str, salt: bytes) -> bytes:
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
            if self.inside == AT_ONCE:
                self.full.set()
        assert self.open.wait(30)
        with self._lock:
            self.inside -= 1
            self.done += 1
        return hashlib.sha256(password.encode() + salt).digest()


@pytest.fixture
def derivations(monkeypatch: pytest.MonkeyPatch) -> Derivations:
    stand_in = Derivations()
    monkeypatch.setattr(module, "_scrypt", stand_in)
    return stand_in


async def test_only_the_password_itself_is_right(hasher: Passwords) -> None:
    stored = await hasher.hash("correct horse battery")

    assert await hasher.check("correct horse battery", stored)
    for wrong in ("correct horse battery ", "Correct horse battery", ""):
        assert not await hasher.check(wrong, stored)


async def test_what_is_stored_is_scrypt_with_a_salt_of_its_own(hasher: Passwords) -> None:
    first, second = [await hasher.hash("señha 🐎 battery") for _ in range(2)]

    assert first != second
    kind, log_n, r, p, salt, derived = first.split(".")
    expected = hashlib.scrypt(
        "señha 🐎 battery".encode(), salt=from_base64url(salt), n=2**15, r=8, p=1, maxmem=64 * 2**20, dklen=32
    )
    assert (kind, log_n, r, p) == ("scrypt", "15", "8", "1")
    assert from_base64url(derived) == expected


async def test_nobodys_password_is_never_right_and_costs_as_much(
    hasher: Passwords, monkeypatch: pytest.MonkeyPatch
) -> None:
    derived: list[tuple[Any, ...]] = []

    def all_alike(*arguments: Any) -> bytes:
        derived.append(arguments)
        return module._parts(hasher._nobodys)[1]  # whatever is asked, the answer that nobody's hash expects

    monkeypatch.setattr(module, "_scrypt", all_alike)

    assert not await hasher.check("any password", None)
    assert len(derived) == 1
    assert len(derived[0][1]) == 16


async def test_few_derivations_run_at_once_and_the_loop_goes_on(hasher: Passwords, derivations: Derivations) -> None:
    waiting = [asyncio.create_task(hasher.hash(f"password {n}")) for n in range(6)]
    await asyncio.to_thread(derivations.full.wait, 30)

    assert not any(task.done() for task in waiting)
    derivations.open.set()
    await asyncio.gather(*waiting)
    assert (derivations.most, derivations.done) == (AT_ONCE, 6)


async def test_a_caller_who_leaves_keeps_its_turn_until_its_thread_is_done(
    hasher: Passwords, derivations: Derivations
) -> None:
    leaving = [asyncio.create_task(hasher.hash(f"password {n}")) for n in range(AT_ONCE)]
    await asyncio.to_thread(derivations.full.wait, 30)
    for task in leaving:
        task.cancel()
    staying = asyncio.create_task(hasher.hash("another"))
    for _ in range(10):
        await asyncio.sleep(0)
    assert derivations.inside == AT_ONCE

    derivations.open.set()

    await staying
    assert derivations.most == AT_ONCE
    assert [type(each) for each in await asyncio.gather(*leaving, return_exceptions=True)] == [
        asyncio.CancelledError
    ] * AT_ONCE


async def hash_for(hasher: Passwords, caller: str) -> str:
    working_for.set(caller)
    return await hasher.hash("password")


async def test_who_asks_again_and_again_waits_for_itself_and_others_take_their_turn(
    hasher: Passwords, derivations: Derivations
) -> None:
    storm = [asyncio.create_task(hash_for(hasher, "storm")) for _ in range(AT_ONCE + MOST_OF_CALLER)]
    await asyncio.to_thread(derivations.full.wait, 30)
    with pytest.raises(Unavailable):
        await asyncio.create_task(hash_for(hasher, "storm"))
    other = asyncio.create_task(hash_for(hasher, "other"))
    await asyncio.sleep(0)

    derivations.open.set()

    await other
    assert sum(task.done() for task in storm) <= 2 * AT_ONCE + 1
    await asyncio.gather(*storm)


async def test_who_comes_when_too_many_wait_is_told_to_come_again(hasher: Passwords, derivations: Derivations) -> None:
    waiting = [asyncio.create_task(hash_for(hasher, f"caller {n % 10}")) for n in range(MOST_WAITING)]
    await asyncio.to_thread(derivations.full.wait, 30)

    with pytest.raises(Unavailable) as refusal:
        await hash_for(hasher, "another caller")

    assert refusal.value.headers == {"Retry-After": "5"}
    derivations.open.set()
    await asyncio.gather(*waiting)
    assert await hasher.hash("now there is room")
