"""What the finder makes of Ray's answers, with a stand-in for Ray: each actor says or raises what a test wants."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from ray.exceptions import ActorDiedError, ActorUnavailableError, RaySystemError, RpcError

from recado.cluster import on_ray
from recado.cluster.on_ray import RayCells

CELLS = {"a": "CELL_A_URL", "b": "CELL_B_URL"}
HERE = ("http://10.0.0.1:1", None)


def says(value: Any) -> Any:
    """An actor. What it says is a reference of its own."""
    return SimpleNamespace(where=SimpleNamespace(remote=lambda: [value]))


def refuses(error: Exception) -> Any:
    """One that Ray does not even ask."""

    def remote() -> None:
        raise error

    return SimpleNamespace(where=SimpleNamespace(remote=remote))


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    def get(reference: list[Any]) -> Any:
        if isinstance(reference[0], Exception):
            raise reference[0]
        return reference[0]

    def wait(references: list[Any], **_: object) -> tuple[list[Any], list[Any]]:
        return references, []

    monkeypatch.setattr(on_ray, "ray", SimpleNamespace(get=get, wait=wait))


def raising(error: Exception) -> Callable[[], Any]:
    def made() -> Any:
        raise error

    return made


@pytest.mark.parametrize(
    ("b", "kind"),
    [
        (raising(ValueError("of another namespace")), "ValueError"),
        (raising(RaySystemError("no")), "RaySystemError"),
        (lambda: SimpleNamespace(ping=None), "AttributeError"),  # an actor of another class
        (lambda: refuses(RuntimeError("no")), "RuntimeError"),
        (lambda: says("pong"), "ValueError"),
        (lambda: says(ActorDiedError()), "ActorDiedError"),
        (lambda: says(TypeError("secret")), "TypeError"),
    ],
)
def test_what_ray_has_against_one_cell_is_the_trouble_of_that_one_alone(b: Callable[[], Any], kind: str) -> None:
    made = {"a": lambda: says(HERE), "b": b}
    cells = RayCells(lambda cell, _: made[cell]())
    for _ in range(2):
        assert cells.look(CELLS) == {"a": HERE, "b": (None, f"Ray has no answer of its actor ({kind})")}
    made["b"] = lambda: says(HERE)  # it is looked for anew
    assert cells.look(CELLS) == {"a": HERE, "b": HERE}


@pytest.mark.parametrize(
    "b",
    [
        raising(RpcError("the head is away")),
        lambda: refuses(ConnectionError()),
        lambda: says(ActorUnavailableError("it moves", None)),
    ],
)
def test_of_a_cell_that_is_on_its_way_or_while_the_head_is_away_nothing_is_said(b: Callable[[], Any]) -> None:
    cells = RayCells(lambda cell, _: says(HERE) if cell == "a" else b())
    for _ in range(2):
        assert cells.look(CELLS) == {"a": HERE}
