"""The key pair that an app shows push services of browsers: drawn once, its public half given to pages (RFC 8292)."""

from typing import Final

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from recado.domain.core.base64url import base64url, from_base64url

RANDOM_BYTES: Final = 48  # so many more than a key has that each key is as likely as any other
_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # of P-256


def vapid_pair(random: bytes) -> tuple[str, str]:
    """The private and the public key, base64url. `random`: `RANDOM_BYTES` unpredictable ones."""
    secret = int.from_bytes(random, "big") % (_ORDER - 1) + 1
    public = ec.derive_private_key(secret, ec.SECP256R1()).public_key()
    point = public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return base64url(secret.to_bytes(32, "big")), base64url(point)


def private_key(text: str) -> ec.EllipticCurvePrivateKey:
    """The private key of a pair."""
    return ec.derive_private_key(int.from_bytes(from_base64url(text), "big"), ec.SECP256R1())
