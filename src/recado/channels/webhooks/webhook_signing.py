"""The headers of a webhook delivery: who it is from, and two signatures over the same body (C23.4).

One family is ours (`X-SVC-Signature`), the other that of the public Standard Webhooks libraries; one key serves both.
"""

import base64
import hmac
import re
from collections.abc import Callable, Sequence

USER_AGENT = "SVC-Webhooks/2"
SECRET_PREFIX = "whsec_"  # noqa: S105 - what every secret begins with
SECRET_BYTES = 32
_REFUSED = re.compile(
    r"(host|content-.*|connection|transfer-encoding|te|upgrade|expect|trailer|keep-alive|proxy-.*|user-agent|webhook-.*|x-svc-.*)",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")
_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?|")


def new_secret(random_bytes: Callable[[int], bytes]) -> str:
    """A new secret, as its owner is shown it once."""
    return SECRET_PREFIX + base64.b64encode(random_bytes(SECRET_BYTES)).decode("ascii")


def header_key(key: str) -> str:
    """The key of a custom header (C23.1); ValueError for one that cannot be sent."""
    if not _TOKEN.fullmatch(key):
        raise ValueError("must be the name of a header")
    if _REFUSED.fullmatch(key):
        raise ValueError("must not be one that the service sets itself")
    return key


def header_value(value: str) -> str:
    """The value of a custom header; ValueError for one that cannot be sent."""
    if not _VALUE.fullmatch(value):
        raise ValueError("must hold printable ASCII only")
    return value


def static_lines(headers: Sequence[tuple[str, str]]) -> bytes:
    """The header lines that all deliveries of a subscription share.

    Subscriptions from before a header was refused may still have it stored: what the service sets itself stands alone.
    """
    lines = ["Content-Type: application/json", f"User-Agent: {USER_AGENT}"]
    lines += [f"{key}: {value}" for key, value in headers if not _REFUSED.fullmatch(key)]
    return "".join(f"{line}\r\n" for line in lines).encode("ascii")


def idempotency_line(key: str) -> bytes:
    """The header line by which a receiver knows the call of a step again (C9.13)."""
    return f"X-SVC-Idempotency-Key: {key}\r\n".encode("ascii")


def signed_lines(
    keys: Sequence[bytes], body: bytes, *, seconds: int, event_id: str, event: str, delivery_id: str, attempt: int
) -> bytes:
    """The header lines of one attempt, signed with each of the keys; `seconds`: the present Unix time."""
    ours = b"%d.%s" % (seconds, body)
    standard = b"%s.%s" % (event_id.encode("ascii"), ours)
    own = ",".join([f"t={seconds}", *(f"v1={hmac.digest(key, ours, 'sha256').hex()}" for key in keys)])
    public = " ".join(f"v1,{base64.b64encode(hmac.digest(key, standard, 'sha256')).decode('ascii')}" for key in keys)
    return (
        f"X-SVC-Signature: {own}\r\n"
        f"X-SVC-Event: {event}\r\nX-SVC-Delivery: {delivery_id}\r\nX-SVC-Attempt: {attempt}\r\n"
        f"webhook-id: {event_id}\r\nwebhook-timestamp: {seconds}\r\nwebhook-signature: {public}\r\n"
    ).encode("ascii")
