"""What an SMS centre brings: stored, then answered, whatever happens in between."""

import asyncio
import itertools
import logging
import struct
from dataclasses import replace
from typing import Any

import pytest
from tests.captured import capture_logs
from tests.channels.conftest import NOW
from tests.channels.sms.centre import Centre
from tests.channels.sms.conftest import TIMES, Made, Stored, sending

from recado.channels.core.events import Inbound, Status
from recado.channels.core.provider import Unknown
from recado.channels.sms.smpp import arrivals, connection, repeated_texts
from recado.channels.sms.smpp.arrivals import MOST_DELIVERIES, MOST_OCTETS
from recado.channels.sms.smpp.connection import READ_IN_A_TURN
from recado.channels.sms.smpp.pdu import Command, DataMessage, Pdu, ShortMessage, Tag, encode
from recado.channels.sms.smpp.repeated_texts import KEPT, RepeatedTexts
from recado.channels.sms.smpp.texts import LONGEST_READ
from recado.domain.core.log_rate import QUIET
from recado.engine.clock import VirtualClock

AT = "2026-11-20T12:00:00.000Z"
RECEIPT = ShortMessage(esm_class=4, short_message=b"id:77 sub:001 dlvrd:001 stat:DELIVRD err:000 text:Ola")


async def bound(centre: Centre, made: Made, **options: Any) -> Any:
    adapter = await made(**options)
    await centre.until(lambda: bool(centre.links) and centre.link.bound)
    return adapter


async def answered(centre: Centre, sequence: int) -> int:
    link = centre.link
    await centre.until(lambda: sequence in [number for number, _ in link.answers(Command.DELIVER_SM_RESP)])
    return dict(link.answers(Command.DELIVER_SM_RESP))[sequence]


async def test_a_receipt_is_stored_and_answered(centre: Centre, made: Made, stored: Stored) -> None:
    await bound(centre, made)
    assert await answered(centre, centre.link.bring(RECEIPT)) == 0
    receipt = {"id": "77", "status": "DELIVRD", "statusDescription": "err:000"}
    assert stored.events == [
        {
            "kind": "status",
            "status": "delivered",
            "at": AT,
            "providerMessageId": "77",
            "account": "gateway_a",
            "receipt": receipt,
        }
    ]


async def test_what_is_stored_is_read_again_as_events(centre: Centre, made: Made, stored: Stored) -> None:
    adapter = await bound(centre, made)
    refused = ShortMessage(esm_class=4, short_message=b"id:78 stat:UNDELIV")
    written = ShortMessage(source_addr="5511987654321", data_coding=8, short_message="Olá".encode("utf-16-be"))
    for body in (refused, written):
        assert await answered(centre, centre.link.bring(body)) == 0
    failed, came = [event for body in stored.bodies for event in adapter.parse_callback({}, body)]
    told = {"id": "78", "status": "UNDELIV"}
    assert failed == Status("failed", NOW, "78", None, "carrier_rejected", "gateway_a", told)
    assert came == Inbound(
        "gateway_a", "5511987654321", NOW, "text", {"text": {"body": "Olá"}}, came.provider_message_id
    )


async def test_a_message_of_a_person_is_told_with_its_text_and_what_it_came_to(
    centre: Centre, made: Made, stored: Stored
) -> None:
    await bound(centre, made)
    written = ShortMessage(source_addr="5511987654321", destination_addr="28282", short_message=b"Ol\x05")
    for _ in range(2):  # two that are the same are two
        assert await answered(centre, centre.link.bring(written)) == 0
    events = stored.events
    assert len({event.pop("providerMessageId") for event in events}) == 2
    expected = {
        "kind": "inbound",
        "account": "28282",
        "from": "5511987654321",
        "at": AT,
        "type": "text",
        "payload": {"text": {"body": "Olé"}},
    }
    assert events == [expected, expected]


async def test_what_came_by_data_sm_is_answered_in_kind(centre: Centre, made: Made, stored: Stored) -> None:
    await bound(centre, made)
    tlvs = ((Tag.RECEIPTED_MESSAGE_ID, b"77\0"), (Tag.MESSAGE_STATE, b"\x03"))
    link = centre.link
    link.write(encode(Pdu(command=Command.DATA_SM, sequence=9, body=DataMessage(esm_class=4), tlvs=tlvs)))
    await centre.until(lambda: link.answers(Command.DATA_SM_RESP) == [(9, 0)])
    assert [(event["status"], event["code"]) for event in stored.events] == [("failed", "expired")]


