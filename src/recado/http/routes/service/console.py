"""The console in the browser (C34.3): one page and its files, from this server only, as they lie in `http/console`.

The page may be asked for anew each time. Its files stand under the build, a hash of all of them, and are kept for good.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final

from recado.http.api.call import Call
from recado.http.api.route import Access, Route
from recado.http.callers.rate_limits import ANONYMOUS
from recado.http.problems.missing import no_page
from recado.http.routes.service.kept_file import KeptFile
from recado.http.wire.reply import Reply

PAGE: Final = "index.html"
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self' blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Nothing from elsewhere, nothing inline, and no text that becomes markup.

`blob:` is what the page itself made: so it reads an e-mail, as a document apart (parts/mail.js).
"""

_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "mjs": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
"""What is served, by the end of its name; licences lie beside it and are not."""

_DEPTH: Final = 3  # folders and a name, at most
_FOR_GOOD: Final = "public, max-age=31536000, immutable"
_ANEW: Final = "no-cache"


@dataclass(frozen=True, slots=True)
class Console:
    """The page and its files. `build`: what stands before the names of the files, of which it is a hash."""

    build: str
    page: KeptFile
    files: dict[str, KeptFile]

    async def show(self, call: Call) -> Reply:
        return self.page.reply(call)

    async def file(self, call: Call) -> Reply:
        build, *names = call.path.values()
        found = self.files.get("/".join(names)) if build == self.build else None
        if found is None:
            raise no_page("There is no such file: load /console again.")
        return found.reply(call)


def console_routes() -> tuple[Route, ...]:
    """The page at `/console`, and its files."""
    served = console()
    public: dict[str, Any] = {
        "method": "GET", "access": Access.PUBLIC, "tag": "Service", "rate_class": ANONYMOUS, "documented": False,
    }  # fmt: skip
    page = Route(
        **public, path="/console", handler=served.show, operation_id="getConsole", summary="The console as a page"
    )
    parts = ["{build}", "{part1}", "{part2}", "{part3}"]
    return (
        page,
        *(
            Route(
                **public, path="/console/" + "/".join(parts[: depth + 1]), handler=served.file,
                operation_id=f"getConsoleFile{depth}", summary="A file of the console",
            )
            for depth in range(1, _DEPTH + 1)
        ),
    )  # fmt: skip


@cache
def console() -> Console:
    """What is served, as it lies in the package."""
    found = dict(sorted(_read(files("recado.http") / "console")))
    digest = hashlib.sha256()
    for name, content in found.items():
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    build = digest.hexdigest()[:16]
    # Or one module after the other would tell the browser of the next.
    modules = "\n    ".join(
        f'<link rel="modulepreload" href="/console/{{build}}/{name}">'
        for name in found
        if name.endswith((".js", ".mjs"))
    )
    page = found.pop(PAGE).replace(b"{modules}", modules.encode()).replace(b"{build}", build.encode())
    policy = {"Content-Security-Policy": POLICY, "Referrer-Policy": "no-referrer"}
    return Console(
        build,
        _file(PAGE, page, _ANEW, policy),
        {name: _file(name, content, _FOR_GOOD, {}) for name, content in found.items()},
    )


def _read(folder: Traversable, before: str = "") -> Iterator[tuple[str, bytes]]:
    for each in folder.iterdir():
        name = f"{before}{each.name}"
        if each.is_dir():
            yield from _read(each, f"{name}/")
        elif each.name.rpartition(".")[2] in _TYPES:
            yield name, each.read_bytes()


def _file(name: str, content: bytes, cached: str, more: dict[str, str]) -> KeptFile:
    return KeptFile.of(content, _TYPES[name.rpartition(".")[2]], cached, more)
