"""What an operator has the actor of one cell do: begin its service anew, or go to another machine.

Ray has no such word. The actor stops its service in order and then is made anew where it is to be. Whoever breaks off
in between harms nothing: an actor that was told to end, and is not taken away, Ray begins again; one that was taken
away is made by the next finder that looks.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import ray
from ray.exceptions import ActorDiedError, RayError

from recado.cluster.on_ray import RESOURCE, About, made_actor, present_actor

LOOK_EVERY: Final = 0.2  # seconds
ANSWERS_WITHIN: Final = 10.0  # seconds, of an actor that is somewhere
DONE_WITHIN: Final = 180.0  # seconds: a stop in order, and a start on a busy machine

Told = Callable[[str], None]
"""Is given what is under way."""


class NotCarriedOut(Exception):
    """What was asked cannot be, or has not come to an end; the text says why."""


class Orders:
    """Each comes back when it is carried out, or raises `NotCarriedOut`. It blocks: it is for a command."""

    def __init__(self, told: Told, *, monotonic: Callable[[], float], wait: Callable[[float], object]) -> None:
        """`monotonic`: seconds; `wait`: for so many."""
        self._told = told
        self._monotonic = monotonic
        self._wait = wait

    def restart(self, cell: str) -> str:
        """Its service stops in order and begins again on its machine; where it answers then."""
        with _ray_there():
            actor = _actor(cell)
            before = _about(cell, actor)
            actor.restart.remote()
            self._told(f"{cell} stops, and begins again")
            return self._answering(cell, actor, lambda about: about.life != before.life)

    def relocate(self, cell: str, to: str | None) -> str:
        """It runs on the machine with that address; None: on that with the most room. As `restart`."""
        with _ray_there():
            return self._relocate(cell, to)

    def _relocate(self, cell: str, to: str | None) -> str:
        actor = _actor(cell)
        before = _about(cell, actor)
        node = _room(before.node, to)
        actor.end.remote()
        self._told(f"{cell} stops where it was")
        deadline = self._monotonic() + DONE_WITHIN
        while not _about(cell, actor).ended:
            self._pause(cell, deadline)
        ray.kill(actor)
        self._told(f"{cell} begins on {_address(node)}")
        made = self._made(cell, before.database_from, node, deadline)
        url = self._answering(cell, made, lambda _: True)
        if _about(cell, made).node != node:
            raise NotCarriedOut(f"{cell} answers at {url}, where Ray put it meanwhile: give the command once more")
        return url

    def _made(self, cell: str, database_from: str, node: str, deadline: float) -> Any:
        """The actor that takes the place of the one before, once it is somewhere."""
        while True:
            try:
                made = made_actor(cell, database_from, node)
                ray.get(made.about.remote(), timeout=DONE_WITHIN)
            except ActorDiedError:  # the one before has its name for a moment yet
                self._pause(cell, deadline)
            except RayError as error:
                raise NotCarriedOut(
                    f"the new actor of {cell} does not answer ({type(error).__name__}): it has no room yet, or is on"
                    " its way; Ray tries on"
                ) from None
            else:
                return made

    def _answering(self, cell: str, actor: Any, wanted: Callable[[About], bool]) -> str:
        deadline = self._monotonic() + DONE_WITHIN
        while True:
            about = _about(cell, actor)
            if about.url is not None and wanted(about):
                return about.url
            self._pause(cell, deadline, about.trouble)

    def _pause(self, cell: str, deadline: float, trouble: str | None = None) -> None:
        if self._monotonic() >= deadline:
            raise NotCarriedOut(f"{cell} does not answer yet ({trouble or 'its service stops'}); it is tried on")
        self._wait(LOOK_EVERY)


@contextmanager
def _ray_there() -> Iterator[None]:
    """What Ray raises beside what is known of an actor is no end of a command either."""
    try:
        yield
    except (RayError, ConnectionError) as error:
        raise NotCarriedOut(f"Ray does not answer ({type(error).__name__}): try again") from None


def _actor(cell: str) -> Any:
    try:
        return present_actor(cell)
    except ValueError:
        raise NotCarriedOut(
            f"Ray has no cell {cell!r}: 'recado cells list' shows which there are, and 'recado serve --cluster' has"
            " Ray make them"
        ) from None


def _about(cell: str, actor: Any) -> About:
    try:
        about: About = ray.get(actor.about.remote(), timeout=ANSWERS_WITHIN)
    except (RayError, AttributeError) as error:
        raise NotCarriedOut(
            f"the actor of {cell} does not answer ({type(error).__name__}): it is on its way, or has no room; try again"
        ) from None
    return about


def _room(left: str, to: str | None) -> str:
    """The node to go to, of those with room."""
    nodes: dict[str, str] = {
        node["NodeID"]: node["NodeManagerAddress"]
        for node in ray.nodes()
        if node["Alive"] and node["Resources"].get(RESOURCE)
    }
    if to is not None and to not in nodes.values():
        raise NotCarriedOut(f"no machine {to} runs cells: there are {', '.join(sorted(nodes.values()))}")
    if to is not None and nodes.get(left) == to:
        raise NotCarriedOut(f"it is on {to} already")
    free = _free()
    others = [node for node, address in nodes.items() if node != left and to in (None, address) and free.get(node)]
    if not others:
        raise NotCarriedOut("no other machine has room for it" if to is None else f"{to} has no room for it")
    return max(others, key=lambda node: free[node])


def _free() -> dict[str, float]:
    """For how many more cells each node has room."""
    free: dict[str, dict[str, float]] = ray._private.state.available_resources_per_node()
    return {node: resources.get(RESOURCE, 0.0) for node, resources in free.items()}


def _address(node: str) -> str:
    return next(str(each["NodeManagerAddress"]) for each in ray.nodes() if each["NodeID"] == node)
