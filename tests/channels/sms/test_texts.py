"""Texts as octets in each coding, and their parts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.channels.sms.smpp import gsm7
from recado.channels.sms.smpp.pdu import HEADER, Command, DataMessage, Pdu, ShortMessage, Tag, decode
from recado.channels.sms.smpp.submits import SmppAddress, Submits
from recado.channels.sms.smpp.texts import Alphabet, Part, part_of, parts_of, text_of
from recado.domain.messages.sms_text import segment_texts

ALPHABET = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCXYZÄÖÑÜ§¿abcxyzäöñüà\f^{}\\[~]|€"
GSM_TEXTS = st.text(st.sampled_from(ALPHABET), max_size=153)


def received(part: Part) -> Pdu:
    body = ShortMessage(esm_class=part.esm_class, data_coding=part.data_coding, short_message=part.octets)
    return Pdu(command=Command.DELIVER_SM, body=body)


@given(GSM_TEXTS)
def test_the_default_alphabet_goes_there_and_back(text: str) -> None:
    septets = gsm7.encode(text)
    assert septets is not None
    assert gsm7.decode(septets) == text


@given(st.binary(max_size=160).map(lambda octets: bytes(each & 0x7F for each in octets)), st.sampled_from([0, 6, 7]))
def test_packed_septets_are_unpacked_again(septets: bytes, header: int) -> None:
    packed = gsm7.pack(septets, header)
    assert len(packed) <= (7 * len(septets) + 7 + 7) // 8
    unpacked = gsm7.unpack(packed, header)
    # A carriage return at the end of an octet cannot be told from what fills the octet up.
    assert unpacked == septets or (unpacked == septets[:-1] and septets.endswith(b"\r"))


def test_septets_are_packed_as_phones_read_them() -> None:
    assert gsm7.pack(b"hellohello").hex() == "e8329bfd4697d9ec37"
    assert gsm7.pack(b"1234567").hex() == "31d98c56b3dd1a"  # seven bits left over hold a carriage return
    assert gsm7.unpack(bytes.fromhex("31d98c56b3dd1a")) == b"1234567"


@pytest.mark.parametrize("text", ["ã", "ç", "中", "a\x1b", "`", "\t", "\0"])
def test_what_the_alphabet_does_not_have_is_not_put_into_it(text: str) -> None:
    assert gsm7.encode(text) is None


@given(st.binary(max_size=300))
def test_any_octets_are_read_as_some_text(octets: bytes) -> None:
    assert len(gsm7.decode(octets)) <= len(octets)
    gsm7.decode(gsm7.unpack(octets, 6))


@given(GSM_TEXTS, st.sampled_from(["gsm7", "gsm7_packed", "latin1"]))
def test_a_text_of_one_part_is_read_again(text: str, alphabet: Alphabet) -> None:
    [part] = parts_of([text], alphabet, 7)
    assert part.esm_class == 0
    # A carriage return at the end of an octet cannot be told from what fills the octet up.
    assert text_of(received(part), alphabet) in (text, text.removesuffix("\r") if alphabet == "gsm7_packed" else text)


@given(st.text(st.characters(min_codepoint=1, exclude_categories=["Cs"]), max_size=60))
def test_any_text_is_read_again(text: str) -> None:
    [part] = parts_of([text], "gsm7", 7)
    assert text_of(received(part), "gsm7") == text


@pytest.mark.parametrize(
    ("text", "alphabet", "coding", "octets"),
    [
        ("Olé [€]", "gsm7", 0, "4f6c05201b3c1b651b3e"),
        ("hellohello", "gsm7_packed", 0, "e8329bfd4697d9ec37"),
        ("Olé", "latin1", 3, "4f6ce9"),
        ("Olé €", "latin1", 0, "4f6c05201b65"),
        ("Olá", "latin1", 8, "004f006c00e1"),
        ("Olá 😀", "gsm7", 8, "004f006c00e10020d83dde00"),
    ],
)
def test_each_coding_has_its_octets(text: str, alphabet: Alphabet, coding: int, octets: str) -> None:
    assert parts_of([text], alphabet, 1) == [Part(coding, 0, bytes.fromhex(octets))]


def test_parts_say_where_they_belong_and_are_all_in_one_coding() -> None:
    parts = parts_of(["a" * 67, "中"], "gsm7", 0x1234)
    assert [(part.data_coding, part.esm_class, part.octets[:6].hex()) for part in parts] == [
        (8, 0x40, "050003340201"),
        (8, 0x40, "050003340202"),
    ]
    wide = parts_of(["a", "b", "c"], "gsm7", 0x1234, wide=True)
    assert [part.octets.hex() for part in wide] == [
        "0608041234030161",
        "0608041234030262",
        "0608041234030363",
    ]


@pytest.mark.parametrize("alphabet", ["gsm7", "gsm7_packed", "latin1"])
@pytest.mark.parametrize("wide", [False, True])
def test_the_text_of_a_part_is_read_without_its_header(alphabet: Alphabet, wide: bool) -> None:
    segments = ["x" * 152 + "é", "y" * 20]
    parts = parts_of(segments, alphabet, 9, wide=wide)
    assert [text_of(received(part), alphabet) for part in parts] == segments


@pytest.mark.parametrize("wide", [False, True])
def test_a_part_says_which_of_how_many_it_is(wide: bool) -> None:
    parts = parts_of(["x" * 153, "y", "z"], "gsm7", 9, wide=wide) + parts_of(["x"], "gsm7", 9)
    bodies = [ShortMessage(esm_class=part.esm_class, short_message=part.octets) for part in parts]
    assert [part_of(body) for body in bodies] == [(1, 3), (2, 3), (3, 3), (1, 1)]


@pytest.mark.parametrize(
    ("octets", "part"),
    [
        ("08240101000309020241", (2, 2)),  # after another element
        ("0324010141", (1, 1)),
        ("0400030902", (1, 1)),  # cut short
        ("0500090902", (1, 1)),
        ("ff0003090202", (1, 1)),
        ("00", (1, 1)),
        ("", (1, 1)),
    ],
)
def test_a_header_that_says_nothing_of_parts_is_of_a_whole_message(octets: str, part: tuple[int, int]) -> None:
    assert part_of(ShortMessage(esm_class=0x40, short_message=bytes.fromhex(octets))) == part


def test_a_segment_that_no_short_message_holds_is_refused() -> None:
    with pytest.raises(ValueError, match="longer than 254 octets"):
        parts_of(["中" * 128], "gsm7", 1)


@pytest.mark.parametrize(
    ("coding", "octets", "text"),
    [
        (0, b"Ol\x05", "Olé"),
        (0xF1, b"Ol\x05", "Olé"),
        (1, b"abc", "abc"),
        (3, b"\xe9", "é"),
        (8, b"\x00a\x00", "a\ufffd"),
        (8, b"\xd8\x3d", "\ufffd"),
        (8, b"\x00\x00", "\ufffd"),
        (4, b"abc", None),
        (0xF5, b"abc", None),
        (0, b"a\x1b", "a"),
        (0, b"\x1b\x1ba", " a"),
    ],
)
def test_what_people_send_is_read_by_its_coding(coding: int, octets: bytes, text: str | None) -> None:
    body = ShortMessage(data_coding=coding, short_message=octets)
    assert text_of(Pdu(command=Command.DELIVER_SM, body=body), "gsm7") == text


def test_a_long_text_comes_as_a_tlv() -> None:
    tlvs = ((Tag.MESSAGE_PAYLOAD, b"a long one"),)
    assert text_of(Pdu(command=Command.DELIVER_SM, body=ShortMessage(), tlvs=tlvs), "gsm7") == "a long one"
    assert text_of(Pdu(command=Command.DATA_SM, body=DataMessage(), tlvs=tlvs), "gsm7") == "a long one"


@given(st.integers(0, 255), st.integers(0, 255), st.binary(max_size=254))
def test_nothing_that_people_send_raises(esm_class: int, coding: int, octets: bytes) -> None:
    body = ShortMessage(esm_class=esm_class, data_coding=coding, short_message=octets)
    for alphabet in ("gsm7", "gsm7_packed", "latin1"):
        text = text_of(Pdu(command=Command.DELIVER_SM, body=body), alphabet)
        assert text is None or "\0" not in text


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("character", ["a", "{", "ã", "😀"])
def test_a_part_and_its_header_fit_into_a_short_message(character: str, wide: bool) -> None:
    """That has 140 octets, of which a header with a wide reference takes one more."""
    submits = Submits(segment_texts, alphabet="gsm7_packed", wide_reference=wide)
    told = []
    for body in submits.bodies("msg_1", SmppAddress(0, 0, ""), "+5511987654321", character * 500):
        part = decode(HEADER.pack(HEADER.size + len(body), Command.SUBMIT_SM, 0, 1) + body)
        assert isinstance(part.body, ShortMessage)
        assert len(part.body.short_message) <= 140
        told.append(text_of(part, "gsm7_packed"))
    assert len(told) > 3
    assert "".join(str(each) for each in told) == character * 500