async def test_nothing_is_answered_before_it_is_stored(centre: Centre, made: Made, stored: Stored) -> None:
    stored.held = asyncio.Event()
    await bound(centre, made)
    first = centre.link.bring(RECEIPT)
    await centre.settled()
    later = [centre.link.bring(RECEIPT) for _ in range(20)]
    await centre.settled()
    assert centre.link.answers(Command.DELIVER_SM_RESP) == []
    stored.held.set()
    assert {await answered(centre, each) for each in (first, *later)} == {0}
    assert len(stored.bodies) == 2, "what comes meanwhile is stored together"
    assert len(stored.events) == 21


async def test_what_cannot_be_stored_is_asked_for_again(
    centre: Centre, made: Made, stored: Stored, clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    stored.fails = 1
    await bound(centre, made)
    assert await answered(centre, centre.link.bring(RECEIPT)) == 0x64
    again = centre.link.bring(RECEIPT)
    await centre.settled()
    await clock.advance(1)
    assert await answered(centre, again) == 0
    assert len(stored.events) == 1


TEXT = ShortMessage(source_addr="5511987654321", destination_addr="28282", short_message=b"OK")


def ids(stored: Stored) -> list[str]:
    return [event["providerMessageId"] for event in stored.events]


async def test_a_text_that_is_brought_again_as_it_was_asked_for_is_the_same_message(
    centre: Centre, made: Made, stored: Stored, clock: VirtualClock
) -> None:
    stored.fails, stored.in_doubt = 1, True  # its commit was made, and the answer to it lost
    await bound(centre, made)
    assert await answered(centre, centre.link.bring(TEXT)) == 0x64
    sequences = [centre.link.bring(TEXT) for _ in range(2)]
    await centre.settled()
    await clock.advance(1)
    assert [await answered(centre, each) for each in sequences] == [0, 0]
    first, again, another = ids(stored)
    assert first == again != another, "a person may write the same once more"


async def test_a_text_whose_answer_found_no_connection_is_the_same_message_when_it_comes_again(
    centre: Centre, made: Made, stored: Stored, clock: VirtualClock
) -> None:
    stored.held = asyncio.Event()
    await bound(centre, made)
    lost = centre.link
    lost.bring(TEXT)
    await centre.settled()
    lost.transport.abort()
    while len(centre.links) == 1 or not centre.link.bound:
        await clock.advance(1)
    stored.held.set()
    assert await answered(centre, centre.link.bring(TEXT)) == 0
    assert await answered(centre, centre.link.bring(TEXT)) == 0
    first, again, another = ids(stored)
    assert first == again != another


def test_what_was_not_answered_is_remembered_for_an_hour_and_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_texts, "MOST", 2)
    repeated = RepeatedTexts()
    texts = [Pdu(command=Command.DELIVER_SM, body=replace(TEXT, short_message=each)) for each in (b"1", b"2", b"3")]
    for pdu in texts:
        repeated.unanswered(pdu, f"id of {pdu.content_length}", 0.0)
    assert [repeated.id_of(pdu, KEPT - 1) for pdu in texts] == [None, "id of 1", "id of 1"]
    repeated.unanswered(texts[0], "a", 0.0)
    repeated.unanswered(texts[0], "b", 1.0)
    assert [repeated.id_of(texts[0], KEPT) for _ in range(2)] == ["b", None], "each once, and no older one"


async def test_what_is_being_stored_at_a_stop_is_answered_and_the_rest_comes_again(
    centre: Centre, made: Made, stored: Stored
) -> None:
    stored.held = asyncio.Event()
    adapter = await bound(centre, made, listens=False)
    running = asyncio.create_task(adapter.run(stored))
    first = centre.link.bring(RECEIPT)
    await centre.settled()
    second = centre.link.bring(RECEIPT)
    await centre.settled()
    running.cancel()
    await asyncio.sleep(0)
    stored.held.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await answered(centre, first) == 0
    await centre.settled()
    assert second not in dict(centre.link.answers(Command.DELIVER_SM_RESP))
    assert len(stored.events) == 1


@pytest.mark.parametrize(
    "body",
    [
        ShortMessage(esm_class=4, short_message=b"thanks"),
        ShortMessage(esm_class=4, short_message=b"id:7 stat:UNKNOWN"),
        ShortMessage(source_addr="5511987654321", data_coding=4, short_message=b"\x01\x02"),
        ShortMessage(source_addr="", short_message=b"who?"),
    ],
)
async def test_what_means_nothing_is_answered_and_dropped(
    centre: Centre, made: Made, stored: Stored, body: ShortMessage
) -> None:
    await bound(centre, made)
    assert await answered(centre, centre.link.bring(body)) == 0
    assert stored.bodies == []


