"""PDUs and their octets: what is written is read again, and nothing that comes raises anything but the one error."""

import dataclasses
import itertools
import struct
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recado.channels.sms.smpp.framing import LONGEST_PDU, Framer
from recado.channels.sms.smpp.pdu import (
    BODIES,
    MOST_TLVS,
    Body,
    Command,
    MalformedPdu,
    Pdu,
    ShortMessage,
    Tag,
    Taken,
    decode,
    encode,
)

LENGTHS = {
    "system_id": 15,
    "password": 8,
    "system_type": 12,
    "address_range": 40,
    "service_type": 5,
    "source_addr": 20,
    "destination_addr": 20,
    "schedule_delivery_time": 16,
    "validity_period": 16,
    "message_id": 64,
}
CHARACTERS = st.characters(min_codepoint=1, max_codepoint=255)


def values_of(field: dataclasses.Field[Any]) -> st.SearchStrategy[Any]:
    if field.type == "bytes" or field.type is bytes:
        return st.binary(max_size=254)
    if field.type is int:
        return st.integers(0, 255)
    return st.text(CHARACTERS, max_size=LENGTHS[field.name])


def bodies(kind: type[Body]) -> st.SearchStrategy[Body]:
    return st.builds(kind, **{field.name: values_of(field) for field in dataclasses.fields(kind)})


@st.composite
def pdus(draw: st.DrawFn) -> Pdu:
    command = draw(st.sampled_from(Command))
    body = draw(bodies(BODIES[command]))
    tlvs = draw(st.lists(st.tuples(st.integers(0, 0xFFFF), st.binary(max_size=40)), max_size=4))
    status, sequence = draw(st.integers(0, 0xFFFF_FFFF)), draw(st.integers(0, 0xFFFF_FFFF))
    return Pdu(command=command, status=status, sequence=sequence, body=body, tlvs=tuple(tlvs))


@given(pdus())
def test_what_is_written_is_read_again(pdu: Pdu) -> None:
    assert decode(encode(pdu)) == pdu


@given(pdus(), st.data())
def test_a_pdu_that_is_cut_short_is_malformed_whatever_its_length_says(pdu: Pdu, data: st.DataObject) -> None:
    octets = encode(pdu)
    cut = octets[: data.draw(st.integers(0, len(octets) - 1))]
    with pytest.raises(MalformedPdu):
        decode(cut)


@given(st.integers(0, 0xFFFF_FFFF), st.binary(max_size=300))
def test_any_octets_are_a_pdu_or_malformed(command: int, rest: bytes) -> None:
    octets = struct.pack(">IIII", 16 + len(rest), command, 0, 7) + rest
    with suppress(MalformedPdu):
        assert decode(octets).sequence == 7


@given(pdus(), st.data())
def test_an_octet_that_was_changed_on_the_way_raises_no_other_error(pdu: Pdu, data: st.DataObject) -> None:
    octets = bytearray(encode(pdu))
    octets[data.draw(st.integers(0, len(octets) - 1))] = data.draw(st.integers(0, 255))
    with suppress(MalformedPdu):
        decode(bytes(octets))


def test_an_unknown_command_is_told_with_the_status_for_it() -> None:
    with pytest.raises(MalformedPdu) as told:
        decode(struct.pack(">IIII", 16, 0x0000_0999, 0, 12))
    assert (told.value.status, told.value.command, told.value.sequence) == (0x03, 0x999, 12)


@pytest.mark.parametrize(
    ("octets", "status"),
    [
        (b"", 0x02),
        (struct.pack(">IIII", 17, Command.ENQUIRE_LINK, 0, 1), 0x02),
        (struct.pack(">IIII", 18, Command.ENQUIRE_LINK, 0, 1) + b"\x04\x24", 0xC0),
        (struct.pack(">IIII", 20, Command.ENQUIRE_LINK, 0, 1) + b"\x04\x24\x00\x01", 0xC0),
        (struct.pack(">IIII", 16, Command.SUBMIT_SM, 0, 1), 0x02),
        (struct.pack(">IIII", 86, Command.SUBMIT_SM_RESP, 0, 1) + b"7" * 69 + b"\0", 0x02),
    ],
)
def test_what_is_malformed_says_why_to_whoever_sent_it(octets: bytes, status: int) -> None:
    with pytest.raises(MalformedPdu) as told:
        decode(octets)
    assert told.value.status == status


