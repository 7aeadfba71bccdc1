"""Calls of webhook steps have shares: a subscription that hangs holds up no other (C31)."""

from recado.actors.journeys.step_call_shares import StepCallShares
from recado.domain.webhooks.webhook import SubscriptionKey

ONE, TWO = SubscriptionKey("org_1", "wbh_1"), SubscriptionKey("org_1", "wbh_2")
THREE = SubscriptionKey("org_2", "wbh_3")


def begin(shares: StepCallShares, key: SubscriptionKey, count: int) -> None:
    for _ in range(count):
        shares.begin(key)


def test_a_subscription_has_ten_calls_and_gets_their_places_back() -> None:
    shares = StepCallShares(500)
    assert shares.rooms([ONE, TWO, THREE], 100) == {ONE: 10, TWO: 10, THREE: 10}
    begin(shares, ONE, 10)
    assert shares.rooms([ONE, TWO], 100) == {TWO: 10}
    for _ in range(3):
        shares.end(ONE)
    assert (shares.rooms([ONE], 100), shares.in_flight) == ({ONE: 3}, 7)


def test_an_organization_has_fifty_and_each_of_its_subscriptions_one_in_any_case() -> None:
    shares = StepCallShares(500)
    many = [SubscriptionKey("org_1", f"wbh_{n}") for n in range(8)]
    rooms = shares.rooms([*many, THREE], 500)
    assert [rooms[key] for key in (*many, THREE)] == [10, 10, 10, 10, 10, 1, 1, 1, 10]
    for key in many[:5]:
        begin(shares, key, 10)
    begin(shares, many[5], 1)
    assert shares.rooms([*many, THREE], 500) == {many[6]: 1, many[7]: 1, THREE: 10}


def test_an_organization_never_has_more_than_half_of_few_places() -> None:
    shares = StepCallShares(4)
    assert shares.rooms([ONE, TWO, SubscriptionKey("org_1", "wbh_9"), THREE], 100) == {ONE: 1, TWO: 1, THREE: 1}
    begin(shares, ONE, 1)
    begin(shares, TWO, 1)
    assert shares.rooms([SubscriptionKey("org_1", "wbh_9"), THREE], 100) == {THREE: 1}


def test_no_more_begin_than_were_asked_for_or_are_free() -> None:
    shares = StepCallShares(500)
    assert shares.rooms([ONE, TWO, THREE], 12) == {ONE: 10, TWO: 2}
    few = StepCallShares(2)
    begin(few, ONE, 1)
    begin(few, THREE, 1)
    assert (few.free, few.rooms([TWO], 100)) == (0, {})
