"""Problems as `application/problem+json` (C4.1)."""

from typing import Any

import orjson

from recado.domain.core.errors import MAX_FIELD_ERRORS, Problem, problem_slug

MEDIA_TYPE = "application/problem+json"


class ProblemRenderer:
    """Writes problem bodies; `base_url` has no slash at its end."""

    def __init__(self, base_url: str) -> None:
        self._types = base_url.rstrip("/") + "/problems/"

    def type_of(self, code: str) -> str:
        """Return the address that names the kind of problem."""
        return self._types + problem_slug(code)

    def body(self, problem: Problem, instance: str, request_id: str) -> bytes:
        """Return the JSON of `problem`, which happened at the path `instance`."""
        return self.render(
            problem.code, problem.kind, problem.status, problem.title, problem.detail, instance, request_id,
            [{"path": e.path, "code": e.code, "message": e.message} for e in problem.errors[:MAX_FIELD_ERRORS]],
            problem.meta,
        )  # fmt: skip

    def render(
        self, code: str, kind: str, status: int, title: str, detail: str, instance: str, request_id: str,
        errors: list[dict[str, str]] | None = None, meta: Any = None,
    ) -> bytes:  # fmt: skip
        """Return the JSON of a problem given by its parts."""
        body: dict[str, Any] = {
            "type": self.type_of(code),
            "title": title,
            "status": status,
            "detail": detail,
            "instance": instance,
            "code": code,
            "kind": kind,
            "requestId": request_id,
        }
        if errors:
            body["errors"] = errors
        if meta:
            body["meta"] = dict(meta)
        return orjson.dumps(body)
