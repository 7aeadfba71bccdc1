"""An address that is in use: it may be of fronts whose owner was killed a moment ago, and which end."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from recado.address import FRONTS_END_WITHIN, bind_address, try_address
from recado.config.errors import SettingsError
from recado.config.forms import Listen

_NO_FAMILY = 45  # above all that Linux has


class Turns:
    """A clock on which nothing happens but what is done at each sleep."""

    def __init__(self, *turns: Any) -> None:
        self._turns = list(turns)
        self._at = 0.0

    def monotonic(self) -> float:
        return self._at

    async def sleep(self, seconds: float) -> None:
        self._at += seconds
        if self._turns:
            self._turns.pop(0)()


@pytest.fixture
def other() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other


async def test_what_is_let_go_soon_can_be_had(other: socket.socket) -> None:
    listen = Listen(*other.getsockname())
    clock: Any = Turns(lambda: None, other.close)
    await try_address(listen, clock)
    assert 0 < clock.monotonic() < FRONTS_END_WITHIN
    socket.create_server((listen.host, listen.port)).close()


async def test_what_stays_in_use_is_refused_after_a_second(other: socket.socket) -> None:
    clock: Any = Turns()
    with pytest.raises(SettingsError, match="is in use: stop what listens there"):
        await try_address(Listen(*other.getsockname()), clock)
    assert clock.monotonic() == pytest.approx(FRONTS_END_WITHIN, abs=0.11)


async def test_another_trouble_is_told_at_once() -> None:
    clock: Any = Turns()
    with pytest.raises(SettingsError, match="is not an address of this machine"):
        await try_address(Listen("192.0.2.1", 8080), clock)
    assert clock.monotonic() == 0


def test_what_is_bound_is_had_and_does_not_listen_yet(other: socket.socket) -> None:
    bound = bind_address(Listen("localhost", 0))
    assert {each.family for each in bound} >= {socket.AF_INET}
    for each in bound:
        assert not each.get_inheritable()
        assert each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 0
        each.close()
    with pytest.raises(SettingsError, match="is in use: stop what listens there"):
        bind_address(Listen(*other.getsockname()))


def test_an_address_of_a_family_that_the_kernel_has_not_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = (socket.SOCK_STREAM, socket.IPPROTO_TCP, "")
    unknown, known = (_NO_FAMILY, *stream, ("::1", 0)), (socket.AF_INET, *stream, ("127.0.0.1", 0))
    found = [unknown, known]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    (bound,) = bind_address(Listen("localhost", 0))
    with bound:
        assert bound.family == socket.AF_INET
    found.remove(known)
    with pytest.raises(SettingsError, match="cannot be listened on"):
        bind_address(Listen("localhost", 0))
