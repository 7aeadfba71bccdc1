"""Placeholders in e-mails: found, declared, filled in by the part in which they stand (C10.2.6)."""

import time
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.core.errors import Problem
from recado.domain.email.rendering import MIB, EmailPart, EmailParts, as_text, names_in, undeclared

NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,63}", fullmatch=True)
VALUES = st.one_of(
    st.text(max_size=100), st.integers(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False)
)
PLAIN = st.text(max_size=50).filter(lambda text: "{" not in text and "}" not in text)
BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"


def content(subject: str = "s", html: str = "h", text: str | None = None, **examples: str | None) -> EmailParts:
    return EmailParts({EmailPart.SUBJECT: subject, EmailPart.HTML: html, EmailPart.TEXT: text}, examples)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("{{a}} {{ b }} {{a}}", ("a", "b")),
        ("{{  Order_7  }}", ("Order_7",)),
        ("{{{a}}}", ("a",)),
        (f"{{{{{'x' * 64}}}}}", ("x" * 64,)),
        (f"{{{{{'x' * 65}}}}}", ()),
        ("{{7}} {{a.b}} {{a b}} {{}} {{ }} {{_a}} {a} {{a} {{é}} {{a\n}}", ()),
    ],
)
def test_what_is_a_placeholder(text: str, names: tuple[str, ...]) -> None:
    assert names_in(text) == names


def test_a_value_is_written_as_its_part_wants_it() -> None:
    value = "<b>\"Ana\" & 'co'</b>\nline"
    made = content("Hi {{v}}", "<p>{{v}}</p>", "{{v}}", v=None).render({"v": value})
    assert made.subject == "Hi <b>\"Ana\" & 'co'</b>line"
    assert made.html == "<p>&lt;b&gt;&quot;Ana&quot; &amp; &#x27;co&#x27;&lt;/b&gt;\nline</p>"
    assert made.text == value


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "true"), (False, "false"), (7, "7"), (-1, "-1"), (1.5, "1.5"), ("true", "true"), ("", "")],
)
def test_a_value_that_is_no_text_is_written_as_in_json(value: str | float | bool, text: str) -> None:
    assert as_text(value) == text


def test_a_variable_without_a_value_takes_its_example_or_is_empty() -> None:
    made = content("{{a}}|{{b}}|{{c}}", a="one", b=None, c="three", d=None).render({"c": "3", "e": "of nobody"})
    assert (made.subject, made.missing) == ("one||3", ("a", "b"))


def test_what_a_value_holds_is_no_placeholder() -> None:
    assert content("{{a}}{{b}}", a=None, b=None).render({"a": "{{b}}", "b": "{{a}}"}).subject == "{{b}}{{a}}"


@given(st.lists(st.tuples(PLAIN, NAMES), max_size=8), PLAIN, st.data())
def test_a_part_is_its_pieces_with_values_in_place_of_names(
    pieces: list[tuple[str, str]], end: str, data: st.DataObject
) -> None:
    values = {name: data.draw(VALUES) for _, name in pieces}
    source = "".join(f"{plain}{{{{ {name} }}}}" for plain, name in pieces) + end
    made = content(html=source, text=source, **dict.fromkeys(values)).render(values)
    assert made.text == "".join(f"{plain}{as_text(values[name])}" for plain, name in pieces) + end
    assert made.missing == ()


@given(VALUES)
def test_no_value_leaves_its_place_in_html(value: str | float | bool) -> None:
    made = content(html='<a title="{{v}}">{{v}}</a>', v=None).render({"v": value}).html
    inside = made.removeprefix('<a title="').removesuffix("</a>")
    assert not set("<'").intersection(inside)
    assert inside.count('"') == inside.count(">") == 1
    assert unescape(inside.partition('">')[0]) == unescape(inside.partition('">')[2])


@given(st.text(alphabet=st.one_of(st.sampled_from(BREAKS), st.characters()), max_size=50))
def test_no_value_breaks_the_line_of_a_subject(value: str) -> None:
    made = content("a{{v}}b", v=None).render({"v": value}).subject
    assert len(made.splitlines()) == 1
    assert not set(BREAKS).intersection(made)


