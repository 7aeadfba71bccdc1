"""Which node of Ray a cell is to go to, and why it may not go."""

from typing import Any

import pytest

from recado.cluster import orders
from recado.cluster.orders import NotCarriedOut


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
