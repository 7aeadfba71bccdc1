"""Leads the fuzzer to records that exist, and keeps it from sawing off the branch it sits on."""

import itertools
import json
import os
import re
from typing import Any

import schemathesis

_IDS: dict[str, str] = json.loads(os.environ["FUZZ_IDS"])  # by prefix
_OWN = set(json.loads(os.environ["FUZZ_OWN"]))
_ID = re.compile(r"([a-z]+_)[0-9A-Za-z]{20}([0-9A-Za-z])")
_KEY = re.compile(r"[ -~]{1,240}")
_serial = itertools.count(1)
_made: set[str] = set()


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """What generation cannot know: which ids exist, which keys are new, which versions are current."""
    for name, value in case.path_parameters.items():
        match = _ID.fullmatch(value) if isinstance(value, str) else None
        if match is not None:
            case.path_parameters[name] = _path_id(case.method, value, match)
    headers = case.headers or {}
    key, version = headers.get("Idempotency-Key"), headers.get("If-Match")
    if isinstance(key, str) and _KEY.fullmatch(key):
        # The generator is fond of "0": nearly every request would be the repeat of another one.
        case.headers["Idempotency-Key"] = f"{key.strip() or 'k'}-{next(_serial)}"
    if isinstance(version, str) and len(version) % 2:
        case.headers["If-Match"] = "*"
    if isinstance(case.body, dict | list):
        case.body = _with_plain_ends(case.body)


@schemathesis.hook
def after_call(context: Any, case: Any, response: Any) -> None:
    """Remember what the service made for the fuzzer, so that a sequence goes on with its own record."""
    if response.status_code == 201:
        made = response.json()
        if isinstance(made, dict) and isinstance(made.get("id"), str):
            _made.add(made["id"])


def _with_plain_ends(value: Any) -> Any:
    """The same with texts that begin and end with no white space: it is trimmed, and then a length is another one."""
    if isinstance(value, dict):
        return {name: _with_plain_ends(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_with_plain_ends(item) for item in value]
    if not isinstance(value, str) or value == value.strip():
        return value
    left, right = len(value) - len(value.lstrip()), len(value.rstrip())
    return "x" * left + value[left:right] + "x" * (len(value) - max(left, right))


def _path_id(method: str, value: str, match: re.Match[str]) -> str:
    """An id that exists in half of the cases; one that an earlier answer gave stays as it is.

    A change of the key that the fuzzer calls with, or of that key's organization, is turned to one that does not exist.
    """
    if method != "GET" and value in _OWN:
        return match[1] + "0" * 21
    if value in _made:
        return value
    return _IDS.get(match[1], value) if match[2] < "V" else value
