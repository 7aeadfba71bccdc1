"""What a text is as an SMS: encoding, length, segments (C16.2)."""

import random
from itertools import pairwise

import pytest
import smsutil
from hypothesis import assume, given
from hypothesis import strategies as st

from recado.domain.core.errors import Problem
from recado.domain.links.text_links import short_link
from recado.domain.messages.gsm_alphabet import BASIC, EXTENSION
from recado.domain.messages.sms_text import MOST_CHARACTERS, MOST_SEGMENTS, Encoding, measure, segment_texts

BASE = "https://go.example"
SHORT = "https://go.example/l/00000000"  # 29 characters

# What takes one unit and what takes two, in either encoding.
gsm = st.text(st.sampled_from(BASIC[:40] + EXTENSION), max_size=700)
ucs = st.text(st.sampled_from("aãж漢€😀🏽\u200d"), max_size=330)
typed = st.text(st.sampled_from("aãçéÊ“”…–½™ﬃ😀ж \u0301€"), max_size=330)


def brief(value: object) -> str:
    """The name of a case in a table: a long text is told by its beginning and its length."""
    told = ascii(value)
    return told if len(told) < 20 else f"{told[:12]}-{len(told)}"


def taken(text: str) -> tuple[str, int, int, int]:
    found = measure(text)
    return found.encoding, found.length, found.segments, found.characters_left


@pytest.mark.parametrize(
    ("text", "length", "segments", "left"),
    [
        ("", 0, 1, 160),
        ("a", 1, 1, 159),
        ("a" * 160, 160, 1, 0),
        ("a" * 161, 161, 2, 145),
        ("a" * 306, 306, 2, 0),
        ("a" * 307, 307, 3, 152),
        ("a" * 1530, 1530, 10, 0),
        ("\r\n@à", 4, 1, 156),
        ("€", 2, 1, 158),
        ("€" * 80, 160, 1, 0),
        ("a" * 159 + "€", 161, 2, 145),
        ("a" * 152 + "€" + "a" * 152, 306, 3, 152),  # the pair begins the second one
        ("a" * 153 + "€" * 76, 305, 2, 1),
        ("€" * 153, 306, 3, 151),  # 76 pairs in each of several: a septet stays free
    ],
    ids=brief,
)
def test_septets_and_segments_at_the_borders(text: str, length: int, segments: int, left: int) -> None:
    assert taken(text) == ("GSM-7", length, segments, left)


@pytest.mark.parametrize(
    ("text", "length", "segments", "left"),
    [
        ("ã", 1, 1, 69),
        ("€ã", 2, 1, 68),  # no pair: one unit
        ("ã" * 70, 70, 1, 0),
        ("ã" * 71, 71, 2, 63),
        ("ã" * 134, 134, 2, 0),
        ("ã" * 135, 135, 3, 66),
        ("ã" * 670, 670, 10, 0),
        ("😀", 2, 1, 68),
        ("😀" * 35, 70, 1, 0),
        ("ã" * 69 + "😀", 71, 2, 63),
        ("ã" * 66 + "😀" + "ã" * 66, 134, 3, 66),
        ("😀" * 67, 134, 3, 65),
        ("a\0", 2, 1, 68),
        ("a\ud83d", 2, 1, 68),  # half a character harms nothing
    ],
    ids=brief,
)
def test_units_and_segments_at_the_borders(text: str, length: int, segments: int, left: int) -> None:
    assert taken(text) == ("UCS-2", length, segments, left)


@pytest.mark.parametrize("text", ["a" * 1531, "ã" * 671, "€" * 761, "😀" * 331, "a" * MOST_CHARACTERS], ids=brief)
def test_more_than_ten_segments_are_refused(text: str) -> None:
    with pytest.raises(Problem) as caught:
        measure(text)
    assert (caught.value.status, caught.value.code) == (422, "TEXT_TOO_LONG")
    assert [error.path for error in caught.value.errors] == ["/text"]
    assert f"may take {MOST_SEGMENTS}." in caught.value.detail


def test_a_refusal_tells_what_the_text_takes() -> None:
    with pytest.raises(Problem, match=r"takes 11 segments in UCS-2, and may take 10\."):
        measure("ã" * 671)


def test_a_text_beyond_all_measure_is_refused_unread() -> None:
    with pytest.raises(Problem, match=r"at most 10,000 characters"):
        measure("\u200b" * (MOST_CHARACTERS + 1), transliterate=True)


def test_what_is_outside_is_told() -> None:
    assert measure("Não, ação").non_gsm == ("ã", "ç")
    assert measure("Não, ação", transliterate=True).non_gsm == ()
    assert measure("Não ☂", transliterate=True).non_gsm == ("☂",)


def test_transliterated_a_text_leaves_in_seven_bits() -> None:
    found = measure("Olá Ana, seu pedido está pronto. " * 4, transliterate=True)
    assert (found.encoding, found.length, found.segments) == ("GSM-7", 132, 1)
    assert found.text == "Ola Ana, seu pedido esta pronto. " * 4
    assert measure("Olá Ana, seu pedido está pronto. " * 4).segments == 2


