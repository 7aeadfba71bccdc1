"""Operations that fail, over every adapter: each says whether it may be tried again, and none holds personal data."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.channels.behaviours import Behaviour, hangs
from tests.channels.conformance.adapters import ALL
from tests.channels.conformance.conftest import Start
from tests.channels.conformance.tried import Tried
from tests.channels.peer import FakeBridge
from tests.waiting import PATIENCE

from recado.channels.core import media_transfer
from recado.channels.core.errors import ProviderError
from recado.channels.core.provider import Account

Operation = Callable[[Any, Account], Awaitable[Any]]
OPERATIONS = [
    (tried, name, operation)
    for tried in ALL
    if tried.operations is not None
    for name, operation in tried.operations.calls.items()
]
FAILURES = [
    (tried, operation, behaviour, kind, code, f"{tried.name} {name} {how}")
    for tried, name, operation in OPERATIONS
    if tried.operations is not None
    for how, behaviour, kind, code in tried.operations.failures
]


@pytest.mark.parametrize(
    ("tried", "operation", "behaviour", "kind", "code"),
    [case[:-1] for case in FAILURES],
    ids=[case[-1] for case in FAILURES],
)
async def test_a_failed_operation_says_whether_it_may_be_tried_again(
    tried: Tried,
    operation: Operation,
    behaviour: Behaviour,
    kind: str,
    code: str,
    fake_bridge: FakeBridge,
    started: Start,
    account: Account,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limit = 0.15 if behaviour is hangs else PATIENCE
    monkeypatch.setattr(media_transfer, "UPLOAD_TIMEOUT", limit)
    fake_bridge.behaviour = behaviour
    adapter = await started(tried, fake_bridge.url, limit)

    with pytest.raises(ProviderError) as failure:
        await operation(adapter, account)

    assert (failure.value.kind, failure.value.code) == (kind, code)
    for personal in ("98765", *tried.secrets):
        assert personal not in str(failure.value) + caplog.text


@pytest.mark.parametrize(
    ("tried", "operation"),
    [(tried, operation) for tried, _, operation in OPERATIONS],
    ids=[f"{tried.name} {name}" for tried, name, _ in OPERATIONS],
)
async def test_an_operation_with_nobody_at_the_port_is_unreachable(
    tried: Tried, operation: Operation, started: Start, account: Account
) -> None:
    adapter = await started(tried, "http://127.0.0.1:1")

    with pytest.raises(ProviderError, match="unreachable: connect_failed"):
        await operation(adapter, account)
