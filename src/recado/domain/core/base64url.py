"""Bytes in addresses, tokens and keys: base64 of RFC 4648, section 5, without padding."""

from base64 import b64decode, urlsafe_b64encode


def base64url(data: bytes) -> str:
    """As text, without padding."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def from_base64url(text: str) -> bytes:
    """Of text without padding; raises ValueError (`binascii.Error`) for what is none.

    The last character may carry bits that are dropped: where one spelling alone is valid, compare with `base64url`.
    """
    return b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
