"""Operations of one tag, each declared in a few lines: `wallet.route("GET /v2/wallet", "getWallet", "…", read)`."""

from dataclasses import dataclass
from typing import Unpack

from recado.http.api.route import Handler, Idempotency, Route, RouteOptions


@dataclass(frozen=True, slots=True)
class Group:
    """What is the same of them: the tag, and the scopes that reading and writing ask for."""

    tag: str
    reads: str
    writes: str
    session_only: bool = False

    def route(
        self, target: str, operation_id: str, summary: str, handler: Handler, **options: Unpack[RouteOptions]
    ) -> Route:
        """The operation of a method and a path. A GET reads, all others write, unless `options` say otherwise."""
        method, path = target.split()
        reads = method == "GET"
        usual: RouteOptions = {
            "scope": self.reads if reads else self.writes,
            "rate_class": "read" if reads else "write",
            "idempotency": Idempotency.ACCEPTED if method == "POST" else Idempotency.NONE,
            "session_only": self.session_only,
        }
        said: RouteOptions = {**usual, **options}
        return Route(
            method=method, path=path, handler=handler, operation_id=operation_id, summary=summary, tag=self.tag, **said
        )
