"""The events that webhook subscriptions can take, and what is fixed about each of them (C23.5, C23.6)."""

from typing import Final

EVENT_NAMES: Final = (
    "message.sent",
    "message.delivered",
    "message.read",
    "message.failed",
    "message.received",
    "campaign.completed",
    "number.quality_changed",
    "template.approved",
    "template.rejected",
    "contact.created",
    "contact.opted_out",
    "contact.consent_changed",
    "apikey.created",
    "apikey.rotated",
    "sms.delivered",
    "sms.failed",
    "sms.undelivered",
    "sms.received",
    "sms.clicked",
    "email.delivered",
    "email.bounced",
    "email.complained",
    "email.opened",
    "email.clicked",
    "rcs.delivered",
    "rcs.read",
    "rcs.failed",
    "rcs.clicked",
    "wallet.low_balance",
    "wallet.depleted",
    "social.message.received",
    "social.message.sent",
    "social.message.failed",
)
"""Everything a subscription may name; `*` stands for all of them (C1.26)."""

EVERY: Final = "*"
JOURNEY_ACTION: Final = "journey.action"
"""What a webhook step of a journey tells its subscription (C9.13); nobody subscribes to it."""

API_VERSION: Final = "2"
MASKED_FIELDS: Final = ("phone", "displayPhone", "chatappUserId")
"""Members of an event's data that name a person: masked unless the subscription includes personal data."""
