"""Phones in the data of a stored event: masked there, and beside that encrypted, for who may see them (C30.5)."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from recado.domain.core.events import MASKED_FIELDS
from recado.domain.core.masking import mask_phone
from recado.storage.core.crypto import KeyRing

SEALED: Final = "sealed"
"""The member that holds them; no delivery shows it."""
PHONES_FIELD: Final = "event_phones"


def has_phones(data: Mapping[str, Any]) -> bool:
    """Whether a field of the data is masked for most."""
    return any(isinstance(data.get(name), str) for name in MASKED_FIELDS)


def hides(stored: str) -> bool:
    """Whether stored data, as text, may say what most do not see; where not, they need not be read."""
    return any(name in stored for name in MASKED_FIELDS)


def sealed(data: Mapping[str, Any], keys: KeyRing, *, organization_id: str, event_id: str) -> dict[str, Any]:
    """The data as they are stored: in their order, and at the end what is hidden of them."""
    clear = {name: data[name] for name in MASKED_FIELDS if isinstance(data.get(name), str)}
    cipher = keys.encrypt(
        orjson.dumps(clear).decode(), organization_id=organization_id, record_id=event_id, field=PHONES_FIELD
    )
    return {**data, **{name: mask_phone(phone) for name, phone in clear.items()}, SEALED: cipher}


def shown(stored: str, keys: KeyRing | None, *, organization_id: str, event_id: str) -> dict[str, Any]:
    """The data of an event, with its phones; `keys` None: masked. Raises Tampered.

    A test's data have none of anybody, and those of a deleted contact have lost theirs.
    """
    data: dict[str, Any] = orjson.loads(stored)
    cipher = data.pop(SEALED, None)
    if keys is None:
        return data | {name: mask_phone(data[name]) for name in MASKED_FIELDS if isinstance(data.get(name), str)}
    if cipher is None:
        return data
    opened = keys.decrypt(cipher, organization_id=organization_id, record_id=event_id, field=PHONES_FIELD)
    clear: dict[str, str] = orjson.loads(opened)
    return data | clear
