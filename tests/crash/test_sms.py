"""What the SMS centre's record says of messages whose parts it took one by one, and what the judge makes of it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.crash.evidence import Evidence, Kill
from tests.crash.samples import at
from tests.crash.sms import SMS, requests_of
from tests.crash.traffic import Sender
from tests.crash.verdict import violations
from tests.crash.verdict_parts import part_violations

from recado.domain.messages.sms_text import segment_texts
from recado.simulator.behaviour import Given
from recado.simulator.record import Request, recipient_hash

TO = "+5511900000001"
A, P, R, L = Given.ACCEPTED, Given.SLOW_DOWN, Given.REFUSED, Given.LOST


def submits(*parts: tuple[int, Given], of: int = 2) -> list[Request]:
    """To one phone, one each tenth of a second, in this order; what is taken of the last part is reported."""
    return [
        Request(
            f"smsc_{place}", at(place / 10), "28282", given, None, recipient_hash(TO), f"smsc_{place}",
            receipts=("delivered",) if part == of and given is not P else (), referenced=False,
            answered_at=None if given is L else at(place / 10), protocol="smpp", part=part, parts=of,
        )
        for place, (part, given) in enumerate(parts)
    ]  # fmt: skip


def message(status: str = "delivered", created: float = -1.0, **more: Any) -> dict[str, Any]:
    stamps = {"createdAt": at(created).isoformat(), "sentAt": None}
    return {"channel": "sms", "status": status, "to": TO, "payload": {"text": {"body": "x"}}, **stamps, **more}


UNCERTAIN = message("sending", waiting={"reason": "uncertain"})


@pytest.mark.parametrize(
    ("made", "outcomes"),
    [
        (submits((1, A), (2, A)), [A]),
        (submits((1, A), of=1), [A]),
        (submits((1, A), (2, P), (2, A)), [A]),
        (submits((1, P), (2, P), (1, A), (2, A)), [P, A]),
        (submits((1, P), (1, A), of=1), [P, A]),
        (submits((1, A), (2, R)), [R]),
        (submits((1, L), (2, A)), [A]),
        (submits((1, Given.FAILED), (2, A)), [A]),
        (submits((1, A), (2, L)), [L]),
        (submits((1, A)), [L]),
        (submits((1, A), (2, P)), [L]),
        (submits((1, A), (2, Given.FAILED)), [Given.FAILED]),
    ],
)
def test_a_message_is_one_request_for_each_try_whatever_its_parts_were_answered(
    made: Sequence[Request], outcomes: Sequence[Given]
) -> None:
    found = requests_of(made, {"msg_1": message()})
    assert [(each.id, each.outcome) for each in found] == [("msg_1", outcome) for outcome in outcomes]
    taken = made[-1].part == made[-1].parts and made[-1].outcome is not P
    assert found[-1].receipts == (("delivered",) if taken else ())
    whole = outcomes[-1] in (A, R, Given.FAILED) and L not in {each.outcome for each in made}
    assert (found[-1].answered_at is not None) == whole


def test_a_submit_belongs_to_the_message_that_was_the_last_to_be_made_for_its_phone() -> None:
    messages = {"msg_1": message("failed", created=-1), "msg_2": message(created=0.05)}
    found = requests_of(submits((1, R), (1, A), of=1), messages)
    assert [(each.id, each.outcome) for each in found] == [("msg_1", R), ("msg_2", A)]


PARTS: Mapping[str, tuple[Sequence[Request], dict[str, Any]]] = {
    "part 1 of msg_1 left 2 times": (submits((1, A), (2, A), (1, A)), message()),
    "msg_1 is delivered, and its parts [1] never left": (submits((2, A)), message()),
    "the parts [2] of msg_1 never left, and nothing had died": (submits((1, A)), UNCERTAIN),
    "msg_1 was split into [2, 3] parts": ([*submits((1, A)), *submits((2, A), of=3)], message()),
    "the submit smsc_0 is no message's": (submits((1, A), of=1), message(created=9)),
}


@pytest.mark.parametrize("fault", PARTS)
def test_a_fault_of_the_parts_is_seen(fault: str) -> None:
    assert fault in list(part_violations(evidence(*PARTS[fault])))


@pytest.mark.parametrize(
    ("made", "is_now", "killed"),
    [
        (submits((1, A), (2, A)), message(), []),
        (submits((1, P), (2, P)), message("queued"), []),
        (submits((1, A), (2, R)), message("failed"), []),
        (submits((1, A)), UNCERTAIN, [Kill(at(1), {"msg_1": at(0)})]),
    ],
)
def test_what_may_happen_to_parts_is_no_fault(
    made: Sequence[Request], is_now: dict[str, Any], killed: list[Kill]
) -> None:
    assert list(part_violations(replace(evidence(made, is_now), kills=killed))) == []


def evidence(made: Sequence[Request], is_now: dict[str, Any]) -> Evidence:
    messages = {"msg_1": is_now}
    sender = Sender("", "28282", "", 100)
    return Evidence([], messages, requests_of(made, messages), [], [sender], submits=made)


def in_flight(count: int, **death: Any) -> Evidence:
    """So many single SMS without an answer, and uncertain; ten of them may be under way."""
    messages = {f"msg_{place}": {**UNCERTAIN, "to": f"+55119{place:08}"} for place in range(count)}
    made = [
        replace(submits((1, A), of=1)[0], id=f"smsc_{place}", recipient=recipient_hash(each["to"]), answered_at=None)
        for place, each in enumerate(messages.values())
    ]
    sender = Sender("", "28282", "", 100)
    return Evidence(
        [], messages, requests_of(made, messages), death.get("kills", ()), [sender], submits=made, at_once=10,
        provider_kills=death.get("provider_kills", ()),
    )  # fmt: skip


@pytest.mark.parametrize("count", [10, 11])
def test_no_more_is_in_doubt_than_may_be_under_way(count: int) -> None:
    claimed = {f"msg_{place}": at(0) for place in range(count)}
    by_kill = violations(in_flight(count, kills=[Kill(at(0.1), claimed)]))
    by_provider = violations(in_flight(count, provider_kills=[at(0.1)]))
    assert ("11 calls were under way at a kill, above 10" in by_kill) == (count == 11)
    assert ("11 messages are uncertain by the provider's death, above 10" in by_provider) == (count == 11)


def test_markers_are_texts_of_one_part_and_of_several_in_both_alphabets() -> None:
    texts = [SMS.marker(7, number) for number in range(20)]
    assert {len(segment_texts(text)) for text in texts} >= {1, 2, 3}
    assert max(len(segment_texts(text)) for text in texts) <= 10
    assert {text.isascii() for text in texts} == {True, False}
    assert len({text.split()[0] for text in texts}) == len(texts)
    assert [text.strip() for text in texts] == texts  # what is around a text is not sent
