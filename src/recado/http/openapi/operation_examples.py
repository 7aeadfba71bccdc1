"""Examples of operations in the OpenAPI document, written by hand or made of the schemas, and the calls of them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final
from urllib.parse import quote, urlencode

from recado.domain.channels.chatapp import CHATAPP
from recado.http.api.route import Access, Route
from recado.http.openapi.code_samples import SampleCall, code_samples
from recado.http.openapi.value_samples import SchemaSamples
from recado.http.openapi.written_examples import Example

JSON: Final = "application/json"
_TOKENS: Final = {Access.KEY: "KEY", Access.ADMIN: "RECADO_ADMIN_TOKEN"}
_FEWEST: Final = 3  # members of a body that could have fewer
_SESSION: Final = "SESSION_TOKEN"


class Exemplifier:
    """Gives each operation its examples, and samples of code that send them."""

    def __init__(
        self, routes: Iterable[Route], definitions: Mapping[str, Any], written: Mapping[str, Example], base_url: str
    ) -> None:
        """`definitions`: the schemas by name; `written`: examples by operation."""
        self._samples = SchemaSamples(definitions)
        self._written = written
        self._base_url = base_url.rstrip("/")
        self._prefixes = {segment: prefix for route in routes for segment, prefix in _named(route)}

    def learn(self, route: Route, operation: Mapping[str, Any]) -> None:
        """Let what was written for an operation stand for the same things wherever they are shown."""
        if (written := self._written.get(route.operation_id)) is not None:
            for answer in _answers(operation) if written.response is not None else ():
                self._samples.learn(answer["schema"], written.response)
            if written.request is not None:
                self._samples.learn(operation["requestBody"]["content"][JSON]["schema"], written.request)

    def exemplify(self, route: Route, operation: dict[str, Any]) -> None:
        """Put examples into the JSON of the body and of each success, and `x-codeSamples` beside them."""
        written = self._written.get(route.operation_id)
        prefix = next((self._prefixes[part] for part in reversed(route.path.split("/")) if part in self._prefixes), "")
        body = None
        if (content := operation.get("requestBody", {}).get("content", {}).get(JSON)) is not None:
            if written is not None and written.request is not None:
                body = written.request
            else:
                body = self._samples.of(content["schema"], prefix=prefix, fewest=_FEWEST)
            if written is not None and written.requests:
                shown = {body.get("channel", CHATAPP): body, **written.requests}
                content["examples"] = {channel: {"value": each} for channel, each in shown.items()}
            else:
                content["example"] = body
        answers = _answers(operation)
        for answer in answers:
            if written is not None and written.response is not None:
                answer["example"] = written.response
            else:
                answer["example"] = self._samples.of(answer["schema"], prefix=prefix)
        operation["x-codeSamples"] = code_samples(
            SampleCall(
                method=route.method,
                url=self._address(route, operation),
                token=_SESSION if route.session_only else _TOKENS.get(route.access, ""),
                headers={
                    parameter["name"]: "order-A-1"
                    for parameter in operation.get("parameters", ())
                    if parameter["in"] == "header" and parameter.get("required")
                },
                body=body,
                answers_json=bool(answers),
            )
        )

    def _address(self, route: Route, operation: Mapping[str, Any]) -> str:
        values = {
            parameter["name"]: self._samples.of(parameter["schema"], name=parameter["name"])
            for parameter in operation.get("parameters", ())
            if parameter.get("required") and parameter["in"] in {"path", "query"}
        }
        path = re.sub(r"\{(\w+)\}", lambda found: quote(str(values.pop(found[1])), safe=""), route.path)
        return self._base_url + path + (f"?{urlencode(values)}" if values else "")


def _answers(operation: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The JSON of its successes; a document of any shape has no example."""
    successes = (response for status, response in operation["responses"].items() if status < "300")
    found = (response.get("content", {}).get(JSON) for response in successes)
    return [answer for answer in found if answer is not None and answer["schema"]]


def _named(route: Route) -> Iterator[tuple[str, str]]:
    """The prefixes of ids by the part of a path that they stand behind: `contacts`, `cnt_`."""
    parts = route.path.split("/")
    for before, part in pairwise(parts):
        if prefix := route.path_ids.get(part.strip("{}")):
            yield before, prefix