@pytest.mark.parametrize("text", ["…" * 70, "\u200b", "“" + "😀" * 34 + "…"], ids=brief)
def test_nothing_is_replaced_where_it_would_cost_a_segment_or_leave_nothing(text: str) -> None:
    # 210 septets for 70 units; no text at all; 72 units for 70
    assert measure(text, transliterate=True) == measure(text)


def test_a_link_that_stays_is_not_transliterated() -> None:
    found = measure("Promoção: https://a.example/promoção!", transliterate=True)
    assert found.text == "Promocao: https://a.example/promoção!"
    assert (found.encoding, found.non_gsm) == (Encoding.UCS_2, ("ç", "ã"))


def test_short_links_are_counted_and_not_what_they_stand_for() -> None:
    long = f"https://a.example/{'promoção/' * 100}"
    found = measure(f"Veja {long}, e {long} ou https://b.example.", shorten=lambda _: short_link(BASE))
    assert found.text == f"Veja {SHORT}, e {SHORT} ou {SHORT}."
    assert (found.encoding, found.length, found.segments) == ("GSM-7", len(found.text), 1)
    assert found.links == (long, "https://b.example")


def test_each_distinct_link_gets_one_short_form() -> None:
    codes = iter(["AAAAAAAA", "BBBBBBBB"])
    found = measure(
        "“https://a.example” https://b.example https://a.example",
        transliterate=True,
        shorten=lambda _: short_link(BASE, next(codes)),
    )
    assert found.text == f'"{BASE}/l/AAAAAAAA" {BASE}/l/BBBBBBBB {BASE}/l/AAAAAAAA'


def test_links_are_none_where_they_stay() -> None:
    found = measure("https://a.example")
    assert (found.text, found.links) == ("https://a.example", ())


def test_a_text_is_not_shown_in_a_log() -> None:
    assert "secret" not in repr(measure("secret https://secret.example", shorten=str))


@given(gsm | ucs)
def test_segments_are_the_text_in_pieces_of_the_right_size(text: str) -> None:
    found = measure(text)
    pieces = segment_texts(text)
    assert "".join(pieces) == text
    assert len(pieces) == found.segments

    def size(piece: str) -> int:  # by the encoding of the whole
        if found.encoding is Encoding.GSM_7:
            return len(piece) + sum(each in EXTENSION for each in piece)
        return len(piece.encode("utf-16-le")) // 2

    alone, room = (160, 153) if found.encoding is Encoding.GSM_7 else (70, 67)
    assert found.length == size(text)
    assert (found.segments == 1) == (found.length <= alone)
    if found.segments > 1:
        assert all(size(piece) <= room for piece in pieces)
        assert all(size(piece + following[0]) > room for piece, following in pairwise(pieces))
        assert found.characters_left == room - size(pieces[-1])


@given(gsm | ucs)
def test_what_is_left_can_be_filled_and_not_more(text: str) -> None:
    found = measure(text)
    assume(found.segments < MOST_SEGMENTS)
    full = measure(text + "a" * found.characters_left)
    assert (full.encoding, full.segments, full.characters_left) == (found.encoding, found.segments, 0)
    assert measure(f"{full.text}a").segments == found.segments + 1


@given(typed)
def test_transliterated_a_text_takes_no_more_segments(text: str) -> None:
    before, after = measure(text), measure(text, transliterate=True)
    assert after.segments <= before.segments
    assert set(after.non_gsm) <= set(before.non_gsm)
    assert measure(after.text, transliterate=True) == after
    if before.encoding is Encoding.GSM_7:
        assert after == before


@given(st.lists(typed.filter(lambda text: len(text) < 20) | st.just(" https://a.example/x ")).map("".join))
def test_a_count_with_sample_links_holds_with_any_codes(text: str) -> None:
    def sizes(code: str) -> tuple[Encoding, int, int]:
        found = measure(text, transliterate=True, shorten=lambda _: short_link(BASE, code))
        return found.encoding, found.length, found.segments

    assume(len(text) < 300)
    assert sizes("00000000") == sizes("zZ9yY8xX")


@pytest.mark.parametrize("rounds", [2_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_another_library_counts_and_cuts_the_same(rounds: int) -> None:
    rng = random.Random(rounds)
    alphabets = ("a", BASIC, BASIC + EXTENSION, EXTENSION, "aã€漢", "a😀", "aã^€😀👍\u200d")
    for turn in range(rounds):
        border = rng.choice((1, 70, 134, 160, 306, 670, rng.randint(1, 1_500)))
        length = max(1, border + rng.randint(-5, 5))
        text = "".join(rng.choices(rng.choice(alphabets), k=length))
        theirs = smsutil.split(text)
        told = f"text {turn} of {rounds}"
        assert segment_texts(text) == [part.content for part in theirs.parts], told
        if len(theirs.parts) > MOST_SEGMENTS:
            with pytest.raises(Problem):
                measure(text)
            continue
        ours = measure(text)
        seven = theirs.encoding == "gsm0338"
        assert ours.encoding is (Encoding.GSM_7 if seven else Encoding.UCS_2), told
        assert (ours.length, ours.segments) == (theirs.total_bytes // (1 if seven else 2), len(theirs.parts)), told