@given(st.lists(NAMES, max_size=20), st.lists(NAMES, max_size=20))
def test_what_is_used_and_not_declared_is_found_once(used: list[str], declared: list[str]) -> None:
    found = undeclared({EmailPart.SUBJECT: used, EmailPart.HTML: used}, declared)
    assert [name for _, name in found] == [name for name in dict.fromkeys(used) if name not in set(declared)]
    assert {part for part, _ in found} <= {EmailPart.SUBJECT}


@pytest.mark.parametrize(
    ("parts", "part"),
    [
        ({"subject": "{{v}}" * 26}, "subject"),
        ({"html": "{{v}}" * 104_858}, "html"),
        ({"html": "é" * (MIB // 2 - 4) + "{{v}}"}, "html"),
        ({"text": "{{v}}" * 26_215}, "text"),
    ],
)
def test_nothing_grows_beyond_what_a_part_holds(parts: dict[str, str], part: str) -> None:
    with pytest.raises(Problem) as caught:
        content(**parts, v=None).render({"v": "x" * 10})
    assert caught.value.code == "TEXT_TOO_LONG"
    assert part in caught.value.detail


def test_a_bomb_is_refused_before_it_is_built() -> None:
    made = content(html="{{v}}" * 200_000, v=None)
    began = time.thread_time()
    with pytest.raises(Problem):
        made.render({"v": "x" * 10_000})  # two gigabytes
    assert time.thread_time() - began < 0.5


def test_five_thousand_emails_are_made_in_a_second() -> None:
    """Of 30 KB and 20 variables, each with values of its own."""
    names = [f"v{n}" for n in range(20)]
    source = "".join(f"<p>{'x' * 1_480} {{{{{name}}}}}</p>" for name in names)
    assert 29_000 < len(source) < 31_000
    made = content("Order {{v0}}", source, **dict.fromkeys(names))
    began = time.thread_time()
    for n in range(1_000):
        made.render(dict.fromkeys(names, f"value <{n}>"))
    assert 1_000 / (time.thread_time() - began) > 5_000


def test_it_is_measured_as_it_would_be_rendered() -> None:
    made = content("Olá, {{v}}", "<p>{{v}} é {{v}}</p>", text="Não: {{v}}", v=None)
    for value in ("Ana & Zoë", "", "a\nb"):
        rendered, measured = made.render({"v": value}), made.measure({"v": value})
        assert measured.subject == rendered.subject
        assert measured.body_bytes == len(rendered.html.encode()) + len((rendered.text or "").encode())
    assert made.used == {"v"}


@pytest.mark.parametrize("parts", [{"subject": "{{v}}" * 26}, {"html": "é" * (MIB // 2 - 4) + "{{v}}"}])
def test_what_would_be_too_long_is_refused_when_it_is_measured(parts: dict[str, str]) -> None:
    with pytest.raises(Problem) as caught:
        content(**parts, v=None).measure({"v": "x" * 10})
    assert caught.value.code == "TEXT_TOO_LONG"


TEXTS = st.lists(st.sampled_from(["{{a}}", "{{ b }}", "{{c}}", "é", "<b>", "\n"]), min_size=1, max_size=8).map("".join)
SOME = st.dictionaries(st.sampled_from("abcd"), st.one_of(st.text(max_size=9), st.integers(), st.booleans()))


@given(TEXTS, TEXTS, TEXTS, SOME, SOME)
def test_measured_beside_what_all_have_it_is_what_it_is_alone(
    subject: str, html: str, text: str, shared: dict[str, str], own: dict[str, str]
) -> None:
    made = content(subject, html, text, a=None, b="<é>", c="x\ny")
    assert made.measuring(shared)(own) == made.measure({**shared, **own})


def test_many_are_measured_by_their_own_values_alone() -> None:
    examples = {f"n{number}": "<" * 10_000 for number in range(100)}
    measure = content("s", "".join(f"{{{{{name}}}}}" for name in list(examples)[:20]), **examples).measuring({})
    started = time.thread_time()
    sizes = {measure({"n0": str(number)}).body_bytes for number in range(1_000, 10_000)}
    assert (sizes, time.thread_time() - started < 1) == ({19 * 40_000 + 4}, True)


def test_another_subject_stands_in_the_place_of_the_templates() -> None:
    made = content("own", "{{a}}", a="x").with_subject("{{a}} of {{nobody}}").render({"a": "1"})
    assert (made.subject, made.html) == ("1 of ", "1")
