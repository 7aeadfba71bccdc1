"""What tests of journeys share: zones, and a contact."""

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from recado.domain.contacts.contact import Contact
from recado.domain.core.ids import CONTACT, lowest_id

BORN = datetime(2026, 1, 1, 2, 30, tzinfo=UTC)  # 31 December in São Paulo
SAO_PAULO = ZoneInfo("America/Sao_Paulo")
LISBON = ZoneInfo("Europe/Lisbon")
BERLIN = ZoneInfo("Europe/Berlin")
LORD_HOWE = ZoneInfo("Australia/Lord_Howe")


def person(**fields: Any) -> Contact:
    return Contact(
        **{
            "organization_id": "org_1",
            "env": "live",
            "id": lowest_id(CONTACT, BORN),
            "phone": "+5511987654321",
            "phone_hash": b"",
            "updated_at": BORN,
            **fields,
        }
    )
