"""An example of each event, with ids that belong to nothing: what the test of a subscription delivers (C23.1)."""

from collections.abc import Mapping
from typing import Any

from recado.domain.core.events import JOURNEY_ACTION

_AT = "2026-01-02T12:00:00.000Z"
_ZEROS = "0" * 21
_PHONE = "+55*******1234"
_MESSAGE: Mapping[str, Any] = {
    "id": f"msg_{_ZEROS}",
    "channel": "chatapp",
    "direction": "outbound",
    "type": "text",
    "status": "sent",
    "to": _PHONE,
    "numberId": f"num_{_ZEROS}",
    "metadata": {"order": "A-1"},
    "providerMessageId": "example",
    "createdAt": _AT,
    "sentAt": _AT,
}
_KEY = {
    "id": f"key_{_ZEROS}",
    "name": "Example",
    "env": "test",
    "scopes": ["messages:read"],
    "prefix": "svc_test_0000",
    "createdById": f"key_{_ZEROS}",
}
_TEMPLATE = {
    "id": f"tpl_{_ZEROS}",
    "numberId": f"num_{_ZEROS}",
    "name": "example",
    "language": "pt-BR",
    "category": "utility",
    "version": 1,
    "status": "approved",
}
_STANDING = {"qualityRating": "green", "messagingTier": "tier_1k", "status": "connected"}
_CONTACT = {"id": f"cnt_{_ZEROS}", "externalId": "example"}
_OTHERS: Mapping[str, Mapping[str, Any]] = {
    "campaign.completed": {
        "campaignId": "example",
        "totals": {
            "requested": 1,
            "accepted": 1,
            "skipped": 0,
            "queued": 0,
            "sent": 0,
            "delivered": 1,
            "read": 0,
            "failed": 0,
            "archived": 0,
        },
        "channels": ["chatapp"],
        "chargedCoins": 0,
        "firstMessageAt": _AT,
        "completedAt": _AT,
        "completions": 1,
    },
    "number.quality_changed": {
        "numberId": f"num_{_ZEROS}",
        "displayPhone": _PHONE,
        "previous": _STANDING,
        "current": {**_STANDING, "qualityRating": "yellow"},
    },
    "template.approved": _TEMPLATE,
    "template.rejected": {**_TEMPLATE, "status": "rejected", "rejectionReason": "example"},
    "contact.created": {
        **_CONTACT,
        "source": "api",
        "phone": _PHONE,
        "optInStatus": "unknown",
        "tags": [],
        "createdAt": _AT,
    },
    "contact.opted_out": {**_CONTACT, "phone": _PHONE, "source": "api", "revokedAt": _AT},
    "contact.consent_changed": {**_CONTACT, "from": "unknown", "to": "granted", "at": _AT, "dataInformada": False},
    "apikey.created": _KEY,
    "apikey.rotated": {**_KEY, "previousValidUntil": _AT},
    "wallet.low_balance": {"walletId": f"wal_{_ZEROS}", "availableCoins": 999, "thresholdCoins": 1000},
    "wallet.depleted": {"walletId": f"wal_{_ZEROS}", "availableCoins": 0},
    JOURNEY_ACTION: {
        "journey": {"id": f"jrn_{_ZEROS}", "name": "Example", "versao": 1},
        "execution": {"id": f"exe_{_ZEROS}"},
        "step": {"id": "call"},
        "contact": _CONTACT,
        "entrada": {"order": "A-1"},
    },
}
_EMAILS: Mapping[str, Mapping[str, Any]] = {
    "bounced": {"failedAt": _AT, "reason": "invalid_address", "bounceType": "permanent"},
    "complained": {"deliveredAt": _AT, "reason": "complaint"},
}
_FAMILIES = {"sms": "sms", "rcs": "rcs", "email": "email", "social": "social"}


def sample_of(event: str) -> dict[str, Any]:
    """Example data of an event."""
    other = _OTHERS.get(event)
    if other is not None:
        return dict(other)
    family, _, status = event.partition(".")
    data: dict[str, Any] = {
        **_MESSAGE,
        "channel": _FAMILIES.get(family, "chatapp"),
        "status": status.rpartition(".")[2],
    }
    if family in ("sms", "rcs", "email", "social"):
        del data["numberId"]
    if family == "email":
        data["to"] = "m***@example.com"
        if status != "clicked":
            data |= {"subject": "Example", "from": "Example <hello@example.com>"}
        data |= _EMAILS.get(status, {})
    elif family == "social":
        data |= {"to": "****6789", "socialAccountId": f"soc_{_ZEROS}"}
    if status.endswith("received"):
        data |= {"direction": "inbound", "status": "delivered"}
        if family == "sms":
            data["text"] = "Example"
        else:
            data |= {"payload": {"text": {"body": "Example"}}, "contact": {"id": _CONTACT["id"], "created": False}}
    elif family == "sms" and not status.endswith("clicked"):
        data |= {"route": "premium", "segments": 1, "region": "BR"}
        if status != "delivered":
            data |= {"failedAt": _AT, "reason": "carrier_rejected"}
    elif family == "rcs" and not status.endswith("clicked"):
        data["deliveredVia"] = "rcs"
        if status == "failed":
            data |= {"failedAt": _AT, "failureReason": "carrier_rejected"}
    elif status.endswith("failed"):
        data |= {"failedAt": _AT, "lastError": "provider_error: example", "attempts": 1}
    elif status.endswith("clicked"):
        data |= {"status": "delivered", "url": "https://example.com/", "clickedAt": _AT, "firstClick": True}
    elif status == "opened":
        data |= {"status": "delivered", "openedAt": _AT, "firstOpen": True}
    return data