async def test_the_log_tells_now_and_then_of_what_was_dropped_and_how_often(
    centre: Centre, made: Made, clock: VirtualClock
) -> None:
    no_id, no_sender = ShortMessage(esm_class=4, short_message=b"thanks"), ShortMessage(short_message=b"who?")
    await bound(centre, made)
    with capture_logs() as logs:
        for body in (no_id, no_id, no_sender, no_id):
            assert await answered(centre, centre.link.bring(body)) == 0
        await clock.advance(QUIET)
        assert await answered(centre, centre.link.bring(no_id)) == 0
    told = [(entry["event"], entry["reason"], entry["left_out"]) for entry in logs if "left_out" in entry]
    assert told == [
        ("smpp_receipt_of_no_use", "no id", 0),
        ("smpp_message_dropped", "no sender", 0),
        ("smpp_receipt_of_no_use", "no id", 2),
    ]


async def test_more_than_can_be_held_is_sent_back(centre: Centre, made: Made, stored: Stored) -> None:
    stored.held = asyncio.Event()
    await bound(centre, made)
    sequences = [centre.link.bring(RECEIPT) for _ in range(MOST_DELIVERIES + 5)]
    link = centre.link
    await centre.until(lambda: len(link.answers(Command.DELIVER_SM_RESP)) == 5)
    assert link.answers(Command.DELIVER_SM_RESP) == [(each, 0x14) for each in sequences[-5:]]
    stored.held.set()
    await centre.until(lambda: len(link.answers(Command.DELIVER_SM_RESP)) == len(sequences))
    assert {status for _, status in link.answers(Command.DELIVER_SM_RESP)[5:]} == {0}
    assert len(stored.events) == MOST_DELIVERIES


async def test_what_can_be_held_is_counted_over_all_connections(
    centre: Centre, made: Made, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "MOST_DELIVERIES", 10)
    stored.held = asyncio.Event()
    await made(binds=2)
    await centre.until(lambda: len(centre.links) == 2 and all(link.bound for link in centre.links))
    first, second = centre.links

    def answers() -> list[int]:
        return [status for link in centre.links for _, status in link.answers(Command.DELIVER_SM_RESP)]

    for link in (first, second):
        for _ in range(6):
            link.bring(RECEIPT)
    await centre.until(lambda: len(answers()) == 2)
    assert answers() == [0x14, 0x14]
    stored.held.set()
    await centre.until(lambda: len(answers()) == 12)
    assert len(stored.events) == 10
    assert await answered(centre, second.bring(RECEIPT)) == 0


async def test_no_late_answer_is_lost_for_want_of_room_the_centre_waits_with_it(
    centre: Centre, made: Made, stored: Stored, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "MOST_REPORTS", 2)
    centre.submitted = lambda link, pdu: None
    stored.held = asyncio.Event()
    adapter = await bound(centre, made)
    sent = [sending(adapter, id=f"msg_0000000000000000000a{place}") for place in range(5)]
    await centre.until(lambda: len(centre.submits) == 5)
    await clock.advance(TIMES.answer)
    assert [await each for each in sent] == [Unknown()] * 5
    link, submits = centre.link, [pdu for pdu in centre.got if pdu.command == Command.SUBMIT_SM]
    for pdu in submits[:2]:
        link.answer(pdu, message_id="taken")
        await centre.settled()
    asked = link.ask(Command.ENQUIRE_LINK)
    for pdu in submits[2:]:
        link.answer(pdu, message_id="taken")
    receipt = link.bring(RECEIPT)
    for _ in range(4):  # nor is the connection taken for dead meanwhile
        await clock.advance(TIMES.enquire)
        await asyncio.sleep(0)
    assert (asked, 0) not in link.answers(Command.ENQUIRE_LINK_RESP)
    assert not link.lost.done()
    stored.held.set()
    assert await answered(centre, receipt) == 0
    told = [event["reference"] for event in stored.events if event["status"] == "sent"]
    assert told == [f"msg_0000000000000000000a{place}" for place in range(5)]


