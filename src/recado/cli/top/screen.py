"""The screen: what of a `TopView` there is room for. Rows that are out of view cost nothing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.console import Group
from rich.text import Text

from recado.cli.top.live_numbers import ORDERS, LiveNumbers, NumberOrder, NumberRow
from recado.cli.top.top_view import HELP, TopMode, TopView
from recado.domain.core.counting import counted
from recado.domain.ops.trouble import Trouble

_DAY: Final = 86_400  # seconds
_ABOVE: Final = 3  # lines above the numbers
_ROOMY: Final = 10  # lines from which on the selected number has one more

_MARKS: Final = {Trouble.NONE: " ", Trouble.DOUBTED: "?", Trouble.HELD: "-", Trouble.DOWN: "!"}
_STYLES: Final = {Trouble.NONE: "", Trouble.DOUBTED: "magenta", Trouble.HELD: "yellow", Trouble.DOWN: "bold red"}


@dataclass(frozen=True, slots=True)
class TopColumn:
    """One column. `rank`: which stay where there is room for some only, the lowest first; `width`: characters."""

    title: str
    width: int
    rank: int
    text: Callable[[NumberRow], str]
    right: bool = True

    def cell(self, text: str) -> str:
        """The text in the width of the column."""
        if len(text) > self.width:
            text = f"{text[: self.width - 1]}…"
        return text.rjust(self.width) if self.right else text.ljust(self.width)


def _used(of: Mapping[str, Any]) -> str:
    """`100/250`; nothing where there is no limit."""
    return "" if of["limit"] is None else f"{short(of['used'])}/{short(of['limit'])}"


def _state(row: NumberRow) -> str:
    if row.held_by is not None:
        return row.held_by
    if row.state["actor"]["state"] == "backing_off":
        return "actor fails"
    return str(row.state["status"])


COLUMNS: Final = (
    TopColumn("NUMBER", 25, 9, lambda row: row.id, right=False),
    TopColumn("PHONE", 15, 0, lambda row: row.state["displayPhone"], right=False),
    TopColumn("STATE", 15, 1, _state, right=False),
    TopColumn("CIRCUIT", 9, 11, lambda row: row.state["breaker"], right=False),
    TopColumn("SENT/S", 6, 3, lambda row: short(row.state["rate"]["sentLastSecond"])),
    TopColumn("PACE", 5, 7, lambda row: short(row.state["rate"]["perSecond"])),
    TopColumn("MINUTE", 6, 8, lambda row: short(row.state["rate"]["sentLastMinute"])),
    TopColumn("DUE", 6, 2, lambda row: short(row.due)),
    TopColumn("AGE", 5, 4, lambda row: lasting(row.state["oldestAgeSeconds"]) if row.due else ""),
    TopColumn("DRAIN", 5, 6, lambda row: lasting(row.state.get("drainSeconds"))),
    TopColumn("ERR%", 5, 5, lambda row: f"{100 * row.state['errorRate5m']:.1f}" if row.state["errorRate5m"] else ""),
    TopColumn("CALLS", 5, 10, lambda row: short(row.state["inFlight"])),
    TopColumn("UNSURE", 6, 12, lambda row: short(row.state["uncertain"])),
    TopColumn("LATER", 6, 13, lambda row: short(row.state["queue"]["scheduled"])),
    TopColumn("DAY", 11, 14, lambda row: _used(row.state["day"])),
    TopColumn("TIER", 11, 15, lambda row: _used(row.state["tier"])),
    TopColumn("QUALITY", 7, 16, lambda row: row.state["qualityRating"], right=False),
    TopColumn("ENV", 4, 17, lambda row: row.state["env"], right=False),
    TopColumn("ORGANIZATION", 25, 18, lambda row: row.state["organizationId"], right=False),
)


def columns_for(width: int) -> Sequence[TopColumn]:
    """Those for which there is room beside the mark, the most needed first; one at least."""
    room = width - 1  # the mark and a blank, and no blank behind the last one
    chosen: set[str] = set()
    for column in sorted(COLUMNS, key=lambda each: each.rank):
        if column.width + 1 > room and chosen:
            break
        chosen.add(column.title)
        room -= column.width + 1
    return [column for column in COLUMNS if column.title in chosen]


@dataclass(frozen=True, slots=True)
class TopHead:
    """What stands above the numbers. `sums`: of all of them (`throughput`), empty while they are not known.

    `silent`: for how many seconds what is shown may be out of date, None: it is live; `missing`: why.
    """

    address: str
    sums: Mapping[str, int]
    silent: float | None = None
    missing: str | None = None


def screen(view: TopView, numbers: LiveNumbers, head: TopHead, width: int, height: int) -> Group:
    """The lines of a screen of that size."""
    lines = [_title(head)]
    if view.mode is TopMode.HELP:
        lines += [Text(f"{keys:<9} {what}") for keys, what in HELP]
        lines.append(Text("any key: back", style="dim"))
    else:
        below = [] if height < _ROOMY else [_detail(view)]
        below.append(_last(view))
        page = max(1, height - _ABOVE - len(below))
        rows, selected, columns = view.in_view(page), view.selected, columns_for(width)
        lines += [_asked(view, numbers, head), _titles(columns, width)]
        lines += [_row(row, columns, width, selected=row is selected, live=numbers.is_live(row.id)) for row in rows]
        lines += [Text()] * (page - len(rows))
        lines += below
    for line in lines:
        line.no_wrap, line.overflow = True, "crop"
        line.truncate(width)
    return Group(*lines[:height])


def _title(head: TopHead) -> Text:
    sums, told = head.sums, Text()
    if head.silent is None:
        told.append(" live ", style="reverse green")
    else:
        told.append(f" STALE {head.silent:.0f} s ", style="reverse bold red")
    if head.silent is not None and head.missing is not None:
        told.append(f" {head.missing}; trying again", style="red")
    elif sums:
        told.append(
            f" {short(sums['sentLastSecond'])}/s  {short(sums['sentLastMinute'])}/min  {short(sums['due'])} due  "
            f"{short(sums['scheduled'])} later  {short(sums['inFlight'])} calls"
        )
    told.append(f"  {plain(head.address)}", style="dim")
    return told


def _asked(view: TopView, numbers: LiveNumbers, head: TopHead) -> Text:
    known, every = len(view.rows), max(len(numbers), head.sums.get("numbers", 0))
    span = f"{view.first + 1:,}–{min(known, view.first + view.page):,} of " if known else ""
    told = Text(f"{span}{counted(known, 'number')} by {view.order.name}{', reversed' if view.reverse else ''}")
    if numbers.live < every and numbers.live:
        told.append(f"  live: {numbers.live:,} of {every:,}", style="yellow")
    if view.mode is TopMode.FILTERING or view.words:
        told.append("  filter: ", style="bold")
        told.append(plain(view.words))
    if view.mode is TopMode.FILTERING:
        told.append("▏", style="bold")
    return told


def _titles(columns: Sequence[TopColumn], width: int) -> Text:
    text = "  " + " ".join(column.cell(column.title) for column in columns)
    return Text(text.ljust(width), style="bold underline")


def _row(row: NumberRow, columns: Sequence[TopColumn], width: int, *, selected: bool, live: bool) -> Text:
    text = f"{_MARKS[row.trouble]} " + " ".join(column.cell(plain(column.text(row))) for column in columns)
    style = _STYLES[row.trouble] if live else f"{_STYLES[row.trouble]} dim"
    return Text(text.ljust(width), style=f"{style} reverse" if selected else style)


def _detail(view: TopView) -> Text:
    """Of the selected number what its row has no room for."""
    row = view.selected
    if row is None:
        return Text()
    state, told = row.state, [row.id]
    holding = state.get("holding")
    if holding is not None:
        until = f" until {holding['until']}" if "until" in holding else ""
        told.append(f"waits: {holding['reason']}{until}")
    if state["breaker"] != "closed":
        told.append(f"circuit {state['breaker']}")
    errors = sorted(state["lastErrors"].items(), key=lambda each: -each[1])
    if errors:
        told.append("failed: " + ", ".join(f"{code} {short(count)}" for code, count in errors))
    failure = state["actor"].get("lastFailure")
    if failure is not None:
        told.append(f"actor: {failure['type']} in {failure['where']}")
    return Text(plain("  ".join(told)), style="bold")


def _last(view: TopView) -> Text:
    if view.question is not None:
        verb = view.question.verb
        what = "everything stays queued" if verb == "pause" else "what is queued leaves"
        text = f" y: {verb} {view.question.number_id} ({what}), any other key: no "
        return Text(text, style="reverse bold yellow")
    if view.message:
        return Text(plain(view.message), style="bold")
    if view.mode is TopMode.FILTERING:
        return Text("type words; enter: keep, escape: as before", style="dim")
    return Text("q leave  ↑↓ select  s sort  r reverse  / filter  p pause  u resume  h help", style="dim")


def short(count: float | None) -> str:
    """A count in six characters: `999`, `12.35k`, `4.567M`; nothing for none."""
    if count is None:
        return ""
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (10_000, "k")):
        if abs(count) >= size:
            return f"{count / (1_000 if unit == 'k' else size):.4g}{unit}"
    return f"{count:.4g}" if isinstance(count, float) else str(count)


def lasting(seconds: float | None) -> str:
    """`59s`, `3m`, `5h`, `12d`; nothing for none."""
    if seconds is None:
        return ""
    for size, unit in ((_DAY, "d"), (3_600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f}{unit}"
    return f"{seconds:.0f}s"


def plain(text: str) -> str:
    """The text without what a terminal would obey."""
    return text if text.isprintable() else "".join(each if each.isprintable() else "?" for each in text)


def order_named(name: str) -> NumberOrder | None:
    """The order of that name."""
    return next((order for order in ORDERS if order.name == name), None)
