"""Who a call on a list's members names: contact ids, phones and external ids, each identifier once (C7.2)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from recado.domain.core.errors import Problem
from recado.domain.core.ids import CONTACT, is_id
from recado.domain.core.phones import canonical_phone
from recado.domain.core.steps import Steps

MAX_IDENTIFIERS: Final = 50_000
SAMPLE: Final = 100  # identifiers of a kind that an answer names as not found
MAX_LISTS: Final = 1_000
_LONGEST_EXTERNAL_ID: Final = 255
_STEP: Final = 1_000  # identifiers: some milliseconds when all of them are phones that are none


@dataclass(frozen=True, slots=True)
class Named:
    """The distinct identifiers of one kind. `given`: as they were written; `malformed`: no contact can have them."""

    keys: list[str]
    given: list[str]
    malformed: list[str]


@dataclass(frozen=True, slots=True)
class Identifiers:
    """Everybody whom a call names."""

    contact_ids: Named
    phones: Named
    external_ids: Named

    def __len__(self) -> int:
        """How many there are, malformed ones included."""
        return sum(len(kind.keys) + len(kind.malformed) for kind in self.kinds)

    @property
    def kinds(self) -> tuple[Named, Named, Named]:
        return self.contact_ids, self.phones, self.external_ids


def reading(contact_ids: Sequence[str], phones: Sequence[str], external_ids: Sequence[str]) -> Steps[Identifiers]:
    """The identifiers of a call; Problem 422 `TOO_MANY_IDENTIFIERS` beyond 50,000 in the three lists together (C7.2.2).

    Two spellings of one phone are one identifier. In steps of a thousand.
    """
    if len(contact_ids) + len(phones) + len(external_ids) > MAX_IDENTIFIERS:
        raise Problem("TOO_MANY_IDENTIFIERS", f"A call takes at most {MAX_IDENTIFIERS:,} identifiers: split it.")
    return Identifiers(
        (yield from _each(contact_ids, _contact_id)),
        (yield from _each(phones, _phone)),
        (yield from _each(external_ids, _external_id)),
    )


def _each(given: Sequence[str], key_of: Callable[[str], str | None]) -> Steps[Named]:
    keys: dict[str, str] = {}
    malformed: dict[str, None] = {}
    for start in range(0, len(given), _STEP):
        for text in given[start : start + _STEP]:
            key = key_of(text)
            if key is None:
                malformed[text] = None
            else:
                keys.setdefault(key, text)
        yield
    return Named(list(keys), list(keys.values()), list(malformed))


def _contact_id(text: str) -> str | None:
    return text if is_id(CONTACT, text) else None


def _external_id(text: str) -> str | None:
    return text if 1 <= len(text) <= _LONGEST_EXTERNAL_ID else None


def _phone(text: str) -> str | None:
    try:
        return canonical_phone(text)
    except Problem:
        return None
