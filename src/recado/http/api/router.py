"""Finds the operation for a path: exact paths in one look-up, the others segment by segment."""

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final, Generic, TypeVar
from urllib.parse import unquote

from recado.domain.core.ids import is_id

Operation = TypeVar("Operation")

Found = tuple[Mapping[str, Operation], Mapping[str, str]]
"""The operations of a path by method, and the path's parameters."""

NO_PARAMETERS: Mapping[str, str] = {}

_VERSION: Final = "v2"
_VERSION_LIKE: Final = re.compile(r"v[0-9]+|api")
_END: Final = ""  # a route ends here: no segment is empty
_ALIKE: Final = 0.75
_LONGEST_COMPARED: Final = 200
_LONGEST_SEGMENT: Final = 32
_MOST_SEGMENTS: Final = 8


class _Node(Generic[Operation]):
    __slots__ = ("children", "methods", "names", "parameter")

    def __init__(self) -> None:
        self.children: dict[str, _Node[Operation]] = {}
        self.parameter: _Node[Operation] | None = None
        self.methods: dict[str, Operation] = {}
        self.names: tuple[str, ...] = ()


class Router(Generic[Operation]):
    """Paths to operations by method. A fixed segment wins over a parameter."""

    def __init__(
        self,
        routes: Iterable[tuple[str, str, Operation]],
        suggest: Callable[[Operation], bool] = lambda _: True,
    ) -> None:
        """`routes`: method, path with parameters in braces, operation. ValueError when two are the same.

        `suggest`: whether `similar` may name the operation.
        """
        self._fixed: dict[str, dict[str, Operation]] = {}
        self._root: _Node[Operation] = _Node()
        self._names: dict[str, Any] = {}  # segment → what can follow it
        for method, path, operation in routes:
            if suggest(operation):
                self._remember(path)
            methods = self._methods(path)
            if method in methods:
                raise ValueError(f"two operations for {method} {path}")
            methods[method] = operation

    def find(self, path: str) -> Found[Operation] | None:
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

    def similar(self, path: str) -> str | None:
        """Return the path of a route, its parameters in braces, that `path` probably stands for; None without one.

        Bounded: a short path is compared, segment by segment, with the few names that can follow there.
        """
        if len(path) > _LONGEST_COMPARED:
            return None
        segments = [segment for segment in path.lower().split("/") if segment][:_MOST_SEGMENTS]
        if not segments:
            return None
        tries = [segments, [_VERSION, *segments]]
        if _VERSION_LIKE.fullmatch(segments[0]):
            tries += [segments[1:], [_VERSION, *segments[1:]]]
        found = [match for given in tries if given and (match := self._nearest(given)) is not None]
        return max(found)[1] if found else None

    def _nearest(self, segments: list[str]) -> tuple[float, str] | None:
        """The likeness, up to 1, and the path that has the names most like these."""
        node, path, likeness = self._names, "", 1.0
        for segment in segments:
            name = segment if segment in node else _closest(segment, node)
            if name is None:
                parameter = next((each for each in node if each.startswith("{")), None)
                if parameter is None:
                    return None
                node, path = node[parameter], f"{path}/{parameter}"
                continue
            likeness *= 1.0 if name == segment else 0.9
            node, path = node[name], f"{path}/{name}"
        return (likeness, path) if _END in node else None

    def _remember(self, path: str) -> None:
        node = self._names
        for segment in path.split("/")[1:]:
            node = node.setdefault(segment, {})
        node[_END] = {}

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


def _closest(segment: str, names: Iterable[str]) -> str | None:
    plain = {name.lower(): name for name in names if name != _END and not name.startswith("{")}
    found = get_close_matches(segment[:_LONGEST_SEGMENT], plain, n=1, cutoff=_ALIKE)
    return plain[found[0]] if found else None


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
