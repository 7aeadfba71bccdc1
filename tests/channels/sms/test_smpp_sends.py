"""Messages over SMPP: what leaves, and what becomes of it, whatever the SMS centre does (C29.2)."""

import asyncio
import logging
import ssl
import struct
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.captured import capture_logs
from tests.channels.conftest import NOW
from tests.channels.sms.centre import Centre, Link
from tests.channels.sms.conftest import PASSWORD, TIMES, Made, Stored, sending
from tests.channels.test_guarded_http import certificate

from recado.channels.core.events import NotTaken
from recado.channels.core.provider import Accepted, Down, NoPlace, Outcome, Refused, Retry, SlowDown, Unknown
from recado.channels.sms.smpp import session
from recado.channels.sms.smpp.pdu import Bind, Command, Pdu, ShortMessage
from recado.channels.sms.smpp.smpp import PLACE_WITHIN
from recado.channels.sms.smpp.submits import SmppAddress, source_address
from recado.engine.clock import VirtualClock

ANSWER, ENQUIRE = TIMES.answer, TIMES.enquire


def silent(link: Link, pdu: Pdu) -> None:
    """Says nothing."""


async def test_a_message_leaves_and_its_id_comes_back(centre: Centre, made: Made) -> None:
    adapter = await made(source="28282")
    assert await sending(adapter, "Olé [€]", to="+5511987654321") == Accepted("id-1")
    assert centre.link.got[0].body == Bind(system_id="recado", password=PASSWORD)
    assert centre.submits == [
        ShortMessage(
            source_addr_ton=3,
            source_addr="28282",
            dest_addr_ton=1,
            dest_addr_npi=1,
            destination_addr="5511987654321",
            registered_delivery=1,
            short_message=b"Ol\x05 \x1b<\x1be\x1b>",
        )
    ]


async def test_parts_of_a_message_belong_together_and_the_last_asks_for_the_receipt(centre: Centre, made: Made) -> None:
    adapter = await made()
    assert await sending(adapter, "one\ntwo\nthree") == Accepted("id-3")
    first, second, third = centre.submits
    assert {body.esm_class for body in centre.submits} == {0x40}
    assert [body.registered_delivery for body in centre.submits] == [0, 0, 1]
    assert [body.short_message[6:] for body in centre.submits] == [b"one", b"two", b"three"]
    reference = first.short_message[3]
    assert first.short_message[:6] == bytes((5, 0, 3, reference, 3, 1))
    assert third.short_message[:6] == bytes((5, 0, 3, reference, 3, 3))
    assert await sending(adapter, "one\ntwo\nthree") == Accepted("id-6")
    assert centre.submits[3:] == [first, second, third], "the reference follows from the message's id"


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (0x58, SlowDown()),
        (0x14, SlowDown()),
        (0x08, Retry()),
        (0x64, Retry()),
        (0x45, Retry()),
        (0x0B, Refused("invalid_number", "the SMS centre answered with status 0x0000000B")),
        (0x50, Refused("invalid_number", "the SMS centre answered with status 0x00000050")),
        (0x65, Refused("carrier_rejected", "the SMS centre answered with status 0x00000065")),
        (0x66, Refused("carrier_rejected", "the SMS centre answered with status 0x00000066")),
        (0x0A, Refused("provider_error", "the SMS centre answered with status 0x0000000A")),
        (0x4FF, Refused("provider_error", "the SMS centre answered with status 0x000004FF")),
        (0xFF, Unknown()),
    ],
)
async def test_each_status_has_its_outcome(centre: Centre, made: Made, status: int, outcome: Outcome) -> None:
    centre.submitted = lambda link, pdu: link.answer(pdu, status)
    adapter = await made()
    assert await sending(adapter) == outcome
    assert await sending(adapter, "a\nb") == outcome


