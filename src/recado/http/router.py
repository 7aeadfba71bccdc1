"""Finds the operation for a path: exact paths in one look-up, the others segment by segment."""

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar
from urllib.parse import unquote

from recado.domain.ids import is_id

Operation = TypeVar("Operation")

NO_PARAMETERS: Mapping[str, str] = {}


class _Node(Generic[Operation]):
    __slots__ = ("children", "methods", "names", "parameter")

    def __init__(self) -> None:
        self.children: dict[str, _Node[Operation]] = {}
        self.parameter: _Node[Operation] | None = None
        self.methods: dict[str, Operation] = {}
        self.names: tuple[str, ...] = ()


class Router(Generic[Operation]):
    """Paths to operations by method. A fixed segment wins over a parameter."""

    def __init__(self, routes: Iterable[tuple[str, str, Operation]]) -> None:
        """`routes`: method, path with parameters in braces, operation. ValueError when two are the same."""
        self._fixed: dict[str, dict[str, Operation]] = {}
        self._root: _Node[Operation] = _Node()
        for method, path, operation in routes:
            methods = self._methods(path)
            if method in methods:
                raise ValueError(f"two operations for {method} {path}")
            methods[method] = operation

    def find(self, path: str) -> tuple[Mapping[str, Operation], Mapping[str, str]] | None:
        """Return the operations at `path` (as sent, percent-encoded) by method, and its parameters."""
        methods = self._fixed.get(path)
        if methods is not None:
            return methods, NO_PARAMETERS
        values: list[str] = []
        node = self._descend(self._root, path.split("/")[1:], 0, values)
        if node is None:
            return None
        try:
            decoded = [_decoded(value) for value in values]
        except ValueError:
            return None
        return node.methods, dict(zip(node.names, decoded, strict=True))

    def _methods(self, path: str) -> dict[str, Operation]:
        if "{" not in path:
            return self._fixed.setdefault(path, {})
        node = self._root
        names = []
        for segment in path.split("/")[1:]:
            if segment.startswith("{"):
                names.append(segment[1:-1])
                if node.parameter is None:
                    node.parameter = _Node()
                node = node.parameter
            else:
                node = node.children.setdefault(segment, _Node())
        if node.methods and node.names != tuple(names):
            raise ValueError(f"the parameters of {path} have other names in another operation")
        node.names = tuple(names)
        return node.methods

    def _descend(
        self, node: _Node[Operation], segments: list[str], depth: int, values: list[str]
    ) -> _Node[Operation] | None:
        if depth == len(segments):
            return node if node.methods else None
        segment = segments[depth]
        child = node.children.get(segment)
        if child is not None and (found := self._descend(child, segments, depth + 1, values)) is not None:
            return found
        if node.parameter is None or not segment:
            return None
        values.append(segment)
        found = self._descend(node.parameter, segments, depth + 1, values)
        if found is None:
            values.pop()
        return found


def ids_are_formed(wanted: Mapping[str, str], path: Mapping[str, str]) -> bool:
    """Whether every path parameter named in `wanted` (parameter → prefix) has the form of such an id (C2.1)."""
    return all(is_id(prefix, path[name]) for name, prefix in wanted.items())


def _decoded(segment: str) -> str:
    """The text of a path segment; ValueError when it is no UTF-8, or holds what no stored text can."""
    text = unquote(segment, errors="strict")
    text.encode()
    if "\0" in text:
        raise ValueError("U+0000 in a path")
    return text
