"""The internals of aiohttp that a connection stands on: a version without one of them fails here, not under load."""

import ast
import inspect
from pathlib import Path

import pytest
from aiohttp.base_protocol import BaseProtocol
from aiohttp.web_protocol import RequestHandler

from recado.http.wire import connection
from recado.http.wire.connection import Connection

TREE = ast.parse(Path(connection.__file__).read_text())
OURS = {*Connection.__slots__, *vars(Connection)}
THEIRS = {name for each in RequestHandler.__mro__ for name in (*getattr(each, "__slots__", ()), *vars(each))}
REPLACED = sorted(
    name
    for name, value in vars(Connection).items()
    if inspect.isfunction(value) and not name.startswith("__") and hasattr(RequestHandler, name)
)


def used() -> set[str]:
    """The private members of itself that a connection names, and does not make."""
    found = {
        node.attr
        for node in ast.walk(TREE)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
        and node.attr.startswith("_")
    }
    return found - OURS


def test_every_internal_that_a_connection_uses_is_there() -> None:
    assert issubclass(Connection, RequestHandler)
    assert issubclass(RequestHandler, BaseProtocol)
    names = used()
    assert len(names) > 20  # else this looked at the wrong file
    assert names - THEIRS == set()


def parameters(function: object) -> list[tuple[str, inspect._ParameterKind]]:
    assert callable(function)
    return [(each.name, each.kind) for each in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize("name", REPLACED)
def test_what_a_connection_replaces_is_called_as_before(name: str) -> None:
    ours, theirs = parameters(vars(Connection)[name]), parameters(getattr(RequestHandler, name))
    assert ours == theirs
    both = (
        inspect.iscoroutinefunction(vars(Connection)[name]),
        inspect.iscoroutinefunction(getattr(RequestHandler, name)),
    )
    assert both[0] is both[1]


def test_nothing_that_a_connection_makes_hides_an_internal_unsaid() -> None:
    """A new version may give one of its own members the name of ours."""
    theirs = {name for each in RequestHandler.__mro__ for name in (*getattr(each, "__slots__", ()), *vars(each))}
    assert set(Connection.__slots__) & theirs == set()
