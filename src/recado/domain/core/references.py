"""Says which record does not exist: by the name of its kind, its id and the environment that was searched (C4.1)."""

import re
from typing import Final

from recado.domain.core import ids
from recado.domain.core.errors import FieldError, Problem

KINDS: Final[dict[str, str]] = {
    ids.ACCOUNT: "account",
    ids.API_KEY: "API key",
    ids.AUDIT: "audit entry",
    ids.BATCH: "batch",
    ids.COMPANY: "company",
    ids.CONTACT: "contact",
    ids.CONTACT_IMPORT: "import",
    ids.CUSTOMER_EVENT: "customer event",
    ids.DEBTOR_GROUP: "debt group",
    ids.DELIVERY: "delivery",
    ids.EMAIL_SENDER: "sender",
    ids.EMAIL_SUPPRESSION: "suppression",
    ids.EMAIL_TEMPLATE: "e-mail template",
    ids.EVENT: "event",
    ids.EXECUTION: "execution",
    ids.FLOW: "flow",
    ids.JOURNEY: "journey",
    ids.LEDGER_ENTRY: "ledger entry",
    ids.LIST: "list",
    ids.MEDIA: "media",
    ids.MESSAGE: "message",
    ids.NUMBER: "number",
    ids.ORGANIZATION: "organization",
    ids.ORIGIN_LINK: "origin link",
    ids.PUSH_APP: "push app",
    ids.PUSH_DEVICE: "device",
    ids.PUSH_DISPATCH: "dispatch",
    ids.PUSH_MESSAGE: "push message",
    ids.SEGMENT: "segment",
    ids.SESSION: "session",
    ids.SOCIAL_ACCOUNT: "social account",
    ids.TEMPLATE: "template",
    ids.TOP_UP: "top-up",
    ids.WALLET: "wallet",
    ids.WEBHOOK: "webhook subscription",
}
"""What the records of an id's prefix are called."""

WITHOUT_ENVIRONMENT: Final = frozenset({ids.ACCOUNT, ids.ORGANIZATION, ids.SESSION})

# Only what was meant as an id is repeated: any other text could be a phone or an address.
_LIKE_AN_ID: Final = re.compile(r"([a-z]{3,4}_)[0-9A-Za-z]{1,40}")


def no_such(prefix: str, value: str, env: str) -> str:
    """One sentence: `No template tpl_… in test.` `env` empty: of no environment."""
    kind = KINDS.get(prefix, "record")
    like = _LIKE_AN_ID.fullmatch(value)
    if like is None:
        return f"The given text is not {_article(kind)} id: those are {prefix} and {ids.BODY_LENGTH} letters or digits."
    if like[1] != prefix:
        other = KINDS.get(like[1])
        is_one = "" if other is None else f" This looks like {_article(other)} id."
        return f"{value} is not {_article(kind)} id: those begin with {prefix}.{is_one}"
    return f"No {kind} {value}{'' if not env or prefix in WITHOUT_ENVIRONMENT else f' in {env}'}."


def _article(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeioA' else 'a'} {kind}"


def reference_not_found(field: str, prefix: str, value: str, env: str, *, parameter: bool = False) -> Problem:
    """422: the body's `field` (`filter.batchId`) names, by `value`, a record that `env` does not hold (C4.3.4).

    `parameter`: the field is one of the query, whose name is its path (C4.1).
    """
    return wrong_reference(field, no_such(prefix, value, env), parameter=parameter)


def wrong_reference(field: str, detail: str, *, parameter: bool = False) -> Problem:
    """422: as `reference_not_found`, with a sentence of its own."""
    error = FieldError(field if parameter else "/" + field.replace(".", "/"), "REFERENCE_NOT_FOUND", detail)
    said = f"{field}: {detail[0].lower()}{detail[1:]}"
    return Problem("REFERENCE_NOT_FOUND", said, errors=[error], meta={"field": field})
