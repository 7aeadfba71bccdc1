"""Which cell a request is for: one table, by path. What has no row is for the cell that its credential is of."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from recado.domain.core.ids import BODY_LENGTH, ORGANIZATION
from recado.domain.core.tokens import is_session, token_env, token_hash
from recado.domain.links.text_links import CODE_LENGTH
from recado.storage.access.accounts import email_key
from recado.storage.cells.whereabouts import Shown, Shows

LONGEST_EMAIL: Final = 320  # characters; a longer one is nobody's


class Way(Enum):
    """Where a request goes."""

    HERE = "here"  # the entry answers itself
    NOWHERE = "nowhere"  # each cell has its own; who runs the cells asks them
    ANY = "any"  # every cell gives the same answer
    ALL = "all"  # it names no organization: each cell takes what is its own
    CREDENTIAL = "credential"  # of `Authorization`
    PATH = "path"  # of what `path` finds as `shown`
    BODY = "body"  # of a member of the JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """`path` matches the whole path, without the query. `method`: None is every one.

    `shows`, `begins`: what is shown, and what stands before it in the cell's own tables. `member`: of the body.
    `unknown`: statuses by which a cell says that it has not what is shown: then it may have moved. `hides`: nobody may
    find out what is known: all cells are asked each time, and while one is away a refusal is 503. `held`: during a move
    neither cell may have it. `limit`: the class of requests (C6.1) whose tokens those use up who show what is unknown.
    `strangers`: who shows nothing that is known comes to some cell, which refuses it as it does.
    """

    path: re.Pattern[str]
    way: Way
    method: str | None = None
    shows: Shows | None = None
    begins: str = ""
    member: str = ""
    unknown: frozenset[int] = frozenset({401})
    hides: bool = False
    held: bool = False
    limit: str = "failed"
    strangers: bool = True


def _path(text: str) -> re.Pattern[str]:
    return re.compile(text)


_CODE: Final = f"(?P<shown>[0-9A-Za-z]{{{CODE_LENGTH}}})"
_ID: Final = f"(?P<shown>[0-9A-Za-z]{{{BODY_LENGTH}}})"
_404: Final = frozenset({404})

RULES: Final[tuple[Rule, ...]] = (
    # Asks a proxy to be led on, and has no body, whatever length its head says: a cell that waits for one would take
    # the next request on the connection, which is another caller's, for that.
    Rule(path=_path("(?s:.*)"), way=Way.NOWHERE, method="CONNECT"),
    Rule(path=_path("/healthz|/readyz|/metrics"), way=Way.HERE),
    Rule(path=_path("/v2/admin(/.*)?"), way=Way.NOWHERE),
    # Pages and documents, which are those of the version.
    Rule(path=_path("/console(/.*)?|/docs(/.*)?|/problems(/.*)?|/v2/openapi\\.json"), way=Way.ANY),
    # What was paid is told once, and waits in no cell for the organization that is on its way.
    Rule(path=_path("/v2/callbacks/payments/.*"), way=Way.ALL, method="POST", held=True),
    # Of providers. One that asks whether the address is ours asks any cell: all have the same secrets.
    Rule(path=_path("/v2/callbacks/.*"), way=Way.ALL, method="POST"),
    Rule(path=_path("/v2/callbacks/.*"), way=Way.ANY),
    # What people open.
    Rule(path=_path(f"/l/{_CODE}"), way=Way.PATH, shows=Shows.LINK, unknown=_404, held=True, limit="public"),
    Rule(path=_path(f"/c/{_CODE}"), way=Way.PATH, shows=Shows.CHAT, unknown=_404, held=True, limit="public"),
    # The image and the unsubscription of an e-mail: the token has the organization behind the letter of its
    # environment. That it is signed the cell verifies.
    Rule(
        path=_path(f"/o/[tl]{_ID}[A-Za-z0-9_-]*\\.gif"), way=Way.PATH, shows=Shows.ORGANIZATION, begins=ORGANIZATION,
        unknown=_404, limit="public",
    ),
    Rule(
        path=_path(f"/u/[tl]{_ID}[A-Za-z0-9_-]*"), way=Way.PATH, shows=Shows.ORGANIZATION, begins=ORGANIZATION,
        unknown=_404, limit="public",
    ),
    # Signed addresses of stored files.
    Rule(
        path=_path(f"/storage/{ORGANIZATION}{_ID}/.*"), way=Way.PATH, shows=Shows.ORGANIZATION, begins=ORGANIZATION,
        unknown=_404, limit="public",
    ),
    Rule(path=_path("/[lcou]/.*|/storage/.*"), way=Way.ANY),  # of no form: nowhere
    # Signing in, and accepting an invitation.
    Rule(
        path=_path("/v2/sessions"), way=Way.BODY, method="POST", shows=Shows.EMAIL, member="email", hides=True,
        unknown=frozenset({401, 429}), limit="login",
    ),
    Rule(
        path=_path("/v2/accounts/accept-invite"), way=Way.BODY, method="POST", shows=Shows.INVITE, member="token",
        limit="login",
    ),
    # What the administrator of an installation may see, too: only who has a key of an organization gets through.
    Rule(path=_path("/v2/ops/.*"), way=Way.CREDENTIAL, strangers=False),
    Rule(path=_path(".*"), way=Way.CREDENTIAL),
)  # fmt: skip


def rule_of(method: str, path: str) -> tuple[Rule, str | None]:
    """The first row that fits, and what the path shows. `path`: without percent signs."""
    for rule in RULES:
        if (rule.method is None or rule.method == method) and (found := rule.path.fullmatch(path)) is not None:
            return rule, found["shown"] if rule.way is Way.PATH else None
    return RULES[-1], None  # a path with a line break in it


def shown_by_token(token: str) -> tuple[Shows, Shown] | None:
    """What a token of an organization shows; None for any other text, which costs no look-up."""
    if token_env(token) is None:
        return None
    return Shows.SESSION if is_session(token) else Shows.KEY, token_hash(token)


_FROM_BODY: Final[dict[Shows, Callable[[str], Shown]]] = {Shows.EMAIL: email_key, Shows.INVITE: token_hash}


def shown_by_text(rule: Rule, text: object) -> tuple[Shows, Shown] | None:
    """What a text shows that stands where the rule says; None where it can be nobody's."""
    if rule.shows is None or not isinstance(text, str) or not text.isprintable() or len(text) > LONGEST_EMAIL:
        return None
    made = _FROM_BODY.get(rule.shows)
    return rule.shows, rule.begins + text if made is None else made(text)
