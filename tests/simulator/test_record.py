"""The simulator's record: whole, in order, over several lives, without anybody's number."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from recado.simulator.behaviour import Given
from recado.simulator.record import Record, Request, read_record, recipient_hash

AT = datetime(2026, 11, 20, 12, 0, 0, 123_456, tzinfo=UTC)


def request(number: int, **changes: object) -> Request:
    fields = {
        "id": f"msg_{number}",
        "at": AT + timedelta(microseconds=number),
        "number": "pn-1",
        "outcome": Given.ACCEPTED,
        "idempotency_key": f"msg_{number}",
        "recipient": recipient_hash("+5511987654321"),
        "provider_message_id": f"sim_{number}",
    }
    return Request(**{**fields, **changes})  # type: ignore[arg-type]


def test_what_was_added_is_read_without_closing_the_file(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "record.jsonl"
    record = Record(path)
    requests = [request(1), request(2, outcome=Given.REFUSED, idempotency_key=None, provider_message_id=None)]
    for each in requests:
        record.add(each)

    assert read_record(path) == requests
    record.close()
    record.close()


def test_an_answer_is_noted_with_its_own_request(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    record = Record(path)
    first, second = request(1), request(1, at=AT + timedelta(seconds=1), receipts=("delivered",), referenced=False)
    record.add(first)
    record.add(second)
    record.answered(second, AT + timedelta(seconds=2))
    record.close()

    assert read_record(path) == [first, replace(second, answered_at=AT + timedelta(seconds=2))]


def test_a_second_life_continues_the_file_even_after_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    first = Record(path)
    first.add(request(1))
    first.close()
    with path.open("ab") as file:
        file.write(b'{"id": "msg_')
    second = Record(path)
    second.add(request(2))
    second.close()

    assert read_record(path) == [request(1), request(2)]


def test_recipients_are_told_apart_but_not_named(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    record = Record(path)
    record.add(request(1))
    record.close()

    assert "87654321" not in path.read_text()
    assert path.stat().st_mode & 0o077 == 0
    assert recipient_hash("+5511987654321") != recipient_hash("+5511987654322")
