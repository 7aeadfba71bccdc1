"""What of `recado top` there is room for."""

from io import StringIO

import pytest
from rich.console import Console
from tests.cli.top.states import due, number

from recado.cli.top import screen as module
from recado.cli.top.live_numbers import LiveNumbers, NumberRow
from recado.cli.top.screen import COLUMNS, TopHead, columns_for, lasting, screen, short
from recado.cli.top.top_view import TopView

SUMS = {"numbers": 3, "sentLastSecond": 40, "sentLastMinute": 900, "due": 12_345, "scheduled": 0, "inFlight": 2}
HELD = {"reason": "no_connection", "until": "2026-01-31T12:00:00Z"}
HEAD = TopHead("http://127.0.0.1:8080", SUMS)


def shown(view: TopView, numbers: LiveNumbers, width: int, height: int, head: TopHead = HEAD) -> list[str]:
    output = StringIO()
    Console(file=output, width=width, height=height).print(screen(view, numbers, head, width, height))
    return output.getvalue().splitlines()


@pytest.fixture
def numbers() -> LiveNumbers:
    known = LiveNumbers()
    known.change(
        [
            number(1, queue=due(7), breaker="open", holding=HELD),
            number(2, lastErrors={"131026": 3}, errorRate5m=0.25),
            number(3, rate={"perSecond": 80.0, "tokens": 1, "sentLastSecond": 41, "sentLastMinute": 2_000}),
        ],
        whole=True,
    )
    return known


def test_it_shows_the_numbers_and_of_the_selected_one_everything(numbers: LiveNumbers) -> None:
    lines = shown(TopView(numbers), numbers, 200, 12)
    assert "live" in lines[0]
    assert "12.35k due" in lines[0]
    assert lines[1].startswith("1–3 of 3 numbers by trouble")
    assert [line.split()[:2] for line in lines[3:6]] == [["!", "num_000000000000000000001"], ["?", "num_000000000000000000002"], ["num_000000000000000000003", "+55*******0003"]]  # fmt: skip  # noqa: E501
    assert "waits: no_connection until 2026-01-31T12:00:00Z  circuit open" in lines[-2]
    assert "p pause" in lines[-1]


@pytest.mark.parametrize("height", [4, 5, 9, 12, 40])
@pytest.mark.parametrize("width", [10, 20, 40, 80, 132, 300])
def test_it_fills_any_terminal_and_never_more(numbers: LiveNumbers, width: int, height: int) -> None:
    for keys in ((), ("h",), ("p",), ("/", "x")):
        view = TopView(numbers)
        for key in keys:
            view.press(key)
        lines = shown(view, numbers, width, height)
        assert len(lines) <= height
        assert max(map(len, lines)) <= width


def test_a_narrow_terminal_has_what_is_needed_most() -> None:
    assert [column.title for column in columns_for(40)] == ["PHONE", "STATE", "DUE"]
    assert [column.title for column in columns_for(5)] == ["PHONE"]
    assert columns_for(300) == list(COLUMNS)
    for width in range(20, 300):
        columns = columns_for(width)
        assert 1 + sum(column.width + 1 for column in columns) <= width


def test_rows_out_of_view_are_not_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    rendered = []
    row = module._row

    def counting(each: NumberRow, *how: object, **more: object) -> object:
        rendered.append(each.id)
        return row(each, *how, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "_row", counting)
    known = LiveNumbers()
    known.change([number(serial, queue=due(serial)) for serial in range(10_000)], whole=True)
    view = TopView(known)
    view.press("end")
    shown(view, known, 80, 24)
    assert len(rendered) == 19
    assert rendered[-1] == number(0)["numberId"]


def test_it_says_when_it_is_out_of_date_and_why(numbers: LiveNumbers) -> None:
    head = TopHead("http://127.0.0.1:8080", SUMS, silent=61.5, missing="nothing answers at 127.0.0.1:8080")
    assert shown(TopView(numbers), numbers, 100, 12, head)[0].startswith(
        " STALE 62 s  nothing answers at 127.0.0.1:8080; trying again"
    )


def test_it_says_of_how_many_the_stream_does_not_tell(numbers: LiveNumbers) -> None:
    numbers.take_list([number(4)])
    assert "4 numbers by trouble  live: 3 of 5,000" in shown(
        TopView(numbers), numbers, 100, 12, TopHead("x", {**SUMS, "numbers": 5_000})
    )[1]  # fmt: skip


def test_nothing_that_is_told_or_typed_is_obeyed_by_the_terminal(numbers: LiveNumbers) -> None:
    numbers.change([number(5, displayPhone="\x1b[31mred", lastErrors={"\x07bell": 1}, queue=due(99))])
    view = TopView(numbers, words="\x1b[2J")
    text = "".join(shown(view, numbers, 200, 12)) + "".join(shown(TopView(numbers), numbers, 200, 12))
    assert "\x1b" not in text
    assert "\x07" not in text


@pytest.mark.parametrize(
    ("count", "text"),
    [(None, ""), (0, "0"), (9_999, "9999"), (12_345, "12.35k"), (1_234_567, "1.235M"), (0.5, "0.5"), (80.0, "80")],
)
def test_counts_are_short(count: float | None, text: str) -> None:
    assert short(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, ""), (0, "0s"), (119, "119s"), (120, "2m"), (7_200, "2h"), (200_000, "2d")]
)
def test_times_are_short(seconds: int | None, text: str) -> None:
    assert lasting(seconds) == text
