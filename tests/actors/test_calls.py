"""What a call tells besides its outcome (C28.4)."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock

from structlog.testing import capture_logs

from recado.actors.calls import Calls, Departure
from recado.actors.row import Row
from recado.channels.provider import Account, Outcome, Preference, Refused, Retry
from recado.engine.clock import VirtualClock

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
ACCOUNT = Account(
    number_id="num_1", organization_id="org_1", env="live", phone_number_id="pn-1", business_account_id="ba-1"
)


class Provider:
    """Answers every send with one outcome."""

    name = "cloud"

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome

    async def send(self, *_: Any) -> Outcome:
        return self.outcome


async def call(outcome: Outcome, stopped: Any) -> Outcome:
    """Make one call, and answer what became of it when everything that follows is done."""
    ended: list[Outcome] = []
    settled = SimpleNamespace(settle=AsyncMock())
    calls = Calls(cast("Any", settled), clock=VirtualClock(NOW), expect=lambda at: None, stopped=stopped)
    row = SimpleNamespace(
        id="msg_1",
        organization_id="org_1",
        env="live",
        channel="chatapp",
        number_id="num_1",
        recipient="+5511987650001",
        type="text",
        payload=None,
        template_vars=None,
        attempts=0,
    )
    departure = Departure(cast("Row", row), NOW, cast("Any", Provider(outcome)), ACCOUNT, None)
    calls.begin(departure, lambda _, what: ended.append(what))
    await calls.stop()
    return ended[0]


async def test_who_stopped_marketing_at_the_provider_is_told_of() -> None:
    told: list[tuple[str, Preference]] = []

    async def stopped(env: str, event: Preference) -> None:
        told.append((env, event))

    await call(Refused("opted_out", "stopped"), stopped)
    assert told == [("live", Preference("pn-1", "+5511987650001", True, NOW))]
    for other in (Refused("policy_blocked", "no"), Retry()):
        await call(other, stopped)
    assert len(told) == 1


async def test_a_refusal_that_cannot_be_noted_harms_no_call() -> None:
    outcome = Refused("opted_out", "stopped")

    async def stopped(env: str, event: Preference) -> None:
        raise LookupError(event.phone)

    with capture_logs() as logs:
        assert await call(outcome, stopped) == outcome
    assert logs == [
        {"event": "refusal_not_noted", "log_level": "warning", "message_id": "msg_1", "error": "LookupError"}
    ]
