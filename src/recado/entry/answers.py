"""What the entry answers itself, in the form that all answers have: refusals, and whether it is there."""

from collections.abc import Callable

from aiohttp.web_request import BaseRequest
from prometheus_client import CONTENT_TYPE_LATEST

from recado.domain.core.errors import Problem, Unavailable
from recado.http.problems.no_request import answer_to_no_request
from recado.http.problems.problems import MEDIA_TYPE, ProblemRenderer
from recado.http.wire.rendering import JSON, WireResponse, clean, dump, head

_CLOSING = frozenset({408, 413})  # the rest of a body may still be on its way


class EntryAnswers:
    """Renders them. `draining`: every answer ends its connection from now on."""

    def __init__(self, base_url: str, new_id: Callable[[], str]) -> None:
        self.draining = False
        self._problems = ProblemRenderer(base_url)
        self._new_id = new_id

    def problem(self, problem: Problem, request: BaseRequest, path: str, request_id: str) -> WireResponse:
        """A refusal."""
        body = self._problems.body(problem, path.encode("utf-8", "replace").decode(), request_id)
        lines = "".join(f"{name}: {clean(value)}\r\n" for name, value in problem.headers.items())
        return self._answer(problem.status, f"X-Request-Id: {request_id}\r\n{lines}", body, MEDIA_TYPE, request)

    def probe(self, ready: bool, request: BaseRequest) -> WireResponse:
        """Of `/healthz` and `/readyz`."""
        if not ready:
            return self.problem(Unavailable("No part of the service answers."), request, "/readyz", self._new_id())
        return self._answer(200, "", dump({"status": "ok"}), JSON, request)

    def metrics(self, text: bytes, request: BaseRequest) -> WireResponse:
        """Of `/metrics`."""
        return self._answer(200, "", text, CONTENT_TYPE_LATEST, request)

    def of_no_request(self, status: int, detail: str | None) -> WireResponse:
        """The answer to what never became a request, the last of its connection."""
        return answer_to_no_request(self._problems, status, detail, self._new_id())

    def _answer(self, status: int, lines: str, body: bytes, kind: str, request: BaseRequest) -> WireResponse:
        keep_alive = request.keep_alive and not self.draining and status not in _CLOSING
        lines += "Cache-Control: no-store\r\n" + ("" if keep_alive else "Connection: close\r\n")
        wire = head(status, lines, len(body), kind)
        return WireResponse(wire if request.method == "HEAD" else wire + body, status, keep_alive=keep_alive)
