"""Lanes at a gateway that others share: what one of them cannot use is the others' (C16.3)."""

from typing import TYPE_CHECKING, Any

import pytest

from recado.actors.dispatch.lane_messages import Look
from recado.actors.dispatch.shared_gateway import Borrower, GatewayPlan, GatewayShare
from recado.channels.core.provider import Accepted, Account, Down
from recado.domain.core.errors import Unavailable
from recado.domain.messages.message import NORMAL
from recado.domain.senders.number import NumberStatus

if TYPE_CHECKING:
    from tests.actors.dispatch.number.conftest import Line


@pytest.fixture
def shared(line: "Line") -> GatewayShare:
    """A gateway of ten a second, as another organization has it: there is one permit at a time."""
    account = Account(sender_id="gateway", organization_id="", env="test", provider_id="gateway", owner="gateway")
    provider: Any = line.provider
    plan = GatewayPlan(channel="chatapp", env="test", name="a", per_second=10, provider=provider, account=account)
    line.context.share([plan])
    return line.context.shared_gateways("chatapp", "test", "org_other").current


async def test_a_lane_that_is_held_keeps_no_permits_from_others(line: "Line", shared: GatewayShare) -> None:
    await line.queue(40)
    await line.goes_on(2.0)
    assert 0 < len(line.provider.calls) < 40
    await line.set_number(status=NumberStatus.DISCONNECTED)
    await line.goes_on(1.0)
    stopped_at = len(line.provider.calls)
    other = Borrower(shared, lambda: None)
    shared.want(other, {NORMAL: 1})
    await line.goes_on(1.0)
    assert list(other.permits) == [NORMAL]
    shared.forget(other)
    await line.set_number(status=NumberStatus.CONNECTED)
    await line.goes_on(6.0)
    assert (stopped_at < 40, len(line.provider.calls)) == (True, 40)


async def test_a_message_whose_template_cannot_be_read_keeps_no_permit_from_others(
    line: "Line", shared: GatewayShare, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: Any) -> None:
        raise Unavailable("The database is away.")

    templates = line.context.records.templates
    monkeypatch.setattr(templates, "peek", lambda key: None)
    monkeypatch.setattr(templates, "get", away)
    await line.queue(3)
    await line.goes_on(3.0)
    assert not line.provider.calls
    monkeypatch.undo()
    await line.goes_on(3.0)
    assert len(line.provider.calls) == 3


async def test_a_forced_message_alone_is_the_probe_of_an_open_circuit(line: "Line", shared: GatewayShare) -> None:
    first, second = await line.queue(2, tell=False)
    await line.goes_on(1.1)
    for _ in range(5):
        shared.take(line.clock.monotonic(), forced=True)
        shared.ended(Down("connect_failed"), 0)
    await line.db.execute("update dispatch set force = true where id = any($1)", [first, second])
    line.tell(Look())
    await line.goes_on(4.0)
    assert not line.provider.calls
    await line.goes_on(3.0)
    assert line.provider.sent == [first, second]


async def test_what_waits_for_the_probe_of_another_lane_leaves_after_it(line: "Line", shared: GatewayShare) -> None:
    await line.goes_on(1.1)
    for _ in range(5):
        shared.take(line.clock.monotonic(), forced=True)
        shared.ended(Down("connect_failed"), 0)
    [message_id] = await line.queue(1, tell=False)
    await line.goes_on(5.1)
    shared.take(line.clock.monotonic(), forced=True)  # another lane was faster
    await line.force(message_id)
    await line.goes_on(2.0)
    assert not line.provider.calls
    shared.ended(Accepted("p-1"), shared.breaker.pauses)
    await line.goes_on(1.0)
    assert line.provider.sent == [message_id]
