"""Keeps personal data and secrets out of log entries (C30.3, C30.5): the last processor before an entry is rendered.

Texts under a secret-looking name are replaced whole; in all others, tokens, e-mail addresses and phones are replaced
wherever they appear. Numbers stay: no log entry carries a phone as a number, and rates count tokens.
"""

import re
import traceback
from collections.abc import Mapping
from types import TracebackType
from typing import Any

REDACTED = "[redacted]"

_SECRET_NAME = re.compile(
    r"token|secret|password|passwd|authorization|cookie|credential|signature|cipher|api_?key|private_?key|"
    r"encryption_?keys?|cursor_?key|index_?key|database_?url|\bdsn\b|cpf|cnpj|birth_?date|nascimento",
    re.IGNORECASE,
)
_PATTERNS = (
    # Credentials of ours, whole or cut short, and any bearer token.
    (re.compile(r"\bsvcs?_(?:live|test)_[0-9A-Za-z]*"), "[token]"),
    (re.compile(r"\bsvci_[0-9A-Za-z]*"), "[token]"),
    (re.compile(r"\bscrypt\.[\w.-]+"), "[password]"),
    # A CPF or CNPJ in its mask; their bare digits are taken for a phone's.
    (re.compile(r"\b\d{3}\.\d{3}\.\d{3}-\d{2}\b|\b\w{2}\.\w{3}\.\w{3}/\w{4}-\d{2}\b"), "[document]"),
    (re.compile(r"\bbearer\s+[^\s'\",]+", re.IGNORECASE), "Bearer [token]"),
    (re.compile(r"\b(token|secret|password|api_?key|signature|sig)=[^&\s'\"]+", re.IGNORECASE), r"\1=[redacted]"),
    # The user part of an address such as a database's.
    (re.compile(r"(?<=://)[^\s/@'\"]+(?=@)"), "[credentials]"),
    (re.compile(r"[\w.+%'-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+"), "[e-mail]"),
    # A phone with its plus, however it is grouped, and a bare run of as many digits.
    (re.compile(r"\+[1-9](?:[ .()-]{0,2}\d){7,14}"), "[phone]"),
    (re.compile(r"(?<![\w.])\d{10,15}(?![\w.]\d)(?!\w)"), "[phone]"),
)
_MAX_DEPTH = 6
_OWN_NAMES = frozenset({"timestamp", "level", "logger"})


def redact_entry(_logger: Any, _method: str, entry: Any) -> Any:
    """Redact every value of a log entry, as a structlog processor; what the logging itself added stays."""
    return {name: value if name in _OWN_NAMES else redact(value, name) for name, value in entry.items()}


def redact(value: Any, name: str = "", depth: int = 0) -> Any:
    """Return `value`, which stands under `name`, without personal data and secrets; objects become their text."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if _SECRET_NAME.search(name):
        return REDACTED
    if depth > _MAX_DEPTH:
        return REDACTED
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, Mapping):
        return {redact_text(str(key)): redact(item, str(key), depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [redact(item, "", depth + 1) for item in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return f"[{len(value)} bytes]"
    if isinstance(value, BaseException):
        return redact_text(describe(value))
    return redact_text(str(value))


def redact_text(text: str) -> str:
    """Replace tokens, credentials in addresses, e-mail addresses and phones in a text."""
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text


def describe(error: BaseException) -> str:
    """Return an exception's type and message, but no message that may quote stored or received values.

    Errors of the database and of validation quote rows and input (a message's text, say): of those only the kind stays.
    """
    kind = type(error)
    package = kind.__module__.partition(".")[0]
    if package == "asyncpg":
        facts = {name: getattr(error, name, None) for name in ("sqlstate", "constraint_name", "table_name")}
        shown = " ".join(f"{name}={value}" for name, value in facts.items() if value)
        return f"{kind.__qualname__}({shown})"
    if package in ("pydantic", "pydantic_core"):
        return f"{kind.__qualname__}({getattr(error, 'title', '')})"
    return f"{kind.__qualname__}: {error}" if str(error) else kind.__qualname__


def render_error(exc_info: tuple[Any, BaseException, Any]) -> str:
    """Return the text of an error and of those that led to it: described, with frames, without values of variables."""
    return "\n".join(_lines(exc_info[1], set()))


def _lines(error: BaseException, seen: set[int]) -> list[str]:
    seen.add(id(error))
    lines: list[str] = []
    origin = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if origin is not None and id(origin) not in seen:
        lines += [*_lines(origin, seen), "which led to:"]
    lines += [describe(error), *_frames(error.__traceback__)]
    if isinstance(error, BaseExceptionGroup):
        for member in error.exceptions:
            if id(member) not in seen:
                lines += [f"  | {line}" for line in _lines(member, seen)]
    return lines


def _frames(trace: TracebackType | None) -> list[str]:
    return [f"  {frame.filename}:{frame.lineno} in {frame.name}" for frame in traceback.extract_tb(trace)]
