"""docs/webhooks.md: the code that it shows verifies what the service signs."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from recado.channels.core.signing import signing_key
from recado.channels.webhooks.webhook_signing import new_secret, signed_lines
from recado.http.routes.webhooks.webhook_models import WebhookCreate

PAGE = (Path(__file__).parents[2] / "docs" / "webhooks.md").read_text("utf-8")
AT = 1_795_220_025
BODY = b'{"id":"evt_1"}'


def test_the_headers_of_the_page_are_of_the_form_that_is_taken() -> None:
    (example,) = re.findall(r"^`headers`, such as `(.*?)`", PAGE, re.MULTILINE)
    body = {"url": "https://example.com/", "events": ["*"], "headers": json.loads(example)}
    assert WebhookCreate.model_validate(body).headers is not None


def shown() -> Any:
    """The function of the page, at a fixed time."""
    code = re.search(r"<!-- verify:.*?-->\n```python\n(.*?)```", PAGE, re.DOTALL)
    assert code is not None
    names: dict[str, Any] = {}
    exec(code[1], names)
    assert len(code[1].strip().splitlines()) <= 12
    return names


def header(*secrets: str) -> str:
    lines = signed_lines(
        [signing_key(secret) for secret in secrets],
        BODY,
        seconds=AT,
        event_id="evt_1",
        event="message.sent",
        delivery_id="dlv_1",
        attempt=1,
    )
    return lines.decode().partition("X-SVC-Signature: ")[2].partition("\r\n")[0]


def test_the_ten_lines_verify_a_delivery_and_refuse_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    new, former, foreign = (new_secret(lambda n, c=c: bytes([c]) * n) for c in b"abc")
    verify = shown()
    monkeypatch.setattr(verify["time"], "time", lambda: AT + 299.0)
    for held in (new, former):
        assert verify["is_from_recado"](held, header(new, former), BODY)
    assert not verify["is_from_recado"](foreign, header(new, former), BODY)
    assert not verify["is_from_recado"](former, header(new), BODY)
    assert not verify["is_from_recado"](new, header(new), BODY + b" ")
    assert not verify["is_from_recado"](new, header(new).replace(f"t={AT}", f"t={AT + 1}"), BODY)
    for odd in ("", f"t={AT},v1=é", f"t=²,v1={'0' * 64}", "t", "v1=,t="):
        assert not verify["is_from_recado"](new, odd, BODY)
    monkeypatch.setattr(verify["time"], "time", lambda: AT + 301.0)
    assert not verify["is_from_recado"](new, header(new), BODY)
