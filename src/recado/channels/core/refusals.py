"""A provider's refusal in our words: one of the codes of C15.4 and a short text without personal data (C30.5)."""

import re
from collections.abc import Collection, Sequence
from functools import cache

from recado.domain.channels.policies import POLICIES
from recado.domain.messages.message import FailureCode

MAX_TEXT = 200  # characters
_TELLING = 4  # shorter values say nothing of a person, and blotting them out would say nothing of the error

# `outcome_unknown` and `withdrawn` are ours to say.
PROVIDER_CODES = frozenset(FailureCode) - {FailureCode.OUTCOME_UNKNOWN, FailureCode.WITHDRAWN}

_LONG_NUMBER = re.compile(r"\+?\d(?:[\s().\-]{0,2}\d){7,}")
_ADDRESS = re.compile(r"[^\s@<>]{1,64}@[^\s@<>]{1,255}")


@cache
def codes_of(channel: str) -> frozenset[str]:
    """Those that a provider of the channel may give."""
    return PROVIDER_CODES | POLICIES[channel].refusals


def refusal_code(code: object, known: Collection[str] = PROVIDER_CODES) -> str:
    """The code when it is one that a provider of the channel may give, else `provider_error`."""
    return str(code) if isinstance(code, str) and code in known else FailureCode.PROVIDER_ERROR.value


def bounded_text(text: str, personal: Sequence[str]) -> str:
    """One line of at most `MAX_TEXT` characters; `personal` values, long numbers and addresses become `***`."""
    text = " ".join(text.split())
    for value in personal:
        value = " ".join(value.split())
        if len(value) >= _TELLING:
            text = text.replace(value, "***")
    text = _ADDRESS.sub("***", _LONG_NUMBER.sub("***", text[: 5 * MAX_TEXT]))
    return "".join(character if character.isprintable() else " " for character in text[:MAX_TEXT])
