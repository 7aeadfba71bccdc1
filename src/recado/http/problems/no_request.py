"""The answer to what never became a request, by the service and by the entry of cells."""

from typing import Final

from recado.domain.core.errors import CODES, KINDS
from recado.http.problems.problems import MEDIA_TYPE, ProblemRenderer
from recado.http.wire.rendering import WireResponse, head

RETRY_AFTER: Final = 5  # seconds, for anyone who finds no place
_USUAL: Final = {
    400: ("BAD_REQUEST", "This is not a valid HTTP request."),
    408: ("BAD_REQUEST", "The head of the request took too long to arrive."),
    500: ("INTERNAL_ERROR", "The request could not be completed."),
    503: ("SERVICE_UNAVAILABLE", "There are too many connections; try again shortly."),
}


def answer_to_no_request(problems: ProblemRenderer, status: int, detail: str | None, request_id: str) -> WireResponse:
    """The last of its connection. `detail`: None for what is usual."""
    code, usual = _USUAL.get(status) or _USUAL[500 if status >= 500 else 400]
    status = status if status in _USUAL else CODES[code].status
    body = problems.render(code, KINDS[status], status, CODES[code].title, detail or usual, "", request_id)
    lines = f"X-Request-Id: {request_id}\r\nCache-Control: no-store\r\nConnection: close\r\n"
    if status == 503:
        lines += f"Retry-After: {RETRY_AFTER}\r\n"
    return WireResponse(head(status, lines, len(body), MEDIA_TYPE) + body, status, keep_alive=False)
