"""Operations that callers look for under another word or method: what is usual elsewhere, and what it is here."""

from typing import Final

from recado.http.api.router import Router

_ANY: Final = "*"

# What callers send: what they mean. Never an operation of the administrator.
MEANT: Final = {
    "DELETE /messages/{id}": "POST /messages/{id}/archive",
    "* /messages/{id}/cancel": "POST /messages/{id}/archive",
    "* /messages/{id}/withdraw": "POST /messages/{id}/archive",
    "* /messages/{id}/delete": "POST /messages/{id}/archive",
    "POST /messages/{id}": "POST /messages",  # /messages/send
    "* /messages/{id}/resend": "POST /messages/{id}/reprocess",
    "* /messages/{id}/retry": "POST /messages/{id}/reprocess",
    "DELETE /v2/batches/{id}": "POST /v2/batches/{id}/cancel",
    "* /v2/batches/{id}/stop": "POST /v2/batches/{id}/cancel",
    "* /contacts/{id}/opt-out": "POST /contacts/opt-out",
    "* /webhooks/{id}/deliveries/{deliveryId}/retry": "POST /webhooks/{id}/deliveries/{deliveryId}/replay",
}

_ROUTER: Final = Router[str]((method, path, MEANT[f"{method} {path}"]) for method, path in map(str.split, MEANT))


def usual(method: str, target: str) -> str | None:
    """Return the method and the path of the operation that a caller probably means who asks for this; None without one.

    `target`: a path as sent, that has no operation of this method.
    """
    found = _ROUTER.find(target)
    return None if found is None else found[0].get(method, found[0].get(_ANY))
