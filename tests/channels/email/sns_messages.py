"""Envelopes as SNS sends them, signed with a key of the tests."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.x509.oid import NameOID

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
TOPIC = "arn:aws:sns:eu-west-1:123456789012:recado"
CERTIFICATE = "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-01d088a6.pem"
SUBSCRIBE = "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=x&Token=2336"
HASHES = {"1": hashes.SHA1(), "2": hashes.SHA256()}


def certificate_of(key: RSAPrivateKey, *, until: datetime = NOW + timedelta(days=30)) -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sns.amazonaws.com")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW - timedelta(days=30))
        .not_valid_after(until)
    )
    return made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


KEY = generate_private_key(65_537, 2_048)


def text_to_sign(told: dict[str, Any]) -> str:
    """As SNS documents it."""
    if told["Type"] == "Notification":
        text = f"Message\n{told['Message']}\nMessageId\n{told['MessageId']}\n"
        if "Subject" in told:
            text += f"Subject\n{told['Subject']}\n"
    else:
        text = f"Message\n{told['Message']}\nMessageId\n{told['MessageId']}\n"
        text += f"SubscribeURL\n{told['SubscribeURL']}\n"
    text += f"Timestamp\n{told['Timestamp']}\n"
    if told["Type"] != "Notification":
        text += f"Token\n{told['Token']}\n"
    return text + f"TopicArn\n{told['TopicArn']}\nType\n{told['Type']}\n"


def envelope(message: Any = "x", *, key: RSAPrivateKey = KEY, version: str = "1", **changes: Any) -> dict[str, Any]:
    told = {
        "Type": "Notification",
        "MessageId": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
        "TopicArn": TOPIC,
        "Message": message if isinstance(message, str) else orjson.dumps(message).decode(),
        "Timestamp": NOW.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "SignatureVersion": version,
        "SigningCertURL": CERTIFICATE,
        "UnsubscribeURL": "https://sns.eu-west-1.amazonaws.com/?Action=Unsubscribe",
        **changes,
    }
    told = {name: value for name, value in told.items() if value is not None}
    signature = key.sign(text_to_sign(told).encode(), PKCS1v15(), HASHES[version])
    return {**told, "Signature": base64.b64encode(signature).decode()}


def confirmation(**changes: Any) -> dict[str, Any]:
    given = {"Type": "SubscriptionConfirmation", "Token": "2336412f", "SubscribeURL": SUBSCRIBE, **changes}
    return envelope("You have chosen to subscribe to the topic.", **given)


def body(told: dict[str, Any]) -> bytes:
    return orjson.dumps(told)
