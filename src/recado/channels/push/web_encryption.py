"""What only the browser can read (RFC 8291, `aes128gcm` of RFC 8188), and who sends it (VAPID, RFC 8292)."""

from collections.abc import Callable

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from recado.channels.push.web_tokens import es256_token
from recado.domain.core.base64url import from_base64url
from recado.domain.push.vapid import private_key

RECORD = 4_096  # bytes: the whole is one record
LONGEST = RECORD - 16 - 1 - 86  # bytes of a text: push services need not take more than 4,096 in all
_CURVE = ec.SECP256R1()


def encrypted(text: bytes, *, p256dh: str, auth: str, random_bytes: Callable[[int], bytes]) -> bytes:
    """The body for a browser with these keys. Raises ValueError for keys that are none."""
    theirs = from_base64url(p256dh.rstrip("="))
    receiver = ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, theirs)
    ours = ec.generate_private_key(_CURVE)
    point = ours.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    shared = ours.exchange(ec.ECDH(), receiver)
    secret = _derived(shared, from_base64url(auth.rstrip("=")), b"WebPush: info\0" + theirs + point, 32)
    salt = random_bytes(16)
    key = _derived(secret, salt, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derived(secret, salt, b"Content-Encoding: nonce\0", 12)
    head = salt + RECORD.to_bytes(4, "big") + bytes([len(point)]) + point
    return head + AESGCM(key).encrypt(nonce, text + b"\x02", None)


def vapid_token(private: str, *, audience: str, subject: str, expires: int) -> str:
    """A token for the push service at `audience`, signed with ES256. `expires`: seconds since 1970."""
    return es256_token({"typ": "JWT"}, {"aud": audience, "exp": expires, "sub": subject}, private_key(private))


def _derived(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(SHA256(), length, salt, info).derive(secret)
