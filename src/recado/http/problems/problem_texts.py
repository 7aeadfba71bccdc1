"""What is to say about each problem code: cause, remedy and an occurrence, of `problem_texts.toml` (C4.1)."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import orjson

from recado.domain.core.errors import CODES
from recado.domain.core.ids import BODY_LENGTH, REQUEST
from recado.http.problems.problems import ProblemRenderer


@dataclass(frozen=True, slots=True)
class Explained:
    """What stands on the page of one code. `example`: a whole problem body."""

    code: str
    status: int
    title: str
    cause: str
    remedy: str
    example: Mapping[str, Any]


@cache
def explained() -> Mapping[str, Explained]:
    """Return what is to say about each code, in the order of the catalogue."""
    texts = tomllib.loads(files("recado.http.problems").joinpath("problem_texts.toml").read_text())
    renderer = ProblemRenderer("")
    return {code: _explained(code, texts[code], renderer) for code in CODES}


def _explained(code: str, text: Mapping[str, Any], renderer: ProblemRenderer) -> Explained:
    entry = CODES[code]
    detail = text.get("example", f"{entry.title}.")
    request_id = REQUEST + "0" * BODY_LENGTH
    body = renderer.render(
        code,
        entry.kind,
        entry.status,
        entry.title,
        detail,
        "/messages",
        request_id,
        text.get("errors"),
        text.get("meta"),
    )
    return Explained(code, entry.status, entry.title, text["cause"], text["remedy"], orjson.loads(body))