async def test_the_log_tells_of_answers_that_are_waited_for_no_longer(
    centre: Centre, made: Made, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MOST_LATE", 1)
    centre.submitted = lambda link, pdu: None
    adapter = await bound(centre, made)
    sent = [sending(adapter) for _ in range(3)]
    await centre.until(lambda: len(centre.submits) == 3)
    with capture_logs() as logs:
        await clock.advance(TIMES.answer)
        assert [await each for each in sent] == [Unknown()] * 3
    assert [entry["left_out"] for entry in logs if entry["event"] == "smpp_answer_given_up"] == [0]


@pytest.mark.parametrize(
    ("octets", "status"),
    [
        (struct.pack(">IIII", 20, 0x0000_0099, 0, 5) + b"abcd", 0x03),
        (struct.pack(">IIII", 20, Command.DELIVER_SM, 0, 5) + b"abcd", 0x02),
        (encode(Pdu(command=Command.SUBMIT_SM, sequence=5, body=ShortMessage())), 0x03),
        (
            encode(Pdu(command=Command.ENQUIRE_LINK, sequence=5))[:3]
            + b"\x13"
            + struct.pack(">III", 0x15, 0, 5)
            + b"abc",
            0xC0,
        ),
    ],
)
async def test_what_is_not_understood_is_said_so_and_nothing_else_happens(
    centre: Centre, made: Made, stored: Stored, octets: bytes, status: int
) -> None:
    await bound(centre, made)
    link = centre.link
    link.write(octets)
    await centre.until(lambda: link.answers(Command.GENERIC_NACK) == [(5, status)])
    assert await answered(centre, link.bring(RECEIPT)) == 0


async def test_a_length_that_no_pdu_has_ends_the_connection(centre: Centre, made: Made, clock: VirtualClock) -> None:
    await bound(centre, made)
    link = centre.link
    link.write(struct.pack(">IIII", 70_000, Command.DELIVER_SM, 0, 1) + b"\0" * 70_000)
    await centre.until(link.lost.done)
    await clock.advance(1)
    await centre.until(lambda: len(centre.links) == 2 and centre.link.bound)


async def test_answers_that_nobody_asked_for_do_nothing(centre: Centre, made: Made, stored: Stored) -> None:
    await bound(centre, made)
    for command in (Command.SUBMIT_SM_RESP, Command.GENERIC_NACK, Command.BIND_TRANSCEIVER_RESP):
        centre.link.write(struct.pack(">IIII", 16, command, 0, 999))
    assert await answered(centre, centre.link.bring(RECEIPT)) == 0


async def test_large_deliveries_are_held_by_their_octets_and_stored_few_at_a_time(
    centre: Centre, made: Made, stored: Stored
) -> None:
    stored.held = asyncio.Event()
    await bound(centre, made)
    size = 60_000
    written = ShortMessage(source_addr="5511987654321")
    fitting = -(-MOST_OCTETS // size)
    link = centre.link
    sequences = [link.bring(written, ((Tag.MESSAGE_PAYLOAD, b"x" * size),)) for _ in range(fitting + 2)]
    await centre.until(lambda: len(link.answers(Command.DELIVER_SM_RESP)) == 2)
    assert link.answers(Command.DELIVER_SM_RESP) == [(each, 0x14) for each in sequences[-2:]]
    stored.held.set()
    await centre.until(lambda: len(link.answers(Command.DELIVER_SM_RESP)) == len(sequences))
    assert len(stored.bodies) == fitting
    assert {len(event["payload"]["text"]["body"]) for event in stored.events} == {LONGEST_READ}
    assert await answered(centre, link.bring(written, ((Tag.MESSAGE_PAYLOAD, b"x" * size),))) == 0


async def test_a_flood_is_read_in_turns_that_others_have_too(centre: Centre, made: Made, stored: Stored) -> None:
    await bound(centre, made)
    link, count = centre.link, 50 * READ_IN_A_TURN
    seen: list[int] = []

    def look() -> None:
        seen.append(len(link.answers(Command.ENQUIRE_LINK_RESP)))
        if seen[-1] < count:
            asyncio.get_running_loop().call_soon(look)

    link.write(b"".join(encode(Pdu(command=Command.ENQUIRE_LINK, sequence=each)) for each in range(1, count + 1)))
    look()
    await centre.until(lambda: len(link.answers(Command.ENQUIRE_LINK_RESP)) == count)
    assert link.answers(Command.ENQUIRE_LINK_RESP) == [(each, 0) for each in range(1, count + 1)]
    between = [after - before for before, after in itertools.pairwise(seen)]
    assert max(between) <= count // 2
    assert await answered(centre, link.bring(RECEIPT)) == 0
