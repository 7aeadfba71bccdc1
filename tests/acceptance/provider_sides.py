"""How each live adapter's provider signs its callbacks, and says the same things in its own words."""

import hashlib
import hmac
import time
from collections.abc import Mapping
from typing import Any

import orjson

SECRET = "a secret between the two"
ACCOUNT, BUSINESS = "106540352242922", "102290129340398"
PERSON = "+5511987654321"
Body = dict[str, Any]


class BridgeSide:
    """How a bridge signs and says it."""

    name = "bridge"

    def __init__(self, port: int) -> None:
        self.settings = {
            "ADAPTER_CHATAPP": "bridge",
            "BRIDGE_CHATAPP_URL": f"http://127.0.0.1:{port}",
            "BRIDGE_CHATAPP_TOKEN": "any",
            "BRIDGE_CHATAPP_SECRET": SECRET,
        }

    def signed(self, body: bytes, *, secret: str = SECRET, ahead: int = 0) -> dict[str, str]:
        at = int(time.time()) + ahead
        digest = hmac.new(secret.encode(), b"%d." % at + body, hashlib.sha256).hexdigest()
        return {"X-SVC-Provider-Signature": f"t={at},v1={digest}"}

    def report(self, status: str, reference: str, *, account: str = ACCOUNT, provider_id: str = "unheard-of") -> bytes:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        event = {"kind": "status", "status": status, "at": at, "reference": reference, "account": account}
        return orjson.dumps({"events": [{**event, "providerMessageId": provider_id}]})

    def inbound(self, text: str, provider_id: str) -> bytes:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        event = {"kind": "inbound", "account": ACCOUNT, "from": PERSON, "at": at, "type": "text", "profileName": "Ana"}
        return orjson.dumps(
            {"events": [{**event, "payload": {"text": {"body": text}}, "providerMessageId": provider_id}]}
        )

    def wrong(self, body: bytes) -> dict[str, Mapping[str, str]]:
        """Headers that are not believed, beside those of every adapter."""
        good = self.signed(body)["X-SVC-Provider-Signature"]
        return {
            "late": self.signed(body, ahead=-310),
            "from the future": self.signed(body, ahead=310),
            "of two times": {"X-SVC-Provider-Signature": f"{good},t={int(time.time())}"},
            "without a time": {"X-SVC-Provider-Signature": good.partition(",")[2]},
            "with a time that is none": {"X-SVC-Provider-Signature": "t=١٢٣,v1=00".encode().decode("latin-1")},
            "very long": {"X-SVC-Provider-Signature": good + ",v1=0" * 1000},
        }


class CloudSide:
    """How the hosted API signs and says it."""

    name = "cloud"

    def __init__(self, port: int) -> None:
        self.settings = {
            "ADAPTER_CHATAPP": "cloud",
            "CLOUD_URL": f"http://127.0.0.1:{port}/v24.0",
            "CLOUD_APP_SECRET": SECRET,
            "CLOUD_VERIFY_TOKEN": "a token to verify with",
        }

    def signed(self, body: bytes, *, secret: str = SECRET, ahead: int = 0) -> dict[str, str]:
        return {"X-Hub-Signature-256": f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"}

    def report(self, status: str, reference: str, *, account: str = ACCOUNT, provider_id: str = "unheard-of") -> bytes:
        item = {"id": provider_id, "status": status, "timestamp": str(int(time.time())), "recipient_id": PERSON[1:]}
        value = {
            "metadata": {"phone_number_id": account},
            "statuses": [{**item, "biz_opaque_callback_data": reference}],
        }
        entry = {"id": BUSINESS, "changes": [{"field": "messages", "value": value}]}
        return orjson.dumps({"object": "whatsapp_business_account", "entry": [entry]})

    def inbound(self, text: str, provider_id: str) -> bytes:
        item = {"from": PERSON[1:], "id": provider_id, "timestamp": str(int(time.time())), "type": "text"}
        value = {
            "metadata": {"phone_number_id": ACCOUNT},
            "contacts": [{"wa_id": PERSON[1:], "profile": {"name": "Ana"}}],
            "messages": [{**item, "text": {"body": text}}],
        }
        entry = {"id": BUSINESS, "changes": [{"field": "messages", "value": value}]}
        return orjson.dumps({"object": "whatsapp_business_account", "entry": [entry]})

    def wrong(self, body: bytes) -> dict[str, Mapping[str, str]]:
        good = self.signed(body)["X-Hub-Signature-256"]
        return {
            "of the older kind": {
                "X-Hub-Signature": f"sha1={hmac.new(SECRET.encode(), body, hashlib.sha1).hexdigest()}"
            },
            "in capitals": {"X-Hub-Signature-256": good.upper()},
            "without its name": {"X-Hub-Signature-256": good.removeprefix("sha256=")},
            "of other letters": {"X-Hub-Signature-256": "sha256=é" + good[8:]},
        }
