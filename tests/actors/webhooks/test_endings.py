"""What is over costs nothing more: a failing subscription without deliveries, a former secret after its grace."""

from datetime import timedelta
from typing import Any

import pytest
from tests.actors.webhooks.conftest import Place, Receiver

from recado.domain.webhooks.webhook import SubscriptionStatus
from recado.storage.webhooks import deliveries, webhooks
from recado.storage.webhooks.webhooks import HealthNote


async def test_a_failing_subscription_without_deliveries_asks_for_none(
    place: Place, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0
    read = deliveries.due

    async def counting(*args: Any) -> Any:
        nonlocal asked
        asked += 1
        return await read(*args)

    monkeypatch.setattr("recado.actors.webhooks.webhook_subscription.deliveries.due", counting)
    subscription = await place.subscribe(receiver.url)
    now = place.clock.now()
    failing = subscription.health
    for number in range(10):
        failing = failing.failed(now + timedelta(seconds=7 * number))
    note = HealthNote(subscription.key, subscription.url, SubscriptionStatus.ACTIVE, failing)
    await webhooks.note_health(place.db, [note], now)
    place.clock.ahead = timedelta(seconds=200)  # its probe is due
    place.webhooks.changed(subscription.key)
    for _ in range(50):
        await place.webhooks.poll()
    assert asked <= 2

    await place.emit()
    assert (await place.settled(subscription))[0]["status"] == "delivered"


async def test_a_failing_subscription_is_revoked_after_72_hours_also_without_deliveries(place: Place) -> None:
    subscription = await place.subscribe("http://127.0.0.1:1/")
    now = place.clock.now()
    failing = subscription.health
    for number in range(10):
        failing = failing.failed(now + timedelta(seconds=7 * number))
    note = HealthNote(subscription.key, subscription.url, SubscriptionStatus.ACTIVE, failing)
    await webhooks.note_health(place.db, [note], now)
    for hours, status in ((71, SubscriptionStatus.FAILING), (73, SubscriptionStatus.REVOKED)):
        place.clock.ahead = timedelta(hours=hours)
        await place.webhooks.tidy()
        await place.until_status(subscription, status)


async def test_a_former_secret_that_cannot_be_read_harms_nothing_after_its_grace(
    place: Place, receiver: Receiver
) -> None:
    """As when the key that had encrypted it was retired since."""
    subscription = await place.subscribe(receiver.url)
    statement = "update webhook_subscriptions set previous_secret_cipher = 'v1.gone.AAAA', previous_secret_until = $1"
    await place.db.execute(statement, place.clock.now() - timedelta(seconds=1))
    await place.emit()
    assert (await place.settled(subscription))[0]["status"] == "delivered"
    assert receiver.received[0].headers["X-SVC-Signature"].count("v1=") == 1
