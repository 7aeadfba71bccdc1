"""Tells by the first line of a request whether a process answers it that has some of the routes only."""

import re
from collections.abc import Callable, Iterable

from recado.http.api.route import Route

_SEGMENT = r"[!-.0->@-~]+"  # what is printable, but for `/` and `?`
_QUERY = r"(?:\?[!-~]*)?"


def local_of(routes: Iterable[Route], others: Iterable[Route] = ()) -> Callable[[bytes], bool]:
    """Whether the request that begins with these bytes is one of `routes`; False for whatever is not plainly so.

    `others`: those of the whole service. Where a path of theirs can be one of a route's with parameters, it is theirs.
    """
    paths = {each.path for each in others}
    forms = "|".join(f"{re.escape(each.method)} {_theirs(each.path, paths)}{_form(each.path)}" for each in routes)
    begins = re.compile(rf"(?:{forms}){_QUERY} HTTP/1\.[01]\r\n".encode()).match if forms else None
    return (lambda data: begins(data) is not None) if begins else (lambda _: False)


def _form(path: str) -> str:
    return "/".join(_SEGMENT if each.startswith("{") else re.escape(each) for each in path.split("/"))


def _theirs(path: str, others: Iterable[str]) -> str:
    if "{" not in path:
        return ""  # a fixed path wins
    theirs = sorted(_form(each) for each in others if each != path and _meet(each.split("/"), path.split("/")))
    return f"(?!(?:{'|'.join(theirs)})[? ])" if theirs else ""


def _meet(one: list[str], other: list[str]) -> bool:
    """Whether a path can have both forms."""
    return len(one) == len(other) and all(
        a == b or a.startswith("{") or b.startswith("{") for a, b in zip(one, other, strict=True)
    )
