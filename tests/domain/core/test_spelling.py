"""Which name was meant."""

import pytest

from recado.domain.access.scopes import KEY_SCOPES
from recado.domain.core.events import EVENT_NAMES
from recado.domain.core.spelling import closest


@pytest.mark.parametrize(
    ("written", "meant", "known"),
    [
        ("message.send", "message.sent", EVENT_NAMES),
        ("mesage.delivered", "message.delivered", EVENT_NAMES),
        ("messages:sned", "messages:send", KEY_SCOPES),
        ("everything", None, EVENT_NAMES),
        ("message.sent" * 10, None, EVENT_NAMES),
        ("name51", None, [f"name{number}" for number in range(51)]),
    ],
)
def test_the_name_that_is_alike_was_meant(written: str, meant: str | None, known: list[str]) -> None:
    assert closest(written, known) == meant
