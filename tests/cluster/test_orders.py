"""What becomes of orders to a cell's actor, and where it may go; with a stand-in: test_machines.py has the real Ray."""

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


def node(name: str, address: str, cells: float, *, alive: bool = True) -> dict[str, Any]:
    resources = {"CPU": 1.0, **({"recado": cells} if cells else {})}
    return {"NodeID": name, "NodeManagerAddress": address, "Alive": alive, "Resources": resources}


@pytest.fixture
def _nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [
        node("head", "10.0.0.1", 0), node("one", "10.0.0.2", 2), node("two", "10.0.0.3", 4),
        node("old", "10.0.0.4", 2, alive=False), node("three", "10.0.0.4", 2), node("full", "10.0.0.5", 1),
    ]  # fmt: skip
    monkeypatch.setattr(orders.ray, "nodes", lambda: nodes)
    monkeypatch.setattr(orders, "_free", lambda: {"one": 1.0, "two": 3.0, "old": 2.0, "three": 2.0})


@pytest.mark.usefixtures("_nodes")
@pytest.mark.parametrize(("to", "node"), [(None, "two"), ("10.0.0.3", "two"), ("10.0.0.4", "three")])
def test_a_cell_goes_where_it_is_told_to_or_where_there_is_most_room(to: str | None, node: str) -> None:
    assert orders._room("one", to) == node


@pytest.mark.usefixtures("_nodes")
def test_it_does_not_go_to_where_it_was() -> None:
    assert orders._room("two", None) == "three"


@pytest.mark.usefixtures("_nodes")
def test_it_stays_where_no_other_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orders, "_free", lambda: {"one": 1.0})
    with pytest.raises(NotCarriedOut, match="no other machine has room for it"):
        orders._room("one", None)


@pytest.mark.usefixtures("_nodes")
@pytest.mark.parametrize(
    ("to", "why"),
    [
        ("10.0.0.2", "it is on 10.0.0.2 already"),
        ("10.0.0.5", "10.0.0.5 has no room for it"),
        ("10.0.0.1", "no machine 10.0.0.1 runs cells: there are 10.0.0.2, 10.0.0.3, 10.0.0.4, 10.0.0.5"),
        ("example", "no machine example runs cells: there are"),
    ],
)
def test_it_is_told_why_it_cannot_go(to: str, why: str) -> None:
    with pytest.raises(NotCarriedOut, match=why):
        orders._room("one", to)
