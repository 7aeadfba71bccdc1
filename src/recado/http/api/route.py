"""One operation of the interface: its address, what it takes and gives, and what must hold before its handler runs.

The table of routes is the single source of the dispatcher and of the OpenAPI document.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypedDict

from pydantic import BaseModel

from recado.http.api.call import Call
from recado.http.api.models import QueryModel
from recado.http.wire.reply import Reply

MIB = 1024 * 1024

Handler = Callable[[Call], Awaitable[Reply]]
Examine = Callable[[Call], Awaitable[object] | object]

Shortcut = Callable[[str, str | None], str | bytes | Awaitable[str | None] | None]
"""From the last part of a path, as sent, and the caller's program to where it leads, at once or when that is known; or
to the GIF that it is. None: the handler has to say.
"""


class Access(Enum):
    """Which credential an operation asks for (C3.1)."""

    KEY = "key"  # an API key or a dashboard session
    PUBLIC = "public"  # none
    ADMIN = "admin"  # the installation administrator
    CALLBACK = "callback"  # none here: the handler verifies the provider's signature


class Idempotency(Enum):
    """How an operation treats `Idempotency-Key` (C6.2)."""

    NONE = "none"
    ACCEPTED = "accepted"  # the answer is kept and given again
    BOUND = "bound"  # the handler binds the key to the row it creates
    REQUIRED = "required"  # as BOUND, and the header must be there


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """An operation. `path` has parameters in braces (`/messages/{id}`); see the comments for the rest."""

    method: str
    path: str
    handler: Handler
    operation_id: str
    summary: str
    tag: str
    scope: str | None = None
    or_scopes: tuple[str, ...] = ()  # each opens it as well: its handler asks for the one that the body needs
    access: Access = Access.KEY
    administered: bool = False  # beside its callers with a key, the installation's administrator may call it (C34.1)
    rate_class: str = ""  # of C6.1; empty only where no request is counted
    # Leads on whoever opens a link, without the steps of other requests; `path` ends with its one parameter (0051).
    shortcut: Shortcut | None = None
    description: str = ""
    query: type[QueryModel] | None = None
    body: type[BaseModel] | None = None
    # By the member `channel` of a body: the models of those whose bodies are not of the model `body`.
    bodies: Mapping[str, type[BaseModel]] = field(default_factory=dict)
    # Raises what can be said before anything of the body is read: for callers without a credential.
    before_body: Callable[[Call], None] | None = None
    raw_body: bool = False  # the handler reads `call.raw_body` itself: any Content-Type
    # The body goes to a file, `call.spool`, and is of one of these media types; a model describes what it holds.
    spooled: Mapping[str, type[BaseModel] | None] = field(default_factory=dict)
    body_limit: int = MIB
    headers: Mapping[str, str] = field(default_factory=dict)  # required ones, which its handler reads, each described
    probe: bool = False  # who watches the program asks it now and then: nobody else's requests go in turns for that
    slow: bool = False  # its answer may take 90 s, for a provider has a minute
    responses: Mapping[int, type[BaseModel] | None] = field(default_factory=dict)
    response_types: Mapping[int, str] = field(default_factory=dict)  # media types that are not JSON
    errors: tuple[str, ...] = ()  # codes that the handler adds to those of the steps before it
    bad_query_status: int = 400  # C4.3.2
    bad_body_status: int = 422  # C4.3.3
    idempotency: Idempotency = Idempotency.NONE
    # Of a BOUND operation: whether a body (its JSON) makes no row to bind the key to, so that its answer is kept.
    makes_no_row: Callable[[Any], bool] | None = None
    replay: Callable[[Call, int, Any], Awaitable[Reply]] | None = None  # renders a kept body again for this caller
    # Answers a repeat whose kept body is gone with the contact that it showed (C12.6); without it that is 409.
    replay_erased: Callable[[Call, int], Awaitable[Reply]] | None = None
    versioned: bool = False  # ETag, If-Match, If-None-Match (C6.3)
    matches: bool = False  # If-Match alone: an action on a versioned resource that its answer does not show
    creates: bool = False  # there is no current version: any If-Match fails
    # Of a create, raises what its handler refuses in the body, which comes before that (C2.6). It changes nothing, and
    # is called only where there is an If-Match. Every create that takes a body says what it is, if only `as_modelled`.
    examine: Examine | None = None
    # What it gives is shown once. A repeat whose first answer is lost replaces that, and ends nothing else (C6.2).
    rotates: bool = False
    # The handler sets `call.answer` before its commit, which keeps it: also where it is lost a repeat gets it (C6.2).
    answers_in_commit: bool = False
    session_only: bool = False
    while_suspended: bool = False  # a write that is taken from a suspended organization too
    at_fronts: bool = False  # it needs no actor but by a hint: any process of the service answers it
    documented: bool = True  # pages for people stay out of the OpenAPI document
    path_ids: Mapping[str, str] = field(default_factory=dict)  # parameter → id prefix; another form answers 404
    # Finds the path's resource before the body is looked at (C2.6) and leaves it in `call.resource`.
    load: Callable[[Call], Awaitable[Any]] | None = None

    @property
    def body_optional(self) -> bool:
        """Whether an empty body stands for `{}`: every field is optional (C2.3.7)."""
        return self.body is not None and not any(field.is_required() for field in self.body.model_fields.values())


def as_modelled(_: Call) -> None:
    """Examine nothing: what the model of the body says is all that can be wrong with it."""


class RouteOptions(TypedDict, total=False):
    """What an operation says of itself beside what it shares with those of its kind; see `Route`."""

    scope: str
    rate_class: str
    description: str
    query: type[QueryModel]
    body: type[BaseModel]
    body_limit: int
    bad_body_status: int
    bad_query_status: int
    responses: Mapping[int, type[BaseModel] | None]
    response_types: Mapping[int, str]
    errors: tuple[str, ...]
    idempotency: Idempotency
    replay: Callable[[Call, int, Any], Awaitable[Reply]]
    versioned: bool
    matches: bool
    creates: bool
    examine: Examine
    rotates: bool
    answers_in_commit: bool
    session_only: bool
    while_suspended: bool
    at_fronts: bool
    administered: bool
    path_ids: Mapping[str, str]
    load: Callable[[Call], Awaitable[Any]]
