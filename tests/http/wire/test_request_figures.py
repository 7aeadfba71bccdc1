"""Requests are counted by route and status, and no caller makes the figures grow (C34.1)."""

from typing import Any

from recado.domain.core.errors import Problem
from recado.http.api.request_figures import RequestFigures


def answers(figures: RequestFigures) -> dict[tuple[str, str], list[int]]:
    return {(method, path): each.statuses for method, path, each in figures.all()}


async def test_answers_count_with_their_route_and_the_class_of_their_status(serve: Any, thing: Any) -> None:
    async def refuse(_: Any) -> Any:
        raise Problem("NOT_FOUND", "nothing")

    figures = RequestFigures()
    api = await serve(thing(), thing("GET", "/things/{id}", handler=refuse), thing("POST", "/never"), figures=figures)
    for path in ("/things", "/things", "/things/1", "/things/2", "/nowhere", "/elsewhere/x"):
        async with api.client.get(path):
            pass
    assert answers(figures) == {
        ("GET", "/things"): [0, 2, 0, 0, 0],
        ("GET", "/things/{id}"): [0, 0, 0, 2, 0],
        ("", ""): [0, 0, 0, 2, 0],
    }
    (things,) = [each for _, path, each in figures.all() if path == "/things"]
    assert sum(things.counts) == 2
