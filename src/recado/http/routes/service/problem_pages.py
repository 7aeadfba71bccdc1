"""`/problems` and `/problems/<code>`: what each code means, what to do about it, and how it looks (C4.1).

Written once, at the first request, from the catalogue of `errors.py` and `problem_texts.toml`; as HTML, JSON or
Markdown by the `Accept` header.
"""

from collections.abc import Mapping
from functools import cache
from html import escape
from typing import Any, Final

import orjson

from recado.domain.core.errors import problem_slug
from recado.http.api.call import Call
from recado.http.problems.missing import no_page
from recado.http.problems.problem_texts import Explained, explained
from recado.http.problems.problems import ProblemRenderer
from recado.http.wire.reply import Reply

_HEADERS: Final = {
    "Cache-Control": "public, max-age=3600",
    "Vary": "Accept",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_STYLE: Final = (
    "body{font:16px/1.5 sans-serif;max-width:46em;margin:2em auto;padding:0 1em}"
    "pre{background:#f3f3f3;padding:1em;overflow:auto}"
    "th{text-align:left}th,td{padding:.1em 1em .1em 0;vertical-align:top}"
)
HTML: Final = "text/html; charset=utf-8"
JSON: Final = "application/json"
MARKDOWN: Final = "text/markdown; charset=utf-8"


Pages = Mapping[str, Mapping[str, bytes]]
"""Slug (empty: the index) → content type → page."""


class ProblemPages:
    """The handlers. `base_url`: as in the `type` of problems."""

    def __init__(self, base_url: str) -> None:
        self._pages = cache(lambda: _pages(ProblemRenderer(base_url)))

    async def index(self, call: Call) -> Reply:
        return self._answer("", call)

    async def page(self, call: Call) -> Reply:
        return self._answer(call.path["code"].lower().replace("_", "-"), call)

    def _answer(self, slug: str, call: Call) -> Reply:
        found = self._pages().get(slug)
        if found is None:
            raise no_page("There is no such problem code. GET /problems lists all.")
        kind = wanted(call.headers.get("Accept", ""))
        return Reply(200, found[kind], headers={**_HEADERS, "Content-Type": kind})


def wanted(accept: str) -> str:
    """Return the content type for an `Accept` header: HTML for browsers, JSON when asked for, else Markdown."""
    if "text/html" in accept:
        return HTML
    return JSON if "json" in accept else MARKDOWN


def _pages(renderer: ProblemRenderer) -> Pages:
    codes = list(explained().values())
    pages = {"": {HTML: _html_index(codes), JSON: _json_index(codes, renderer), MARKDOWN: _markdown_index(codes)}}
    for one in codes:
        example = orjson.dumps({**one.example, "type": renderer.type_of(one.code)}, option=orjson.OPT_INDENT_2).decode()
        pages[problem_slug(one.code)] = {
            HTML: _html(one, example),
            JSON: orjson.dumps(_plain(one, renderer) | {"example": orjson.loads(example)}),
            MARKDOWN: _markdown(one, example),
        }
    return pages


def _plain(one: Explained, renderer: ProblemRenderer) -> dict[str, Any]:
    return {
        "code": one.code,
        "type": renderer.type_of(one.code),
        "status": one.status,
        "title": one.title,
        "cause": one.cause,
        "remedy": one.remedy,
    }


def _json_index(codes: list[Explained], renderer: ProblemRenderer) -> bytes:
    return orjson.dumps({"items": [_plain(one, renderer) for one in codes], "total": len(codes)})


def _markdown_index(codes: list[Explained]) -> bytes:
    rows = [f"| {one.status} | [{one.code}](problems/{problem_slug(one.code)}) | {one.title} |" for one in codes]
    return "\n".join(["# Problem codes", "", "| Status | Code | Meaning |", "|---|---|---|", *rows, ""]).encode()


def _markdown(one: Explained, example: str) -> bytes:
    return (
        f"# {one.code}\n\n{one.title}. Status {one.status}.\n\n## Cause\n\n{one.cause}\n\n"
        f"## What to do\n\n{one.remedy}\n\n## Example\n\n```json\n{example}\n```\n"
    ).encode()


def _html_index(codes: list[Explained]) -> bytes:
    rows = "".join(
        f'<tr><td>{one.status}</td><td><a href="problems/{problem_slug(one.code)}"><code>{one.code}</code></a></td>'
        f"<td>{escape(one.title)}</td></tr>"
        for one in codes
    )
    head = "<thead><tr><th>Status</th><th>Code</th><th>Meaning</th></tr></thead>"
    return _html_page("Problem codes", f"<h1>Problem codes</h1><table>{head}<tbody>{rows}</tbody></table>")


def _html(one: Explained, example: str) -> bytes:
    return _html_page(
        one.code,
        f"<h1>{escape(one.title)}</h1><p>Code <code>{one.code}</code>, status {one.status}.</p>"
        f"<h2>Cause</h2><p>{escape(one.cause)}</p><h2>What to do</h2><p>{escape(one.remedy)}</p>"
        f'<h2>Example</h2><pre>{escape(example)}</pre><p><a href="../problems">All codes</a></p>',
    )


def _html_page(title: str, content: str) -> bytes:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
        f"</head><body>{content}</body></html>\n"
    ).encode()
