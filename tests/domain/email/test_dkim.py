"""The signature, as other programs see it (C10.2.12)."""

import asyncio
import base64
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import dkim
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as generate_rsa_key
from tests.domain.email.emails import some_email
from tests.domain.email.test_mime import AT, CONTENT, ORIGIN

from recado.domain.email.dkim import DkimKey, dkim_key, relaxed_body, relaxed_header
from recado.domain.email.mime import compose

NODE = Path(__file__).parents[2] / "node"
RSA = generate_rsa_key(65_537, 2_048)
ED25519 = Ed25519PrivateKey.generate()
PEM, DER = serialization.Encoding.PEM, serialization.Encoding.DER
Key = RSAPrivateKey | Ed25519PrivateKey


def signing(key: Key) -> DkimKey:
    return DkimKey("example.com", "recado", key)


def record(key: Key) -> str:
    """As its owner enters it at the name server."""
    if isinstance(key, RSAPrivateKey):
        public = key.public_key().public_bytes(DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        return f"v=DKIM1; k=rsa; p={base64.b64encode(public).decode()}"
    public = key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return f"v=DKIM1; k=ed25519; p={base64.b64encode(public).decode()}"


def verified_by_dkimpy(data: bytes, key: Key) -> bool:
    found: bool = dkim.verify(data, dnsfunc=lambda name, timeout=5: record(key).encode())
    return found


async def verified_by_mailauth(data: bytes, key: Key) -> list[dict[str, Any]]:
    node = shutil.which("node")
    if node is None or not (NODE / "node_modules" / "mailauth").exists():
        pytest.skip("mailauth for Node.js is not installed: `make test` installs it where nodejs and npm are")
    process = await asyncio.create_subprocess_exec(
        node, str(NODE / "dkim.mjs"), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    given = json.dumps({"message": base64.b64encode(data).decode(), "record": record(key)})
    output, _ = await process.communicate(given.encode())
    found: list[dict[str, Any]] = json.loads(output)
    return found


@pytest.mark.parametrize("seed", range(20))
def test_dkimpy_verifies_random_emails_and_none_that_was_changed(seed: int) -> None:
    content, to = some_email(Random(seed))
    email = compose(content, to, ORIGIN, signing(RSA))
    if email.utf8:
        return  # dkimpy reads no header outside of ASCII; mailauth does, below
    assert verified_by_dkimpy(email.data, RSA)
    head, _, body = email.data.partition(b"\r\n\r\n")
    assert not verified_by_dkimpy(head + b"\r\n\r\nmore" + body, RSA)
    assert not verified_by_dkimpy(head + b"\r\nSubject: another\r\n\r\n" + body, RSA)
    assert not verified_by_dkimpy(head + b"\r\nFrom: eve@evil.example\r\n\r\n" + body, RSA)


def test_what_ses_writes_anew_breaks_no_signature() -> None:
    data = compose(CONTENT, "ana@example.com", ORIGIN, signing(RSA)).data
    head, _, body = data.partition(b"\r\n\r\n")
    anew = {b"Date": b"Fri, 27 Nov 2026 08:00:00 +0000", b"Message-ID": b"<0100@email.amazonses.com>"}
    lines = [
        name + b": " + anew[name] if (name := line.partition(b":")[0]) in anew else line for line in head.split(b"\r\n")
    ]
    assert lines != head.split(b"\r\n")
    assert verified_by_dkimpy(b"\r\n".join(lines) + b"\r\n\r\n" + body, RSA)


@pytest.mark.node
@pytest.mark.parametrize(("key", "algorithm"), [(RSA, "rsa-sha256"), (ED25519, "ed25519-sha256")])
@pytest.mark.parametrize("to", ["ana@example.com", "josé@bücher.example"])
async def test_mailauth_verifies_both_kinds_of_keys(key: Key, algorithm: str, to: str) -> None:
    content, _ = some_email(Random(3))
    (found,) = await verified_by_mailauth(compose(content, to, ORIGIN, signing(key)).data, key)
    assert (found["result"], found["algorithm"]) == ("pass", algorithm), found
    assert (found["domain"], found["selector"]) == ("example.com", "recado")


def test_without_a_key_nothing_is_signed() -> None:
    assert b"DKIM-Signature" not in compose(CONTENT, "ana@example.com", ORIGIN).data


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (lambda key: key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, NONE).decode(), "PEM"),
        (lambda key: one_line(key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, NONE)), "PEM on one line"),
        (lambda key: base64.b64encode(key.private_bytes(DER, serialization.PrivateFormat.PKCS8, NONE)).decode(), "DER"),
    ],
)
@pytest.mark.parametrize("key", [RSA, ED25519])
def test_a_key_is_read_however_it_is_written(written: Callable[[Key], str], text: str, key: Key) -> None:
    data = compose(CONTENT, "ana@example.com", ORIGIN, dkim_key("example.com", "recado", written(key))).data
    assert b"d=example.com; s=recado;" in data
    if isinstance(key, RSAPrivateKey):
        assert verified_by_dkimpy(data, key)


NONE = serialization.NoEncryption()


def one_line(pem: bytes) -> str:
    return pem.decode().replace("\n", "\\n")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hunter2",
        base64.b64encode(b"hunter2").decode(),
        "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----",
        generate_private_key(SECP256R1()).private_bytes(PEM, serialization.PrivateFormat.PKCS8, NONE).decode(),
        RSA.private_bytes(
            PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"hunter2")
        ).decode(),
    ],
)
def test_what_is_no_key_for_signing_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(ValueError, match="key") as refused:
        dkim_key("example.com", "recado", text)
    assert "hunter2" not in str(refused.value)


def test_white_space_is_relaxed_as_the_rfc_has_it() -> None:
    assert relaxed_header("SubJect", b" AbC\r\n  d \t e  ") == b"subject:AbC d e"
    assert relaxed_body(b" C \r\nD \t E\r\n\r\n\r\n") == b" C\r\nD E\r\n"
    assert relaxed_body(b"\r\n\r\n") == b""


def test_when_it_was_signed_is_told() -> None:
    assert f" t={int(AT.timestamp())};".encode() in compose(CONTENT, "ana@example.com", ORIGIN, signing(RSA)).data


def test_spaces_go_as_if_they_were_looked_for_at_each_place() -> None:
    chance = Random(1)
    for _ in range(3_000):
        body = bytes(chance.choices(b" \t\r\nab", k=chance.randrange(30)))
        plain = re.sub(rb"[ \t]+", b" ", re.sub(rb"[ \t]+\r\n", b"\r\n", body)).rstrip(b"\r\n")
        assert relaxed_body(body) == (plain + b"\r\n" if plain else b"")


def test_a_long_run_of_spaces_inside_a_line_is_read_once() -> None:
    """Read at each space anew, this would take hours."""
    assert relaxed_body(b" " * 1024 * 1024 + b"a\r\n") == b" a\r\n"
