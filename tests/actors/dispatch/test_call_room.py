"""How accounts share the calls that an adapter bears (C31)."""

from recado.actors.dispatch.call_room import CALLS_OF_AN_ACCOUNT, CallRoom
from recado.channels.core.provider import Account
from recado.channels.http.outbound_http import CONNECTIONS


def account(name: str) -> Account:
    return Account(sender_id=name, organization_id=f"org_{name}", env="live", provider_id=name, owner=name)


class Caller:
    """Numbers of one account that call as long as they may. `begun`: of everybody, in order."""

    def __init__(self, room: CallRoom, begun: list[str], name: str, wants: int) -> None:
        self.account = account(name)
        self.left = wants
        self._room, self._begun = room, begun
        self.call()

    def call(self) -> None:
        while self.left and self._room.has_place(self.account, self.call):
            self.left -= 1
            self._room.take(self.account)
            self._begun.append(self.account.owner)


def test_an_account_whose_calls_all_hang_leaves_half_of_the_connections_to_others() -> None:
    begun: list[str] = []
    room = CallRoom(8)
    Caller(room, begun, "hangs", 100)
    assert begun == ["hangs"] * 4
    well = Caller(room, begun, "well", 3)
    assert not well.left
    assert begun[4:] == ["well"] * 3


def test_there_are_never_more_calls_than_connections_and_those_who_wait_take_turns() -> None:
    begun: list[str] = []
    room = CallRoom(8)
    first, second = Caller(room, begun, "first", 100), Caller(room, begun, "second", 100)
    third, fourth = Caller(room, begun, "third", 2), Caller(room, begun, "fourth", 2)
    assert begun == ["first"] * 4 + ["second"] * 4
    for ended in (first, second, first, second, first):
        room.leave(ended.account)
    assert begun[8:] == ["first", "second", "third", "fourth", "first"]
    assert (third.left, fourth.left) == (1, 1)


def test_an_account_has_half_of_few_connections_and_4_000_of_many() -> None:
    assert [CallRoom(most).each for most in (1, 16, 3_968, CONNECTIONS, 20_000)] == [1, 8, 1_984, 4_000, 4_000]
    assert CONNECTIONS == 2 * CALLS_OF_AN_ACCOUNT
