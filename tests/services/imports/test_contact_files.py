"""Files of contacts cut into blocks of rows, however they arrive piece by piece (C12.7)."""

import io
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recado.services.imports import contact_files
from recado.services.imports.contact_files import DocumentFile, LineFile, RowBlock, TableFile, Unreadable, lines_of

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
ROWS = st.lists(VALUES, max_size=6)


class Slow(io.BytesIO):
    """A file that gives few bytes at a time, whatever it is asked for."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(5)


def parsed(blocks: list[RowBlock]) -> list[Any]:
    return [orjson.loads(line) for block in blocks if block.count for line in lines_of(block.rows)]


@given(ROWS, VALUES, st.sampled_from(["", " ", "\n\t "]), st.booleans())
@example([0.0], "\U000f485b", "", False)  # the number is cut in two
@example([1e-7, 12], "ab", "", True)
def test_a_document_gives_its_rows_wherever_its_pieces_end(rows: Any, other: Any, space: str, marked: bool) -> None:
    listed = f"[{space}" + f"{space},{space}".join(orjson.dumps(row).decode() for row in rows) + f"{space}]"
    members = [
        f'"other":{space}{orjson.dumps(other).decode()}',
        f'"contacts"{space}:{listed}',
        '"options":{"tags":["a"]}',
    ]
    text = f"{space}{{" + f"{space},{space}".join(members) + f"{space}}}{space}"
    file = DocumentFile(Slow(("\ufeff" if marked else "").encode() + text.encode()))
    blocks = list(file)
    assert parsed(blocks) == rows
    assert sum(block.count for block in blocks) == len(rows)
    assert file.members == {"other": None, "options": {"tags": ["a"]}}


@given(ROWS, st.integers(0, 400))
def test_a_document_that_is_cut_off_is_unreadable(rows: Any, cut: int) -> None:
    whole = orjson.dumps({"contacts": rows})
    part = whole[: cut % len(whole)]
    with pytest.raises(Unreadable):
        list(DocumentFile(Slow(part)))


def test_what_is_read_of_a_document_does_not_stay_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contact_files, "_PIECE", 4_096)
    rows = [{"phone": f"+{n}"} for n in range(5_000)]
    file = DocumentFile(io.BytesIO(orjson.dumps({"contacts": rows})))
    longest = 0
    found = []
    for block in file:
        found += parsed([block])
        longest = max(longest, len(file._text))
    assert found == rows
    assert longest < 3 * 4_096


def test_a_document_of_many_short_rows_pauses() -> None:
    blocks = [*DocumentFile(io.BytesIO(orjson.dumps({"contacts": list(range(1_500))})))]
    assert [block.count for block in blocks] == [0] * 4 + [1_000] + [0] * 2 + [500]


@given(ROWS, st.sampled_from(["\n", "\r\n", "\n\n \n"]), st.booleans())
def test_lines_give_their_rows(rows: Any, end: str, last_one_ends: bool) -> None:
    text = end.join(orjson.dumps(row).decode() for row in rows) + (end if last_one_ends and rows else "")
    assert parsed(list(LineFile(io.BytesIO(text.encode())))) == rows


def test_a_line_that_is_too_long_leaves_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contact_files, "LONGEST_ROW", 10)
    *pauses, block = LineFile(io.BytesIO(b"[1]\n" + b"x" * 35 + b"\n[2]\n" + b"y" * 11))
    assert [each.count for each in pauses] == [0, 0]
    assert (block.count, lines_of(block.rows)) == (4, [b"[1]", b"", b"[2]", b""])


CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\0"), max_size=8)


@given(st.lists(st.tuples(CELLS, CELLS), max_size=5), st.sampled_from([",", ";"]), st.booleans())
def test_a_table_gives_its_cells_as_they_were_quoted(rows: Any, delimiter: str, marked: bool) -> None:
    def line(cells: Any) -> str:
        return delimiter.join('"' + cell.replace('"', '""') + '"' for cell in cells)

    text = "\r\n".join([f"phone{delimiter}name", *map(line, rows)])
    file = TableFile(io.BytesIO(("\ufeff" if marked else "").encode() + text.encode()))
    assert file.columns == ("phone", "name")
    assert [tuple(row) for block in file for row in orjson.loads(block.rows)] == rows


def test_a_block_holds_a_thousand_rows_or_four_mebibytes() -> None:
    short = list(LineFile(io.BytesIO(b"{}\n" * 2_500)))
    assert [block.count for block in short] == [1_000, 1_000, 500]
    long = list(LineFile(io.BytesIO((b'"' + b"x" * 1_000_000 + b'"\n') * 6)))
    assert [block.count for block in long] == [5, 1]
    cells = list(TableFile(io.BytesIO(b"phone\n" + (b"x" * 100_000 + b"\n") * 50)))
    assert [block.count for block in cells if block.count] == [42, 8]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"," * 49_000_000, contact_files.TOO_LONG),
        (b"x" * 3_000_000, contact_files.TOO_LONG),
        (b"," * 900_000, contact_files.COLUMNS),
        (b'"a"' + b"," * 900_000, contact_files.COLUMNS),
    ],
)
def test_a_row_of_a_table_that_is_far_too_long_is_one_bad_row(line: bytes, said: str) -> None:
    file = TableFile(io.BytesIO(b"phone,name\n1,a\n" + line + b"\n2,b\n"))
    rows = [row for block in file if block.count for row in orjson.loads(block.rows)]
    assert rows == [["1", "a"], said, ["2", "b"]]


def test_a_line_of_too_many_cells_is_never_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    real = contact_files.csv.reader

    class Watched:
        def __init__(self, lines: Any, **options: Any) -> None:
            self._rows = real(lines, **options)

        def __next__(self) -> list[str]:
            row = next(self._rows)
            made.append(len(row))
            return row

    monkeypatch.setattr(contact_files.csv, "reader", Watched)
    list(TableFile(io.BytesIO(b"phone\n" + b"," * 5_000 + b"\n" + b"," * 2_000_000 + b"\n1\n")))
    assert made == [1, 1]


def test_a_row_that_never_ends_makes_the_table_unreadable() -> None:
    cells = b'"x\n",' * 1_000_000
    with pytest.raises(Unreadable, match="more than"):
        list(TableFile(io.BytesIO(b"phone\n" + cells + b"\n")))


def test_others_have_their_turn_while_an_endless_row_is_left_behind() -> None:
    *pauses, block = TableFile(io.BytesIO(b"phone\n" + b"," * 20_000_000 + b"\n1\n"))
    assert len(pauses) >= 18
    assert block.count == 2


def test_others_have_their_turn_between_the_long_rows_of_a_table() -> None:
    file = TableFile(io.BytesIO(b"phone\n" + (b'"a"' + b"," * 500_000 + b"\n") * 8))
    assert [block.count for block in file] == [0] * 8 + [8]


@pytest.mark.parametrize(
    ("kind", "content", "pauses"),
    [
        (LineFile, b"\n" * 35_000 + b"{}\n", 3),
        (TableFile, b"phone\n" + b"\n" * 35_000 + b"1\n", 3),
        (DocumentFile, b"{" + b'"a":1,' * 3_500 + b'"contacts":[{}]}', 3),
        (DocumentFile, b'{"a":[' + b"[]," * 50_000 + b'0],"contacts":[{}]}', 1),
        (DocumentFile, b'{"contacts":[{},[' + b"[]," * 50_000 + b"0]]}", 1),
    ],
)
def test_others_have_their_turn_where_a_file_holds_much_and_few_rows(kind: Any, content: bytes, pauses: int) -> None:
    *empty, rows = kind(io.BytesIO(content))
    assert [block.count for block in empty] == [0] * pauses
    assert rows.count > 0


def test_a_document_is_not_read_to_its_end_for_one_value() -> None:
    file = io.BytesIO(b'{"a":[' + b"[]," * 1_000_000 + b'0],"contacts":[]}')
    with pytest.raises(Unreadable, match="longer than 1 MiB"):
        list(DocumentFile(file))
    assert file.read(1)


def test_the_space_of_a_document_does_not_stay_in_memory() -> None:
    file = DocumentFile(io.BytesIO(b"{" + b" " * 3_000_000 + b'"contacts":[]}'))
    assert list(file) == []
    assert len(file._text) < 300_000


@pytest.mark.parametrize("content", [b"phone\n1\n", b""])
def test_the_file_stays_open_to_its_owner(content: bytes) -> None:
    owner = io.BytesIO(content)
    if content:
        table = TableFile(owner)
        list(table)
        table.close()
    else:
        LineFile(owner).close()
        DocumentFile(owner).close()
    assert not owner.closed