def test_a_response_of_a_refusal_may_have_no_body() -> None:
    octets = struct.pack(">IIII", 16, Command.SUBMIT_SM_RESP, 0x58, 3)
    assert decode(octets) == Pdu(command=Command.SUBMIT_SM_RESP, status=0x58, sequence=3, body=Taken(""))


def test_a_tlv_is_found_by_its_tag_and_an_unknown_one_is_kept() -> None:
    tlvs = ((0x1400, b"\x01"), (Tag.MESSAGE_PAYLOAD, b"a"), (Tag.MESSAGE_PAYLOAD, b"b"))
    pdu = decode(encode(Pdu(command=Command.DELIVER_SM, body=ShortMessage(), tlvs=tlvs)))
    assert pdu.tlv(Tag.MESSAGE_PAYLOAD) == b"a"
    assert pdu.tlv(Tag.MESSAGE_STATE) is None
    assert pdu.tlvs == tlvs


@pytest.mark.parametrize(
    "body",
    [
        ShortMessage(short_message=b"x" * 255),
        ShortMessage(source_addr="1" * 21),
        ShortMessage(source_addr="a\0b"),
        ShortMessage(source_addr="中"),
        ShortMessage(esm_class=256),
        Taken("x" * 65),
    ],
)
def test_what_does_not_fit_is_not_written(body: Body) -> None:
    with pytest.raises(ValueError, match=r"short_message|source_addr|esm_class|message_id") as told:
        encode(Pdu(command=Command.SUBMIT_SM, body=body))
    assert "111" not in str(told.value)


def test_a_representation_holds_no_address_no_text_and_no_password() -> None:
    body = ShortMessage(source_addr="5511987654321", destination_addr="5511987654322", short_message=b"segredo")
    assert not {"55119", "segredo"} & set(repr(Pdu(command=Command.SUBMIT_SM, body=body)).split("'"))
    assert "55119" not in repr(body)
    assert "segredo" not in repr(body)


# The stream -----------------------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(st.lists(pdus(), max_size=3), st.lists(st.integers(1, 60), min_size=1, max_size=10))
def test_a_stream_is_cut_into_the_same_pdus_however_it_arrives(given_pdus: list[Pdu], sizes: list[int]) -> None:
    stream = b"".join(encode(pdu) for pdu in given_pdus)
    framer, found, at = Framer(), [], 0
    for size in itertools.cycle(sizes):
        found += framer.feed(stream[at : at + size])
        at += size
        if at >= len(stream):
            break
    assert [decode(octets) for octets in found] == given_pdus
    assert not framer.broken


@pytest.mark.parametrize("length", [0, 15, LONGEST_PDU + 1, 0xFFFF_FFFF])
def test_a_length_that_no_pdu_has_breaks_the_stream_after_those_before_it(length: int) -> None:
    framer, first = Framer(), encode(Pdu(command=Command.ENQUIRE_LINK))
    assert framer.feed(first + struct.pack(">IIII", length, Command.ENQUIRE_LINK, 0, 2)) == [first]
    assert framer.broken
    assert framer.feed(first) == []


def test_the_longest_pdu_is_taken_octet_by_octet() -> None:
    octets = struct.pack(">IIII", LONGEST_PDU, Command.DELIVER_SM, 0, 1).ljust(LONGEST_PDU, b"\0")
    framer, found = Framer(), []
    for octet in octets:
        found += framer.feed(bytes((octet,)))
    assert found == [octets]


def test_a_pdu_has_only_so_many_tlvs() -> None:
    tlvs = ((0x1400, b""),) * MOST_TLVS
    assert decode(encode(Pdu(command=Command.DELIVER_SM, body=ShortMessage(), tlvs=tlvs))).tlvs == tlvs
    with pytest.raises(MalformedPdu):
        decode(encode(Pdu(command=Command.DELIVER_SM, body=ShortMessage(), tlvs=(*tlvs, (0x1400, b"")))))
