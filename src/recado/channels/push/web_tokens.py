"""JSON web tokens (RFC 7519), by which push services know who calls."""

import json
from collections.abc import Mapping
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from recado.domain.core.base64url import base64url


def es256_token(head: Mapping[str, Any], claims: Mapping[str, Any], key: ec.EllipticCurvePrivateKey) -> str:
    """Signed with ECDSA on P-256; `alg` is added to the head."""
    signed = _signed({"alg": "ES256", **head}, claims)
    r, s = decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(SHA256())))
    return f"{signed}.{base64url(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def rs256_token(head: Mapping[str, Any], claims: Mapping[str, Any], key: rsa.RSAPrivateKey) -> str:
    """Signed with RSA (PKCS #1 v1.5); `alg` is added to the head."""
    signed = _signed({"alg": "RS256", **head}, claims)
    return f"{signed}.{base64url(key.sign(signed.encode(), padding.PKCS1v15(), SHA256()))}"


def _signed(head: Mapping[str, Any], claims: Mapping[str, Any]) -> str:
    """What the signature is of."""
    return ".".join(base64url(json.dumps(part, separators=(",", ":")).encode()) for part in (head, claims))
