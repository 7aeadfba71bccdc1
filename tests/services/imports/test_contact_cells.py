"""Plain rows of a table are read at once, and say what a closer look would have said (C12.7)."""

import random
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.contacts.contact_import import Country, ImportOptions, MatchBy
from recado.domain.core.ids import CONTACT_IMPORT, ORGANIZATION, IdSource
from recado.engine.clock import SystemClock
from recado.services.imports.contact_rows import PlainCells, RowReader
from recado.storage.contacts.contact_imports import ContactImport

IDS = IdSource(SystemClock(), random.Random(3))
TODAY = date(2026, 1, 1)
COLUMNS = (
    "phone", "name", "email", "externalId", "tags", "attributes.city", "attributes.n", "cpf", "optIn.status",
    "optIn.source", "externalIds.integration_a", "Other",
)  # fmt: skip
SPACES = st.sampled_from(["", " ", "\t", "\u00a0"])
PHONES = st.sampled_from(["+5511987654321", "+55 (11) 8765-4321", "11987654321", "1132654321", "+1", "none", ""])
LONG = st.sampled_from([63, 64, 65, 199, 200, 201, 254, 255, 256, 999, 1_000, 1_001]).map(lambda size: "x" * size)
TEXTS = st.text(max_size=8) | LONG | st.just("")
CELLS = {
    "phone": PHONES,
    "email": st.sampled_from(["Ana@example.com", "ana", "a@b@c", "@", "a b@c", "a@b"]) | TEXTS,
    "tags": st.lists(st.sampled_from(["vip", "VIP", " sp ", "", "ß", "SS"]) | TEXTS, max_size=4).map("|".join)
    | st.sampled_from([100, 101]).map(lambda count: "|".join(map(str, range(count)))),
    "cpf": st.sampled_from(["", "", "", "52998224725"]),
    "optIn.status": st.sampled_from(["", "", "", "granted"]),
    "optIn.source": st.sampled_from(["", "", "site"]),
    "externalIds.integration_a": st.sampled_from(["", "", "x1"]),
}
OPTIONS = st.builds(
    ImportOptions,
    match_by=st.sampled_from(MatchBy),
    tags=st.lists(st.sampled_from(["vip", "Vip", "novo"])).map(tuple),
    default_country=st.none() | st.just(Country.BR),
)


def reader_of(columns: tuple[str, ...], options: ImportOptions) -> RowReader:
    return RowReader(
        ContactImport(
            organization_id=ORGANIZATION + "1" * 21, env="test", id=IDS.new(CONTACT_IMPORT), status="processing",
            format="csv", options=options.stored(), columns=columns, total=1, actor_type="key", actor_id="key_1",
        ),
        TODAY,
    )  # fmt: skip


@st.composite
def tables(draw: Any) -> tuple[tuple[str, ...], list[list[str]]]:
    columns = tuple(draw(st.permutations(COLUMNS))[: draw(st.integers(1, len(COLUMNS)))])
    rows = st.tuples(*(st.tuples(SPACES, CELLS.get(name, TEXTS), SPACES).map("".join) for name in columns))
    return columns, [list(row) for row in draw(st.lists(rows, min_size=1, max_size=3))]


@given(tables(), OPTIONS)
def test_a_plain_row_says_what_a_closer_look_says(
    table: tuple[tuple[str, ...], list[list[str]]], options: ImportOptions
) -> None:
    columns, rows = table
    reader = reader_of(columns, options)
    plain = PlainCells(reader._put, options)
    for cells in rows:
        values = None if "\0" in "".join(cells) else plain.values(cells)
        closely = reader._of_cells(cells, 1)
        assert values is None or (closely.errors, closely.values) == ([], values)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["+5511987654321", " Ana ", "Ana@example.com", "7", "a| b|A", "Rio"], True),
        (["11987654321", "", "", "", "", ""], True),
        (["+5511987654321", "x" * 201, "", "", "", ""], False),
        (["", "Ana", "", "", "", ""], False),
        (["+5511987654321", "Ana", "nobody", "", "", ""], False),
        (["+5511987654321", "Ana", "", "", "x" * 65, ""], False),
        (["+5511987654321", "Ana", "", "", "", "x" * 1_001], False),
    ],
)
def test_only_rows_with_nothing_wrong_are_plain(cells: list[str], expected: bool) -> None:
    options = ImportOptions(default_country=Country.BR)
    reader = reader_of(("phone", "name", "email", "externalId", "tags", "attributes.city"), options)
    assert (PlainCells(reader._put, options).values(cells) is not None) is expected


def test_more_attributes_than_a_contact_holds_take_a_closer_look() -> None:
    columns = ("phone", *(f"attributes.a{number}" for number in range(101)))
    plain = PlainCells(reader_of(columns, ImportOptions())._put, ImportOptions())
    assert plain.values(["+5511987654321", *["x"] * 100, ""]) is not None
    assert plain.values(["+5511987654321", *["x"] * 101]) is None


def test_tags_are_remembered_within_limits() -> None:
    plain = PlainCells(reader_of(("phone", "tags"), ImportOptions())._put, ImportOptions(tags=("all",)))
    for number in [*range(1_500), *range(1_500)]:
        assert plain.values(["+5511987654321", f"t{number}|T{number}"]) == {
            "phone": "+5511987654321",
            "added_tags": (f"t{number}", "all"),
        }
    assert len(plain._known_tags) <= 1_000
