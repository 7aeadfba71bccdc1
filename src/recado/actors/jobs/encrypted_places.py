"""Every column that holds encrypted values (C30.1): a value in a place that is not listed here outlives its key."""

from typing import Final

from recado.actors.webhooks.webhook_attempt import ANSWER_FIELD
from recado.services.senders.accounts import ACCESS_TOKEN
from recado.storage.contacts.documents import CIPHER_COLUMNS
from recado.storage.core.upkeep.reencryption import CipherForm, Place
from recado.storage.push.apps import CREDENTIALS_FIELD, VAPID_FIELD
from recado.storage.webhooks.sealed_phones import PHONES_FIELD
from recado.storage.webhooks.webhooks import HEADERS_FIELD, SECRET_FIELD

_RECORD = ("organization_id", "id")
_DELIVERY = ("organization_id", "subscription_id", "id")

PLACES: Final = (
    *(Place("contacts", ("organization_id", "env", "id"), column, field) for field, column in CIPHER_COLUMNS.items()),
    Place("numbers", _RECORD, "access_token_cipher", ACCESS_TOKEN),
    Place("social_accounts", ("organization_id", "env", "id"), "access_token_cipher", ACCESS_TOKEN),
    Place("webhook_subscriptions", _RECORD, "secret_cipher", SECRET_FIELD),
    Place("webhook_subscriptions", _RECORD, "previous_secret_cipher", SECRET_FIELD),
    Place("webhook_subscriptions", _RECORD, "headers_cipher", HEADERS_FIELD),
    Place("push_apps", ("organization_id", "env", "id"), "credentials_cipher", CREDENTIALS_FIELD),
    Place("push_apps", ("organization_id", "env", "id"), "vapid_cipher", VAPID_FIELD),
    Place("events", _RECORD, "data", PHONES_FIELD, CipherForm.MEMBER),
    Place("delivery_queue", _DELIVERY, "history", ANSWER_FIELD, CipherForm.HISTORY),
    Place("deliveries", _DELIVERY, "history", ANSWER_FIELD, CipherForm.HISTORY),
)
