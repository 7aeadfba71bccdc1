"""The routes about the service itself (C2.7): is it up, is it ready, what does it offer, what do its problems mean."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from recado.domain.core.errors import Unavailable
from recado.http.api.call import Call
from recado.http.api.models import ApiModel
from recado.http.api.route import Access, Route
from recado.http.callers.rate_limits import ANONYMOUS
from recado.http.openapi.document import document
from recado.http.openapi.document_texts import DESCRIPTION, GROUPS
from recado.http.openapi.written_examples import examples
from recado.http.problems.missing import no_page
from recado.http.routes.service.console import console_routes
from recado.http.routes.service.kept_file import KeptFile
from recado.http.routes.service.problem_pages import ProblemPages
from recado.http.webhook_events import EVENTS
from recado.http.wire.rendering import dump
from recado.http.wire.reply import Reply

Ready = Callable[[], Awaitable[Mapping[str, bool]]]

TAG = "Service"
READY_WITHIN = 2.0  # seconds (C2.7)
READY_KEPT = 0.5  # seconds
_STATIC = files("recado.http") / "static"
_HOUR = "public, max-age=3600"
_PAGE = "text/html; charset=utf-8"
_FILES = {
    "docs.css": ("docs.css", "text/css; charset=utf-8"),
    "docs.js": ("docs.js", "text/javascript; charset=utf-8"),
    "try": ("try.html", _PAGE),
    "try.js": ("try.js", "text/javascript; charset=utf-8"),
    "swagger-ui.css": ("swagger-ui/swagger-ui.css", "text/css; charset=utf-8"),
    "swagger-ui-bundle.js": ("swagger-ui/swagger-ui-bundle.js", "text/javascript; charset=utf-8"),
    "favicon-32x32.png": ("swagger-ui/favicon-32x32.png", "image/png"),
}
# The style sheet of the page to try calls draws its icons from data addresses.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'{server}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_OPEN: dict[str, Any] = {"access": Access.PUBLIC, "tag": TAG, "method": "GET"}
_PROBE: dict[str, Any] = {**_OPEN, "probe": True}  # never refused: not counted
_PUBLIC: dict[str, Any] = {**_OPEN, "rate_class": ANONYMOUS}


class _Health(ApiModel):
    """The process is up."""

    status: str


class Readiness(ApiModel):
    """The service can take work; each part by name."""

    status: str
    checks: dict[str, bool]


def service_routes(
    others: Sequence[Route], *, ready: Ready, base_url: str, version: str, document_at_once: bool = False
) -> tuple[Route, ...]:
    """Return the routes of the service. `others`: all other routes, for the document; `ready`: each part by name.

    `document_at_once`: make the document now, where it may take the processor from nobody yet.
    """

    async def openapi(call: Call) -> Reply:
        return (await described.file()).reply(call)

    policy = _policy(base_url)

    async def page(call: Call) -> Reply:
        return (await _content("docs.html", _PAGE, policy)).reply(call)

    async def file(call: Call) -> Reply:
        if (found := _FILES.get(call.path["file"])) is None:
            raise no_page("There is no such file.")
        return (await _content(*found, policy)).reply(call)

    pages = ProblemPages(base_url)
    routes = (
        Route(
            **_PROBE, path="/healthz", handler=_health, operation_id="getHealth", summary="Is the process up?",
            responses={200: _Health}, description="Asks no part of the service: for whoever restarts it.",
        ),
        Route(
            **_PROBE, path="/readyz", handler=Readying(ready).answer, operation_id="getReadiness",
            summary="Can the service take work?", responses={200: Readiness}, errors=("SERVICE_UNAVAILABLE",),
            description="`checks` names each part: the database is there and takes writes, every migration is applied.",
        ),
        Route(
            **_PUBLIC, path="/v2/openapi.json", handler=openapi, operation_id="getOpenApiDocument",
            summary="This document", responses={200: None, 304: None}, response_types={200: "application/json"},
            description="Compressed for who takes that; 304 with the `ETag` of the one before as `If-None-Match`.",
        ),
        Route(
            **_PUBLIC, path="/docs", handler=page, operation_id="getDocs",
            summary="The document as a page", documented=False,
        ),
        Route(
            **_PUBLIC, path="/docs/{file}", handler=file, operation_id="getDocsFile",
            summary="A file of that page", documented=False,
        ),
        Route(
            **_PUBLIC, path="/problems", handler=pages.index, operation_id="getProblemIndex",
            summary="All problem codes", documented=False,
        ),
        Route(
            **_PUBLIC, path="/problems/{code}", handler=pages.page, operation_id="getProblemPage",
            summary="What a problem's type means", documented=False,
        ),
        *console_routes(),
    )  # fmt: skip
    described = Described(
        lambda: document(
            (*others, *routes),
            base_url=base_url,
            version=version,
            description=DESCRIPTION,
            tags=GROUPS,
            events=EVENTS,
            examples=examples(),
        ),
        at_once=document_at_once,
    )
    return routes


async def _health(_: Call) -> Reply:
    return Reply(200, {"status": "ok"})


class Readying:
    """What is ready, for all who ask: however many they are, one of them at a time asks the database (C31)."""

    def __init__(self, ready: Ready) -> None:
        self._ready = ready
        self._look: asyncio.Task[Mapping[str, bool]] | None = None
        self._kept_until = 0.0

    async def answer(self, _: Call) -> Reply:
        """200 when every part is, else 503 that names the parts."""
        loop = asyncio.get_running_loop()
        look = self._look
        if look is None or (look.done() and loop.time() >= self._kept_until):
            look = self._look = loop.create_task(self._looked())
        checks = await asyncio.shield(look)
        if not all(checks.values()):
            problem = Unavailable("A part of the service is not ready: `meta.checks` says which.")
            problem.meta = {"checks": dict(checks)}
            raise problem
        return Reply(200, {"status": "ready", "checks": dict(checks)})

    async def _looked(self) -> Mapping[str, bool]:
        try:
            async with asyncio.timeout(READY_WITHIN):
                return await self._ready()
        except TimeoutError:
            return {"database": False}
        finally:
            self._kept_until = asyncio.get_running_loop().time() + READY_KEPT


class Described:
    """The document as it is sent, made once: `at_once`, or when somebody asks for it, so that processes that never show
    it do not pay for it.

    It takes a third of a second of the processor. In a thread the loop has its turns meanwhile, if fewer (C31).
    """

    def __init__(self, make: Callable[[], Mapping[str, Any]], *, at_once: bool) -> None:
        self._make = make
        self._made = self._written() if at_once else None
        self._making: asyncio.Task[KeptFile] | None = None

    async def file(self) -> KeptFile:
        """However many ask, it is made once; who leaves does not end it for the others."""
        if self._made is not None:
            return self._made
        making = self._making
        if making is None or (making.done() and making.exception() is not None):
            work = asyncio.to_thread(self._written)
            making = self._making = asyncio.get_running_loop().create_task(work, name="OpenAPI document")
        return await asyncio.shield(making)

    def _written(self) -> KeptFile:
        return KeptFile.of(dump(self._make()), "application/json", "no-cache")


def _policy(base_url: str) -> str:
    """The page may call the server that its document names, which can differ from the one it came from."""
    origin = "/".join(base_url.split("/")[:3])
    return _POLICY.format(server=f" {origin}" if origin.startswith("http") else "")


async def _content(name: str, content_type: str, policy: str) -> KeptFile:
    """The file; `policy`: of pages. Compressing the largest takes a tenth of a second: not on the loop."""
    return await asyncio.to_thread(_kept, name, content_type, policy if content_type == _PAGE else "")


@cache
def _kept(name: str, content_type: str, policy: str) -> KeptFile:
    more = {"Content-Security-Policy": policy, "Referrer-Policy": "no-referrer"} if policy else {}
    return KeptFile.of(_STATIC.joinpath(name).read_bytes(), content_type, _HOUR, more)
