"""What the finder makes of Ray's answers, with a stand-in for Ray: each actor says or raises what a test wants."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from ray.exceptions import ActorDiedError, ActorUnavailableError, RaySystemError, RpcError

from recado.cluster import finder, on_ray
from recado.cluster.on_ray import RayCells, still_joined

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


class Placed:
    """An actor that ends when it is told to. `gone`: nobody knows it any more."""

    def __init__(self) -> None:
        self.told = 0
        self.ended = False
        self.gone = False
        self.end = SimpleNamespace(remote=self._end)
        self.about = SimpleNamespace(remote=lambda: [SimpleNamespace(ended=self.ended)])

    def _end(self) -> None:
        self.told += 1


def test_an_actor_is_taken_away_when_its_service_has_stopped_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    actor = Placed()

    def get_actor(name: str) -> Placed:
        if actor.gone:
            raise ValueError(name)
        return actor

    def kill(_: Placed) -> None:
        actor.gone = True

    monkeypatch.setattr(on_ray.ray, "get_actor", get_actor, raising=False)
    monkeypatch.setattr(on_ray.ray, "kill", kill, raising=False)
    cells = RayCells(lambda _cell, _variable: pytest.fail("it is made again"))
    assert cells.end(["b"]) == ([], {})
    assert cells.end(["b"]) == ([], {})
    assert (actor.told > 0, actor.gone) == (True, False)
    actor.ended = True
    assert cells.end(["b"]) == ([], {})
    assert actor.gone
    assert cells.end(["b"]) == (["b"], {})


def test_one_that_does_not_hear_is_taken_away_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_ray, "ENDED_WITHIN", 0.0)
    killed: list[Any] = []
    actor = Placed()
    monkeypatch.setattr(on_ray.ray, "get_actor", lambda _name: actor, raising=False)
    monkeypatch.setattr(on_ray.ray, "kill", killed.append, raising=False)
    assert RayCells().end(["b"]) == ([], {})
    assert killed == [actor]


def test_what_ray_has_against_ending_one_keeps_no_other_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def get_actor(name: str) -> Any:
        raise RpcError("secret") if name == "recado-cell-a" else ValueError(name)

    monkeypatch.setattr(on_ray.ray, "get_actor", get_actor, raising=False)
    assert RayCells().end(["a", "b"]) == (["b"], {"a": "RpcError"})


def test_who_may_make_none_asks_those_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def get_actor(name: str) -> Any:
        if name == "recado-cell-a":
            return says(HERE)
        raise ValueError(name)

    monkeypatch.setattr(on_ray.ray, "get_actor", get_actor, raising=False)
    cells = RayCells(lambda _cell, _variable: pytest.fail("it is made"))
    found = cells.look(CELLS, may_make=False)
    assert found == {"a": HERE, "b": (None, "Ray has no answer of its actor (ValueError)")}


def test_one_that_was_wanted_again_has_all_its_time_when_it_leaves_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    killed: list[Any] = []
    monkeypatch.setattr(on_ray.SystemClock, "monotonic", lambda: now[0])
    monkeypatch.setattr(on_ray.ray, "get_actor", lambda _name: Placed(), raising=False)
    monkeypatch.setattr(on_ray.ray, "kill", killed.append, raising=False)
    cells = RayCells(lambda _cell, _variable: says(HERE))
    cells.end(["b"])
    assert cells.look(CELLS)["b"] == HERE
    now[0] = on_ray.ENDED_WITHIN
    cells.end(["b"])
    assert killed == []
    now[0] *= 2
    cells.end(["b"])
    assert len(killed) == 1


@pytest.mark.parametrize(
    ("nodes", "joined"),
    [
        ([{"NodeID": "here", "Alive": True}], True),
        ([{"NodeID": "here", "Alive": False}, {"NodeID": "there", "Alive": True}], False),
        ([{"NodeID": "there", "Alive": True}], False),  # a head that knows nothing of the nodes before
    ],
)
def test_a_process_has_joined_while_ray_has_its_node(
    nodes: list[dict[str, Any]], joined: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = SimpleNamespace(get_node_id=lambda: "here")
    monkeypatch.setattr(on_ray.ray, "get_runtime_context", lambda: context, raising=False)
    monkeypatch.setattr(on_ray.ray, "nodes", lambda: nodes, raising=False)
    assert still_joined() is joined


def test_a_finder_that_ray_left_behind_ends_and_one_that_cannot_know_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[Any] = [True, RpcError("away"), ConnectionError(), True, False]

    def asked() -> bool:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return bool(answer)

    def ended(status: int) -> None:
        raise SystemExit(status)

    monkeypatch.setattr(finder, "ASK_IF_JOINED_EVERY", 0.0)
    monkeypatch.setattr(finder.os, "_exit", ended)
    with pytest.raises(SystemExit):
        finder.end_when_left_behind(asked)
    assert answers == []