@pytest.mark.parametrize(
    ("octets", "outcome"),
    [
        (struct.pack(">IIII", 16, Command.SUBMIT_SM_RESP, 0, 0), Unknown()),
        (struct.pack(">IIII", 17, Command.SUBMIT_SM_RESP, 0, 0) + b"\0", Unknown()),
        (struct.pack(">IIII", 18, Command.SUBMIT_SM_RESP, 0, 0) + b"ab", Accepted("ab")),
        (struct.pack(">IIII", 21, Command.SUBMIT_SM_RESP, 0, 0) + b"a\0\x01\x02\x03", Accepted("a")),
        (struct.pack(">IIII", 16, Command.GENERIC_NACK, 3, 0), Refused),
        (struct.pack(">IIII", 15, Command.SUBMIT_SM_RESP, 0, 0), Unknown()),
        (struct.pack(">IIII", 2**20, Command.SUBMIT_SM_RESP, 0, 0), Unknown()),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", Unknown()),
    ],
)
async def test_an_answer_that_is_none_is_not_taken_for_a_refusal(
    centre: Centre, made: Made, octets: bytes, outcome: Any
) -> None:
    def answers(link: Link, pdu: Pdu) -> None:
        said = bytearray(octets)
        if len(said) <= 21:
            said[12:16] = struct.pack(">I", pdu.sequence)
        link.write(bytes(said))

    centre.submitted = answers
    got = await sending(await made())
    assert got == outcome or (outcome is Refused and isinstance(got, Refused))


async def test_no_answer_in_time_is_an_unknown_outcome(centre: Centre, made: Made, clock: VirtualClock) -> None:
    centre.submitted = silent
    adapter = await made()
    sent = sending(adapter)
    await centre.until(lambda: len(centre.submits) == 1)
    await clock.advance(ANSWER)
    assert await sent == Unknown()


async def test_an_answer_that_comes_late_is_told_as_a_report(
    centre: Centre, made: Made, clock: VirtualClock, stored: Stored
) -> None:
    centre.submitted = silent
    adapter = await made(message_ids="hex")
    sent = [sending(adapter, id=f"msg_0000000000000000000a{place}") for place in range(3)]
    await centre.until(lambda: len(centre.submits) == 3)
    await clock.advance(ANSWER)
    assert [await each for each in sent] == [Unknown()] * 3
    taken, refused, for_now = [pdu for pdu in centre.got if pdu.command == Command.SUBMIT_SM]
    centre.link.answer(for_now, 0x58)
    centre.link.answer(refused, 0x0B)
    centre.link.answer(taken, message_id="00FF")
    centre.link.answer(taken, message_id="00FF")
    centre.link.bring(ShortMessage(esm_class=4, short_message=b"id:ff stat:DELIVRD"))
    await centre.until(lambda: len(centre.link.answers(Command.DELIVER_SM_RESP)) == 1)
    at = "2026-11-20T12:00:15.000Z"
    assert stored.events == [
        {"kind": "notTaken", "at": at, "reference": "msg_0000000000000000000a2", "spent": False},
        {"kind": "notTaken", "at": at, "reference": "msg_0000000000000000000a1", "code": "invalid_number",
         "spent": False},
        {"kind": "status", "status": "sent", "at": at, "reference": "msg_0000000000000000000a0",
         "providerMessageId": "255", "account": "gateway_a"},
        {"kind": "status", "status": "delivered", "at": at, "providerMessageId": "255", "account": "gateway_a",
         "receipt": {"id": "ff", "status": "DELIVRD"}},
    ]  # fmt: skip
    for_now, refused, *_ = [event for body in stored.bodies for event in adapter.parse_callback({}, body)]
    assert for_now == NotTaken("msg_0000000000000000000a2", NOW + timedelta(seconds=ANSWER))
    assert refused == replace(for_now, reference="msg_0000000000000000000a1", code="invalid_number")


async def test_a_late_answer_to_one_of_several_parts_gives_nothing_back_and_names_nothing_incomplete(
    centre: Centre, made: Made, clock: VirtualClock, stored: Stored
) -> None:
    def slow(link: Link, pdu: Pdu) -> None:
        if pdu.body.short_message.endswith(b"refused"):
            link.answer(pdu, 0x58)

    centre.submitted = slow
    adapter = await made()
    sent = [sending(adapter, "taken\nlate"), sending(adapter, "refused\nlate")]
    await centre.until(lambda: len(centre.submits) == 4)
    await clock.advance(ANSWER)
    assert [await each for each in sent] == [Unknown()] * 2
    for_now, taken = [
        pdu for pdu in centre.got if pdu.command == Command.SUBMIT_SM and pdu.body.short_message.endswith(b"late")
    ]
    centre.link.answer(for_now, 0x58)
    centre.link.answer(taken, message_id="b")
    centre.link.bring(ShortMessage(esm_class=4, short_message=b"id:b stat:DELIVRD"))
    await centre.until(lambda: len(centre.link.answers(Command.DELIVER_SM_RESP)) == 1)
    assert [event["status"] for event in stored.events] == ["delivered"], "the message stays in doubt"


