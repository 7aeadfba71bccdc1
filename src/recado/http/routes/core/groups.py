"""Operations of one tag, each declared in a few lines: `wallet.route("GET /v2/wallet", "getWallet", "…", read)`."""

from dataclasses import dataclass
from typing import Final, Unpack

from recado.http.api.route import Access, Handler, Idempotency, Route, RouteOptions


@dataclass(frozen=True, slots=True)
class Group:
    """What is the same of them: the tag, whom they are for, and the scopes that reading and writing ask for."""

    tag: str
    reads: str = ""
    writes: str = ""
    session_only: bool = False
    access: Access = Access.KEY

    def route(
        self, target: str, operation_id: str, summary: str, handler: Handler, **options: Unpack[RouteOptions]
    ) -> Route:
        """The operation of a method and a path. A GET reads, all others write, unless `options` say otherwise."""
        method, path = target.split()
        usual: RouteOptions = {}
        if self.access is Access.KEY:
            reads = method == "GET"
            usual["scope"] = self.reads if reads else self.writes
            usual["rate_class"] = "read" if reads else "write"
            usual["idempotency"] = Idempotency.ACCEPTED if method == "POST" else Idempotency.NONE
        said: RouteOptions = {"session_only": self.session_only, **usual, **options}
        return Route(
            method=method, path=path, handler=handler, operation_id=operation_id, summary=summary, tag=self.tag,
            access=self.access, **said,
        )  # fmt: skip


ADMINISTRATION: Final = Group("Administration", access=Access.ADMIN)
