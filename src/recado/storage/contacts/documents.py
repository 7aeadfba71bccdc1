"""A contact's documents as they are stored: encrypted, and beside them a blind index that finds them (C30.1, C30.2).

A value is bound to its organization, contact and field: moved anywhere else it does not decrypt. The index is keyed, so
that a copy of the database does not let anyone try all CPFs. Neither is ever returned.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from recado.domain.contacts.documents import BIRTH_DATE, CNPJ, CPF, SHOWN_AS, searched_document
from recado.domain.core.masking import mask_birth_date, mask_cnpj, mask_cpf
from recado.storage.core.crypto import KeyRing, Tampered

CIPHER_COLUMNS = {CPF: "cpf_cipher", CNPJ: "cnpj_cipher", BIRTH_DATE: "birth_date_cipher"}
INDEX_COLUMNS = {CPF: "cpf_index", CNPJ: "cnpj_index"}

_MASKS = {CPF: mask_cpf, CNPJ: mask_cnpj, BIRTH_DATE: mask_birth_date}
_KNOWN_ORGANIZATIONS = 1_000


@dataclass(frozen=True, slots=True)
class SealedDocument:
    """What the two columns of a document hold. `index` (32 bytes) is None for the birth date, which nobody looks up."""

    cipher: str = field(repr=False)
    index: bytes | None = field(repr=False)


class DocumentCipher:
    """Seals, masks, reveals and finds documents. Names of fields are those of `documents.py`."""

    def __init__(self, keys: KeyRing, index_key: bytes) -> None:
        """`index_key`: at least 32 unpredictable bytes that stay the same for ever (setting `INDEX_KEY`)."""
        self.keys = keys
        self._index_key_of = lru_cache(_KNOWN_ORGANIZATIONS)(
            lambda organization_id: _derive(index_key, organization_id)
        )

    def seal(self, name: str, value: str, *, organization_id: str, env: str, contact_id: str) -> SealedDocument:
        """Encrypt the canonical `value` of the document `name` for this contact."""
        cipher = self.keys.encrypt(value, organization_id=organization_id, record_id=contact_id, field=name)
        index = self.index(name, value, organization_id=organization_id, env=env) if name in INDEX_COLUMNS else None
        return SealedDocument(cipher, index)

    def open(self, name: str, cipher: str, *, organization_id: str, contact_id: str) -> str:
        """Return what was sealed; raises `storage.crypto.Tampered` when it is not what was sealed for this place."""
        return self.keys.decrypt(cipher, organization_id=organization_id, record_id=contact_id, field=name)

    def holds(self, name: str, cipher: str, value: str, *, organization_id: str, contact_id: str) -> bool:
        """Whether `value` was sealed for this place; what fails authentication holds nothing."""
        try:
            return self.open(name, cipher, organization_id=organization_id, contact_id=contact_id) == value
        except Tampered:
            return False

    def seal_rows(self, rows: bytes, *, organization_id: str, import_id: str, first_row: int) -> bytes:
        """Encrypt rows of an import, which may hold documents of many contacts, for their place in it."""
        place = {"organization_id": organization_id, "record_id": import_id, "field": f"rows from {first_row}"}
        return self.keys.seal(rows, **place)

    def open_rows(self, sealed: bytes, *, organization_id: str, import_id: str, first_row: int) -> bytes:
        """Return the rows that were sealed for this place; raises Tampered."""
        place = {"organization_id": organization_id, "record_id": import_id, "field": f"rows from {first_row}"}
        return self.keys.unseal(sealed, **place)

    def masked(self, ciphers: Mapping[str, str | None], *, organization_id: str, contact_id: str) -> dict[str, str]:
        """Return `documentos` of a contact: the masked values under the names callers see (C30.3).

        `ciphers` by field; what is None is left out. Raises Tampered.
        """
        return {
            SHOWN_AS[name]: _MASKS[name](
                self.open(name, cipher, organization_id=organization_id, contact_id=contact_id)
            )
            for name, cipher in ciphers.items()
            if cipher is not None
        }

    def index(self, name: str, value: str, *, organization_id: str, env: str) -> bytes:
        """Return the blind index (32 bytes) of a canonical CPF or CNPJ: the same for equal values of an environment."""
        return hmac.digest(self._index_key_of(organization_id), f"{env}\n{name}\n{value}".encode(), "sha256")

    def searched(self, text: str, *, organization_id: str, env: str) -> tuple[str, bytes] | None:
        """Return the index column that `?documento=text` asks for and its value; None when no contact can have it."""
        found = searched_document(text)
        if found is None:
            return None
        name, value = found
        return INDEX_COLUMNS[name], self.index(name, value, organization_id=organization_id, env=env)


def _derive(index_key: bytes, organization_id: str) -> bytes:
    return HKDF(SHA256(), 32, salt=None, info=f"blind index\n{organization_id}".encode()).derive(index_key)