async def test_a_connection_that_is_lost_leaves_what_was_submitted_unknown(centre: Centre, made: Made) -> None:
    centre.submitted = silent
    adapter = await made()
    sent = [sending(adapter) for _ in range(3)]
    await centre.until(lambda: len(centre.submits) == 3)
    centre.link.transport.abort()
    assert [await each for each in sent] == [Unknown()] * 3


async def test_without_a_bind_nothing_is_sent_until_it_is_there_again(
    centre: Centre, made: Made, clock: VirtualClock
) -> None:
    adapter = await made()
    assert await sending(adapter) == Accepted("id-1")
    centre.binds = silent
    link = centre.link
    link.transport.abort()
    sent = sending(adapter)  # the connection is lost before it is known, or after
    assert await sent in (Unknown(), Down("connect_failed"))
    assert await sending(adapter) == Down("connect_failed")
    centre.binds = lambda link, pdu: link.answer(pdu)
    await clock.advance(1)
    await centre.until(lambda: len(centre.links) == 2 and centre.link.bound)
    centre.submitted = lambda link, pdu: link.answer(pdu, message_id="again")
    while (outcome := await sending(adapter)) == Down("connect_failed"):
        pass
    assert outcome == Accepted("again")


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (0x0E, "unauthorized"),
        (0x0F, "unauthorized"),
        (0x0D, "unauthorized"),
        (0x05, "already_bound"),
        (8, "bind_refused"),
    ],
)
async def test_a_bind_that_is_refused_is_tried_again_more_and_more_slowly(
    centre: Centre, made: Made, clock: VirtualClock, status: int, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    centre.binds = lambda link, pdu: link.answer(pdu, status)
    adapter = await made()
    assert await sending(adapter) == Down(code)
    for tries, seconds in enumerate((0.6, 1.2, 2.4, 4.8), 2):
        await clock.advance(seconds)
        await centre.until(lambda tries=tries: len(centre.links) == tries and centre.link.lost.done())
    await clock.advance(3)
    assert len(centre.links) == 5
    assert PASSWORD not in caplog.text


async def test_the_log_says_once_why_a_connection_that_was_lost_does_not_come_back(
    centre: Centre, made: Made, clock: VirtualClock
) -> None:
    with capture_logs() as logs:
        adapter = await made()
        assert await sending(adapter) == Accepted("id-1")
        centre.binds = lambda link, pdu: link.answer(pdu, 0x0E)
        centre.link.transport.abort()
        while adapter.binds:
            await asyncio.sleep(0)
        for tries, seconds in enumerate((0.6, 1.2, 2.4, 4.8), 2):
            await clock.advance(seconds)
            await centre.until(lambda tries=tries: len(centre.links) == tries and centre.link.lost.done())
    told = [(entry["event"], entry.get("code")) for entry in logs if entry["event"].startswith("smpp_")]
    assert told == [("smpp_bound", None), ("smpp_bind_lost", None), ("smpp_bind_failed", "unauthorized")]


async def test_nobody_there_is_down(made: Made, unused_tcp_port: int) -> None:
    adapter = await made(port=unused_tcp_port)
    assert await sending(adapter) == Down("connect_failed")
    assert await sending(adapter) == Down("connect_failed")


async def test_the_window_bounds_what_waits_for_an_answer(centre: Centre, made: Made) -> None:
    centre.submitted = silent
    adapter = await made(window=3)
    sent = [sending(adapter, to=f"+55119876543{place:02}") for place in range(8)]
    for answered in range(6):
        await centre.until(lambda answered=answered: len(centre.submits) == answered + 3)
        await centre.settled()
        assert len(centre.submits) == answered + 3
        submitted = [pdu for pdu in centre.got if pdu.command == Command.SUBMIT_SM]
        centre.link.answer(submitted[answered], message_id=f"{answered}")
        if answered == 5:
            for pdu in submitted[6:]:
                centre.link.answer(pdu, message_id="last")
    assert [await each for each in sent] == [Accepted(f"{each}") for each in range(6)] + [Accepted("last")] * 2
    assert [body.destination_addr[-2:] for body in centre.submits] == [f"{place:02}" for place in range(8)]


async def test_who_gets_no_place_in_the_window_goes_back_and_says_nothing_of_the_centre(
    centre: Centre, made: Made, clock: VirtualClock
) -> None:
    centre.submitted = silent
    adapter = await made(window=1)
    first = sending(adapter)
    await centre.until(lambda: len(centre.submits) == 1)
    others = [sending(adapter) for _ in range(3)]
    await asyncio.sleep(0)
    await clock.advance(PLACE_WITHIN)
    assert [await each for each in others] == [NoPlace()] * 3
    await clock.advance(ANSWER - PLACE_WITHIN - 1)
    patient = sending(adapter)
    await asyncio.sleep(0)
    await clock.advance(1)
    assert await first == Unknown()
    await centre.until(lambda: len(centre.submits) == 2)
    await clock.advance(ANSWER - 2)  # with the second that it waited for its place
    centre.link.answer(centre.got[-1], message_id="in time")
    assert await patient == Accepted("in time")


async def test_a_message_begins_when_all_its_parts_have_a_place_and_others_keep_their_turns(
    centre: Centre, made: Made
) -> None:
    centre.submitted = silent
    adapter = await made(window=3)
    sent = [sending(adapter, text) for text in ("a\nb", "one\ntwo\nthree", "c")]
    await centre.until(lambda: len(centre.submits) == 2)
    first, second = [pdu for pdu in centre.got if pdu.command == Command.SUBMIT_SM]
    centre.link.answer(first, message_id="a")
    await centre.settled()
    assert len(centre.submits) == 2, "two of three parts would have a place"
    centre.link.answer(second, message_id="b")
    await centre.until(lambda: len(centre.submits) == 5)
    await centre.settled()
    assert len(centre.submits) == 5
    centre.submitted = lambda link, pdu: link.answer(pdu, message_id="c")
    for pdu in [pdu for pdu in centre.got if pdu.command == Command.SUBMIT_SM][2:]:
        centre.link.answer(pdu, message_id="three")
    assert [await each for each in sent] == [Accepted("b"), Accepted("three"), Accepted("c")]


async def test_who_waited_behind_a_message_that_went_back_leaves_at_once(
    centre: Centre, made: Made, clock: VirtualClock
) -> None:
    centre.submitted = silent
    adapter = await made(window=2)
    sending(adapter)
    await centre.until(lambda: len(centre.submits) == 1)
    large = sending(adapter, "one\ntwo")
    await asyncio.sleep(0)
    await clock.advance(1)
    small = sending(adapter, "three")
    await asyncio.sleep(0)
    centre.submitted = lambda link, pdu: link.answer(pdu, message_id="small")
    await clock.advance(PLACE_WITHIN - 1)
    assert (await large, await small) == (NoPlace(), Accepted("small"))


async def test_a_message_of_more_parts_than_the_window_has_places_leaves_within_it(centre: Centre, made: Made) -> None:
    centre.submitted = silent
    sent = sending(await made(window=2), "one\ntwo\nthree\nfour\nfive")
    for answered in range(5):
        await centre.until(lambda answered=answered: len(centre.submits) == min(5, answered + 2))
        await centre.settled()
        assert len(centre.submits) == min(5, answered + 2)
        submitted = [pdu for pdu in centre.got if pdu.command == Command.SUBMIT_SM]
        centre.link.answer(submitted[answered], message_id=f"{answered}")
    assert await sent == Accepted("4")


async def test_a_message_of_parts_is_over_in_the_time_of_one_call(
    centre: Centre, made: Made, clock: VirtualClock
) -> None:
    centre.submitted = silent
    adapter = await made(window=2)
    first = sending(adapter, "one\ntwo")
    await centre.until(lambda: len(centre.submits) == 2)
    begun, waiting = clock.monotonic(), sending(adapter, "three\nfour")
    await asyncio.sleep(0)
    await clock.advance(PLACE_WITHIN - 1)
    for pdu in [pdu for pdu in centre.got if pdu.command == Command.SUBMIT_SM]:
        centre.link.answer(pdu, message_id="first")
    assert await first == Accepted("first")
    await centre.until(lambda: len(centre.submits) == 4)
    three = [pdu for pdu in centre.got if pdu.command == Command.SUBMIT_SM][2]
    centre.link.answer(three, 0x58)
    await centre.settled()
    while not waiting.done():
        await clock.advance(0.5)
        await asyncio.sleep(0)
    assert await waiting == Unknown()
    assert clock.monotonic() - begun <= ANSWER


async def test_several_binds_share_the_work(centre: Centre, made: Made) -> None:
    centre.submitted = silent
    adapter = await made(binds=3, window=2)
    await centre.until(lambda: len(centre.links) == 3 and all(link.bound for link in centre.links))
    while adapter.binds < 3:
        await asyncio.sleep(0)
    sent = [sending(adapter) for _ in range(6)]
    await centre.until(lambda: len(centre.submits) == 6)
    by_link = [[pdu for pdu in link.got if pdu.command == Command.SUBMIT_SM] for link in centre.links]
    assert [len(submits) for submits in by_link] == [2, 2, 2]
    centre.links[0].transport.abort()
    for link, submits in zip(centre.links[1:], by_link[1:], strict=True):
        for pdu in submits:
            link.answer(pdu, message_id="x")
    outcomes = [await each for each in sent]
    assert outcomes.count(Unknown()) == 2
    assert outcomes.count(Accepted("x")) == 4
    centre.submitted = lambda link, pdu: link.answer(pdu, message_id="y")
    assert await sending(adapter) == Accepted("y"), "two binds are left"


async def test_parts_that_are_refused_for_now_are_sent_again_beside_those_that_left(
    centre: Centre, made: Made, clock: VirtualClock
) -> None:
    answers = iter([(0, "a"), (0x58, ""), (0, "c"), (0x14, ""), (0, "b")])

    def slows(link: Link, pdu: Pdu) -> None:
        status, message_id = next(answers)
        link.answer(pdu, status, message_id)

    centre.submitted = slows
    sent = sending(await made(), "one\ntwo\nthree")
    await centre.until(lambda: len(centre.submits) == 3)
    for submits in (4, 5):
        while len(centre.submits) < submits:
            await clock.advance(1)
    assert await sent == Accepted("c")
    assert [body.short_message[6:] for body in centre.submits] == [b"one", b"two", b"three", b"two", b"two"]


async def test_a_message_of_which_a_part_never_leaves_is_not_sent_again(
    centre: Centre, made: Made, clock: VirtualClock
) -> None:
    centre.submitted = lambda link, pdu: link.answer(pdu, 0x58 if len(link.centre.submits) > 1 else 0, "a")
    sent = sending(await made(), "one\ntwo")
    await centre.until(lambda: len(centre.submits) == 2)
    while not sent.done():
        await clock.advance(1)
    assert await sent == Unknown()


async def test_the_last_part_that_was_taken_names_the_message_also_where_an_earlier_one_is_in_doubt(
    centre: Centre, made: Made
) -> None:
    answers = iter([(0xFF, ""), (0, ""), (0, "last")])

    def doubtful(link: Link, pdu: Pdu) -> None:
        status, message_id = next(answers)
        link.answer(pdu, status, message_id)

    centre.submitted = doubtful
    assert await sending(await made(), "one\ntwo\nthree") == Accepted("last")


async def test_a_message_without_one_of_its_parts_is_not_named_by_the_last_one(
    centre: Centre, made: Made, clock: VirtualClock
) -> None:
    centre.submitted = lambda link, pdu: link.answer(pdu, 0 if pdu.body.short_message.endswith(b"two") else 0x58, "b")
    sent = sending(await made(), "one\ntwo")
    await centre.until(lambda: len(centre.submits) == 2)
    while not sent.done():
        await clock.advance(1)
    assert await sent == Unknown()


async def test_a_part_that_is_refused_refuses_the_message(centre: Centre, made: Made) -> None:
    centre.submitted = lambda link, pdu: link.answer(pdu, 0x0B if len(link.centre.submits) > 1 else 0, "a")
    assert await sending(await made(), "one\ntwo") == Refused(
        "invalid_number", "the SMS centre answered with status 0x0000000B"
    )


@pytest.mark.parametrize(
    ("changes", "text"), [({"to": "someone"}, "Ola"), ({"to": "+" + "9" * 30}, "Ola"), ({}, "中" * 128)]
)
async def test_what_cannot_be_sent_is_refused_and_quotes_nothing(
    centre: Centre, made: Made, changes: dict[str, Any], text: str
) -> None:
    outcome = await sending(await made(), text, **changes)
    assert isinstance(outcome, Refused)
    assert outcome.code == "provider_error"
    assert not {"someone", "999", "中"} & set(outcome.text.split())
    assert centre.submits == []


async def test_a_dead_peer_is_found_out(centre: Centre, made: Made, clock: VirtualClock) -> None:
    adapter = await made()
    assert await sending(adapter) == Accepted("id-1")
    centre.asked = silent
    first = centre.link
    await clock.advance(ENQUIRE)  # something was heard meanwhile
    await clock.advance(ENQUIRE)
    await centre.until(lambda: first.got[-1].command == Command.ENQUIRE_LINK)
    await clock.advance(ANSWER)
    await centre.until(first.lost.done)
    centre.asked = lambda link, pdu: link.answer(pdu)
    await clock.advance(1)
    await centre.until(lambda: len(centre.links) == 2 and centre.link.bound)


async def test_a_peer_that_answers_is_kept(centre: Centre, made: Made, clock: VirtualClock) -> None:
    adapter = await made()
    assert await sending(adapter) == Accepted("id-1")
    for asked in range(1, 4):
        while sum(pdu.command == Command.ENQUIRE_LINK for pdu in centre.got) < asked:
            await clock.advance(ENQUIRE)
        await clock.advance(ANSWER - 1)
    assert len(centre.links) == 1
    assert await sending(adapter) == Accepted("id-2")


async def test_an_unbind_in_the_middle_lets_what_is_under_way_be_answered(
    centre: Centre, made: Made, clock: VirtualClock
) -> None:
    centre.submitted = silent
    adapter = await made()
    sent = sending(adapter)
    await centre.until(lambda: len(centre.submits) == 1)
    link, pdu = centre.link, centre.got[-1]
    link.write(struct.pack(">IIII", 16, Command.UNBIND, 0, 77))
    await centre.until(lambda: link.answers(Command.UNBIND_RESP) == [(77, 0)])
    assert await sending(adapter) == Down("connect_failed")
    link.answer(pdu, message_id="late but there")
    assert await sent == Accepted("late but there")
    await centre.until(link.lost.done)
    await clock.advance(1)
    await centre.until(lambda: len(centre.links) == 2 and centre.link.bound)


async def test_a_connection_on_which_the_centre_sees_no_bind_is_given_up_for_another(
    centre: Centre, made: Made, clock: VirtualClock
) -> None:
    """It may have forgotten the bind, as after a restart behind a proxy: a probe each time would hear the same."""
    centre.submitted = lambda link, pdu: link.answer(pdu, 0x04 if link is centre.links[0] else 0, "id-1")
    adapter = await made()
    assert await sending(adapter) == Down("not_bound")
    assert await sending(adapter) == Down("connect_failed")
    await centre.until(centre.links[0].lost.done)
    await clock.advance(1)
    await centre.until(lambda: len(centre.links) == 2 and centre.link.bound)
    assert await sending(adapter) == Accepted("id-1")


async def test_a_stop_takes_leave(centre: Centre, made: Made) -> None:
    adapter = await made()
    assert await sending(adapter) == Accepted("id-1")
    await adapter.stop()
    await adapter.stop()
    assert centre.link.got[-1].command == Command.UNBIND
    assert await sending(adapter) == Down("stopped")


async def test_over_tls_the_name_is_verified(
    centre: Centre, made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    centre.tls, trusting = certificate(tmp_path, "localhost")
    await centre.stop()
    await centre.start()
    monkeypatch.setattr(session, "default_tls", lambda: trusting)
    assert await sending(await made(host="localhost", tls=True)) == Accepted("id-1")
    assert await sending(await made(host="127.0.0.1", tls=True)) == Down("connect_failed")
    monkeypatch.setattr(session, "default_tls", ssl.create_default_context)
    assert await sending(await made(host="localhost", tls=True)) == Down("connect_failed")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("", SmppAddress(0, 0, "")),
        ("28282", SmppAddress(3, 0, "28282")),
        ("+5511987654321", SmppAddress(1, 1, "5511987654321")),
        ("5511987654321", SmppAddress(1, 1, "5511987654321")),
        ("Recado", SmppAddress(5, 0, "Recado")),
    ],
)
def test_a_source_says_what_it_is(text: str, address: SmppAddress) -> None:
    assert source_address(text) == address


@pytest.mark.parametrize("text", ["a name that is long", "São", "1" * 21, "a\nb"])
def test_a_source_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="it is no phone"):
        source_address(text)
