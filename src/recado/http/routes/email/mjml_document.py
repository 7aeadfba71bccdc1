"""MJML as a body that a worker process reads: it is compiled there, where nothing of it can harm anybody else (C10.4).

The compiler may end its process, or take memory and time: the process has bounds, and is replaced.
"""

import re
from typing import Final, NoReturn, Self

import orjson
from pydantic import Field, model_validator

from recado.domain.core.errors import FieldError, Problem
from recado.domain.email.mjml import MjmlFault, fault_at, faults_of
from recado.domain.email.rendering import MOST_OPENED, EmailPart, is_too_long, names_in
from recado.http.api.models import ApiModel
from recado.http.bodies.body_workers import BodyWorkers

PROCESSES: Final = 1
_PLACE: Final = re.compile(r" at position (\d+):\d+$")


class MjmlDocument(ApiModel):
    """`html` and `names`, which it uses, are what it is compiled to; none of them where it has faults."""

    mjml: str
    html: str = ""
    names: list[str] = Field(default_factory=list)
    faults: list[MjmlFault] = Field(default_factory=list)

    @model_validator(mode="after")
    def _compile(self) -> Self:
        self.faults = faults_of(self.mjml)
        if not self.faults:
            try:
                self.html = compiled(self.mjml)
            except ValueError as error:
                self.faults = [_fault(self.mjml, str(error))]
        if is_too_long(EmailPart.HTML, self.html):
            self.faults = [MjmlFault(1, 1, "the HTML that is made of it is longer than 1 MiB")]
        elif self.html.count("{{") > MOST_OPENED:
            self.faults = [MjmlFault(1, 1, f"the HTML that is made of it holds `{{{{` more than {MOST_OPENED:,} times")]
        if self.faults:
            self.html = ""
        self.names = list(names_in(self.html))
        return self


def compiled(source: str) -> str:
    """The HTML of MJML without known faults. Raises ValueError for others."""
    # Imported where it is used: the service itself never runs it.
    from mjml import mjml2html

    try:
        return mjml2html(source)
    except Exception:
        raise
    except BaseException as error:  # a panic of the compiler is no Exception
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        raise ValueError("the compiler failed") from None


async def compile_mjml(workers: BodyWorkers, source: str, *, caller: str) -> tuple[str, list[str]]:
    """The HTML of MJML, and the names that it uses. Raises `Problem` MJML_INVALID; `Unavailable`."""
    body = orjson.dumps({"mjml": source})
    read = await workers.read(MjmlDocument, body, caller=caller, bad_status=422, most_values=None)
    document: MjmlDocument = await read.value()
    if document.faults:
        raise_faults(document.faults)
    return document.html, document.names


def raise_faults(faults: list[MjmlFault]) -> NoReturn:
    """MJML_INVALID with the place of each; `meta` has that of the first."""
    first = faults[0]
    errors = [FieldError("/mjml", "MJML_INVALID", f"{fault}.") for fault in faults]
    more = "" if len(faults) == 1 else f" {len(faults) - 1} more faults are in `errors`."
    raise Problem("MJML_INVALID", f"{first}.{more}", errors=errors, meta={"line": first.line, "column": first.column})


def _fault(source: str, told: str) -> MjmlFault:
    """What the compiler says, which names places in bytes, if at all."""
    found = _PLACE.search(told)
    place = len(source.encode()[: int(found[1])].decode(errors="ignore")) if found else 0
    return fault_at(source, place, "the compiler cannot read it" + ("" if found else ", and does not say where"))
