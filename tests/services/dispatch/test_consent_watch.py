"""What is claimed and not yet called for: stopped by a refusal of its recipient, and of nobody else."""

from types import SimpleNamespace
from typing import Any

from recado.services.dispatch.consent_watch import ConsentWatch


def row(message_id: str, recipient_hash: int = 1, env: str = "test", contact_hash: int | None = None) -> Any:
    return SimpleNamespace(
        organization_id="org_1", env=env, id=message_id, recipient_hash=recipient_hash, contact_hash=contact_hash
    )


def test_a_refusal_stops_every_message_to_that_recipient_and_no_other() -> None:
    watch = ConsentWatch()
    rows = [row("msg_1"), row("msg_2"), row("msg_3", recipient_hash=2), row("msg_4", env="live")]
    for each in rows:
        watch.begin(each)
    watch.refused([("org_1", "test", 1)])
    assert [watch.end(each) for each in rows] == [True, True, False, False]


def test_a_refusal_of_its_contact_stops_what_goes_to_another_address() -> None:
    watch = ConsentWatch()
    rows = [row("msg_1", contact_hash=7), row("msg_2", contact_hash=8)]
    for each in rows:
        watch.begin(each)
    watch.refused([("org_1", "test", 7)])
    assert [watch.end(each) for each in rows] == [True, False]
    watch.begin(rows[0])
    assert not watch.end(rows[0])


def test_a_message_that_has_left_is_stopped_by_nothing() -> None:
    watch = ConsentWatch()
    watch.begin(row("msg_1"))
    assert not watch.end(row("msg_1"))
    watch.refused([("org_1", "test", 1)])
    watch.begin(row("msg_1"))  # its next claim sees the refusal itself
    assert not watch.end(row("msg_1"))


def test_a_row_whose_claim_is_asked_for_twice_ends_once() -> None:
    watch = ConsentWatch()
    watch.begin(row("msg_1"))
    watch.begin(row("msg_1"))
    watch.refused([("org_1", "test", 1)])
    assert watch.end(row("msg_1"))
    assert not watch.end(row("msg_1"))
