"""What a caller could tell two refusals apart by."""

import re
from typing import Any

import orjson

_ID = re.compile(rb"\b[a-z]{3,4}_[0-9A-Za-z]{21}\b")


def comparable(body: Any) -> Any:
    """The body of a refusal without what the request says itself: its path, ids and environment."""
    told = _ID.sub(b"ID", orjson.dumps({**body, "requestId": "", "instance": ""}))
    return orjson.loads(told.replace(b" in live.", b" in test."))
