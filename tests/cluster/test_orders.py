"""What becomes of orders to a cell's actor, with a stand-in for Ray: test_machines.py has the real one."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from ray.exceptions import ActorDiedError, ActorUnavailableError, GetTimeoutError, RpcError

from recado.cluster import orders
from recado.cluster.on_ray import RESOURCE, About
from recado.cluster.orders import NotCarriedOut, Orders

LEFT = About("http://10.0.0.1:1", None, 1, False, "CELL_A_URL", "node-1")
STOPPED = LEFT._replace(url=None, ended=True)
STARTS = About(None, "its service starts", 0, False, "CELL_A_URL", "node-2")
THERE = STARTS._replace(url="http://10.0.0.2:1", trouble=None, life=1)
NODES = [
    {"NodeID": f"node-{n}", "NodeManagerAddress": f"10.0.0.{n}", "Alive": True, "Resources": {RESOURCE: 2}}
    for n in (1, 2)
]


def saying(*said: object) -> Any:
    """An actor that says one after the other of itself; an error is raised."""
    left = list(said)
    ordered = SimpleNamespace(remote=lambda: None)
    return SimpleNamespace(about=SimpleNamespace(remote=lambda: left.pop(0)), end=ordered, restart=ordered)


@pytest.fixture
def relocated(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Relocates a cell whose new actors are these, one after the other."""

    def get(about: object, *, timeout: float) -> object:
        assert timeout > 0
        if isinstance(about, Exception):
            raise about
        return about

    def relocate(*new: Any) -> str:
        left = list(new)
        monkeypatch.setattr(orders, "made_actor", lambda _cell, _variable, _node: left.pop(0))
        seconds = iter(range(1_000))
        return Orders(lambda _: None, monotonic=lambda: float(next(seconds)), wait=lambda _: None).relocate("a", None)

    monkeypatch.setattr(orders, "ray", SimpleNamespace(get=get, kill=lambda _: None, nodes=lambda: NODES))
    monkeypatch.setattr(orders, "_free", lambda: {"node-1": 1.0, "node-2": 2.0})
    monkeypatch.setattr(orders, "present_actor", lambda _: saying(LEFT, LEFT, STOPPED))
    return relocate


def test_a_cell_goes_elsewhere_once_its_service_has_stopped_and_its_name_is_free(
    relocated: Callable[..., str],
) -> None:
    assert relocated(saying(ActorDiedError()), saying(STARTS, STARTS, THERE, THERE)) == THERE.url


@pytest.mark.parametrize("error", [GetTimeoutError("no room"), ActorUnavailableError("it is on its way", None)])
def test_a_new_actor_that_does_not_answer_is_told_in_one_line(relocated: Callable[..., str], error: Exception) -> None:
    with pytest.raises(NotCarriedOut, match=f"new actor of a does not answer .{type(error).__name__}.: it has no room"):
        relocated(saying(error))


@pytest.mark.parametrize("order", [lambda each: each.restart("a"), lambda each: each.relocate("a", None)])
def test_a_head_that_is_away_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, order: Callable[[Orders], str]
) -> None:
    def present(_cell: str) -> None:
        raise RpcError("secret")

    monkeypatch.setattr(orders, "present_actor", present)
    with pytest.raises(NotCarriedOut, match=r"^Ray does not answer \(RpcError\): try again$"):
        order(Orders(lambda _: None, monotonic=lambda: 0.0, wait=lambda _: None))


def test_a_cell_that_ray_puts_elsewhere_meanwhile_is_not_taken_for_relocated(relocated: Callable[..., str]) -> None:
    elsewhere = THERE._replace(node="node-1")
    with pytest.raises(NotCarriedOut, match="give the command once more"):
        relocated(saying(elsewhere, elsewhere, elsewhere))
