"""Delivery receipts in their two forms, as SMS centres write them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.channels.sms.smpp.delivery_receipts import (
    DeliveryReceipt,
    MessageIds,
    canonical_id,
    is_receipt,
    read_receipt,
)
from recado.channels.sms.smpp.pdu import Command, DataMessage, Pdu, ShortMessage, Tag

FULL = "id:{id} sub:001 dlvrd:001 submit date:2611201200 done date:2611201201 stat:{stat} err:000 text:Ola id:9 stat:X"


def deliver(text: str = "", *, esm_class: int = 4, tlvs: tuple[tuple[int, bytes], ...] = ()) -> Pdu:
    body = ShortMessage(esm_class=esm_class, short_message=text.encode("latin-1"))
    return Pdu(command=Command.DELIVER_SM, body=body, tlvs=tlvs)


@pytest.mark.parametrize(
    ("stat", "status", "code"),
    [
        ("DELIVRD", "delivered", None),
        ("delivrd", "delivered", None),
        ("EXPIRED", "failed", "expired"),
        ("DELETED", "failed", "carrier_rejected"),
        ("UNDELIV", "failed", "carrier_rejected"),
        ("UNDELIVERABLE", "failed", "carrier_rejected"),
        ("REJECTD", "failed", "carrier_rejected"),
        ("REJECTED", None, None),
        ("ACCEPTD", "sent", None),
        ("ENROUTE", "sent", None),
        ("UNKNOWN", None, None),
        ("BUFFERED", None, None),
    ],
)
def test_the_state_in_a_text_is_read(stat: str, status: Any, code: str | None) -> None:
    assert read_receipt(deliver(FULL.format(id="ab-1", stat=stat)), "text") == DeliveryReceipt("ab-1", status, code)


@pytest.mark.parametrize(
    "text",
    [
        "id:77 stat:DELIVRD",
        "ID:77 STAT:DELIVRD ERR:000",
        "id: 77 sub: 001 stat: DELIVRD",
        "id:77  sub:1 dlvrd:1 submit date:20261120120000 done date:20261120120100 stat:DELIVRD err:0 Text:",
        "stat:DELIVRD\nid:77\n",
    ],
)
def test_what_is_written_otherwise_is_understood(text: str) -> None:
    assert read_receipt(deliver(text), "text") == DeliveryReceipt("77", "delivered")


@pytest.mark.parametrize(
    ("state", "status", "code"),
    [
        (1, "sent", None),
        (2, "delivered", None),
        (3, "failed", "expired"),
        (4, "failed", "carrier_rejected"),
        (5, "failed", "carrier_rejected"),
        (6, "sent", None),
        (7, None, None),
        (8, "failed", "carrier_rejected"),
        (99, None, None),
    ],
)
def test_tlvs_are_believed_before_the_text(state: int, status: Any, code: str | None) -> None:
    tlvs = ((Tag.RECEIPTED_MESSAGE_ID, b"77\0"), (Tag.MESSAGE_STATE, bytes((state,))))
    for pdu in (
        deliver("id:1 stat:ENROUTE", tlvs=tlvs),
        deliver(tlvs=tlvs, esm_class=0),
        Pdu(command=Command.DATA_SM, body=DataMessage(esm_class=4), tlvs=tlvs),
    ):
        assert is_receipt(pdu)
        assert read_receipt(pdu, "text") == DeliveryReceipt("77", status, code)


@pytest.mark.parametrize(
    ("error", "code"),
    [(b"\x03\x00\x01", "invalid_number"), (b"\x03\x00\x1b", "carrier_rejected"), (b"\x03", "carrier_rejected")],
)
def test_a_network_that_does_not_know_the_number_says_so(error: bytes, code: str) -> None:
    pdu = deliver("id:7 stat:UNDELIV", tlvs=((Tag.NETWORK_ERROR_CODE, error),))
    assert read_receipt(pdu, "text") == DeliveryReceipt("7", "failed", code)


@pytest.mark.parametrize("coding", ["utf-16-be", "latin-1"])
def test_a_receipt_may_be_in_the_coding_of_its_message_or_only_say_so(coding: str) -> None:
    body = ShortMessage(esm_class=4, data_coding=8, short_message="id:77 stat:DELIVRD err:000 text:Olá".encode(coding))
    assert read_receipt(Pdu(command=Command.DELIVER_SM, body=body), "text") == DeliveryReceipt("77", "delivered")


def test_a_receipt_is_kept_as_it_was_given() -> None:
    body = ShortMessage(source_addr="5511987654321", esm_class=4, short_message=b"id:1a stat:undeliv err:069 text:Ola")
    receipt = read_receipt(Pdu(command=Command.DELIVER_SM, body=body), "hex")
    assert receipt == DeliveryReceipt("26", "failed", "carrier_rejected")
    assert receipt.told == {
        "id": "1a",
        "status": "UNDELIV",
        "statusDescription": "err:069",
        "to": "5511987654321",
    }


def test_a_receipt_may_come_in_the_payload() -> None:
    pdu = deliver(tlvs=((Tag.MESSAGE_PAYLOAD, b"id:7 stat:DELIVRD"),))
    assert read_receipt(pdu, "text") == DeliveryReceipt("7", "delivered")


@pytest.mark.parametrize(
    ("esm_class", "receipt"), [(0, False), (0x04, True), (0x20, True), (0x40, False), (0x44, True)]
)
def test_a_receipt_is_told_from_what_a_person_wrote(esm_class: int, receipt: bool) -> None:
    assert is_receipt(deliver("id:7 stat:DELIVRD", esm_class=esm_class)) is receipt


def test_what_names_no_message_is_none() -> None:
    assert read_receipt(deliver("thanks!"), "text") is None
    assert read_receipt(deliver("stat:DELIVRD"), "text") is None
    assert read_receipt(deliver(tlvs=((Tag.RECEIPTED_MESSAGE_ID, b"a\0b"),)), "text") is None
    assert read_receipt(deliver(tlvs=((Tag.RECEIPTED_MESSAGE_ID, b"x" * 300),)), "text") is None


@pytest.mark.parametrize(
    ("ids", "answered", "receipted"),
    [
        ("text", "00A1-x", "00A1-x"),
        ("hex", "1A2B", "00001a2b"),
        ("hex_decimal", "1A2B", "0000006699"),
        ("decimal_hex", "6699", "1a2b"),
    ],
)
def test_ids_of_answers_and_receipts_meet(ids: MessageIds, answered: str, receipted: str) -> None:
    assert canonical_id(answered, ids, receipt=False) == canonical_id(receipted, ids, receipt=True)


@given(st.text(max_size=100), st.sampled_from(["text", "hex", "hex_decimal", "decimal_hex"]), st.booleans())
def test_an_id_of_another_form_stays_as_it_is(message_id: str, ids: MessageIds, receipt: bool) -> None:
    found = canonical_id(message_id, ids, receipt=receipt)
    assert found == message_id or found.isdecimal()


@given(
    st.binary(max_size=254),
    st.lists(st.tuples(st.sampled_from([*Tag, 0x1400]), st.binary(max_size=30)), max_size=4),
    st.sampled_from(["text", "hex", "hex_decimal", "decimal_hex"]),
)
def test_nothing_in_a_receipt_raises(octets: bytes, tlvs: list[tuple[int, bytes]], ids: MessageIds) -> None:
    pdu = deliver(octets.decode("latin-1"), tlvs=tuple(tlvs))
    receipt = read_receipt(pdu, ids)
    assert receipt is None or (0 < len(receipt.message_id) <= 255 and "\0" not in receipt.message_id)
