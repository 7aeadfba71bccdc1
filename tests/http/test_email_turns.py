"""A send that waits too long to be under way is refused before anything is stored (C10.2, C31)."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from recado.domain.core.errors import Unavailable
from recado.http.routes.email import messages
from recado.http.routes.email.messages import AT_ONCE_EACH, EmailOperations


async def test_who_waits_too_long_to_be_under_way_has_stored_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[object] = []

    async def accept(draft: object) -> None:
        begun.append(draft)
        await asyncio.Event().wait()

    monkeypatch.setattr(messages, "TURN_WITHIN", 0.05, raising=False)
    monkeypatch.setattr(messages, "email_draft", lambda *_: SimpleNamespace(organization_id="org_1"))
    anything: Any = SimpleNamespace(database=None, cursors=None)
    acceptance: Any = SimpleNamespace(accept=accept)
    call: Any = SimpleNamespace(principal=SimpleNamespace(organization_id="org_1"))
    operations = EmailOperations(anything, acceptance)
    sends = [asyncio.create_task(operations.create(call)) for _ in range(AT_ONCE_EACH)]
    with pytest.raises(Unavailable):
        await asyncio.wait_for(operations.create(call), 5.0)
    assert len(begun) == AT_ONCE_EACH
    for send in sends:
        send.cancel()
    await asyncio.wait(sends)
    assert operations._places.taken == 0
