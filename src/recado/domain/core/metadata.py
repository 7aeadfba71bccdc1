"""Correlation metadata: small flat values that a caller attaches and gets back unchanged in every webhook."""

import re
from typing import Any, Final

from recado.domain.core.errors import FieldError

MAX_KEYS: Final = 20
MAX_TEXT: Final = 256

_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}").fullmatch


def metadata_errors(value: Any, path: str = "/metadata") -> list[FieldError]:
    """What is wrong with a metadata object, or with the `properties` of a customer event (C15.2).

    At most 20 keys; a key starts with a letter and has up to 64 of letters, digits, `_`, `.` and `-`; a value is a text
    of up to 256 characters, a number of as many with all its digits, or a boolean. Messages never repeat the caller's
    keys or values.
    """
    if not isinstance(value, dict):
        return [FieldError(path, "METADATA_INVALID", "Metadata must be an object.")]
    if len(value) > MAX_KEYS:
        return [FieldError(path, "METADATA_INVALID", f"Metadata has at most {MAX_KEYS} keys.")]
    found = []
    for index, (key, item) in enumerate(value.items()):
        # A bad key may be anything, also personal data: it is named by its place.
        if not isinstance(key, str) or _KEY(key) is None:
            found.append(
                FieldError(
                    path,
                    "METADATA_INVALID",
                    f"Key {index + 1} is not a letter followed by up to 63 letters, digits, _, . or -.",
                )
            )
        elif isinstance(item, str):
            if len(item) > MAX_TEXT:
                found.append(
                    FieldError(f"{path}/{key}", "METADATA_INVALID", f"A text has at most {MAX_TEXT} characters.")
                )
            elif "\0" in item:
                found.append(FieldError(f"{path}/{key}", "INVALID_CHARACTER", "U+0000 is not allowed."))
        elif not isinstance(item, bool | int | float):
            found.append(
                FieldError(
                    f"{path}/{key}",
                    "METADATA_INVALID",
                    "A value of metadata must be a text, a number or true or false.",
                )
            )
    return found
