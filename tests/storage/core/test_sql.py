"""Named SQL: what is written under a name is what the name gives, and mistakes show at load."""

import random
import re
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.storage.core.statements import sql

TEXT = """-- Numbers: what the number actor reads.

-- name: by_id
-- One number of one organization.
select * from numbers
where organization_id = $1 and id = $2;

-- name: remove
delete from numbers where id = $1
"""

NAMES = st.sampled_from(["id", "env", "phone_hash", "at2", "n"])
INSIDE = st.text("abc:= \n$1-*", max_size=8)
UNTOUCHED = st.one_of(
    INSIDE.map(lambda text: f"'{text}'"),
    INSIDE.map(lambda text: f"'it''s {text}'"),
    INSIDE.map(lambda text: f"e'it\\'s {text}'"),
    INSIDE.map(lambda text: f'"{text}"'),
    INSIDE.map(lambda text: f"$$ '{text.replace('$', '')}:id $$"),
    INSIDE.map(lambda text: f"$body$ {text} $$ :id $body$"),
    INSIDE.map(lambda text: f"-- :id {text.replace(chr(10), ' ')}\n"),
    INSIDE.map(lambda text: f"/* :id {text.replace('*', '')} */"),
    st.sampled_from(["::text", "::text[]", "x := 1", "x :=id", "[1 : n]", "e", "select * from t where", "a <> b"]),
)
PIECES = st.lists(st.tuples(st.just(""), UNTOUCHED) | st.tuples(NAMES, st.sampled_from(["", "::text", "::id[]"])))


@dataclass
class Contact:
    """A record whose attributes are values of a statement."""

    id: str
    env: str


@given(PIECES)
def test_names_are_numbered_and_whatever_else_looks_like_one_stays(pieces: list[tuple[str, str]]) -> None:
    text = " ".join(f":{name}{rest}" if name else rest for name, rest in pieces)
    names = list(dict.fromkeys(name for name, _ in pieces if name))
    expected = " ".join(f"${names.index(name) + 1}{rest}" if name else rest for name, rest in pieces)
    assert sql.numbered(text) == (expected, tuple(names))


@given(st.lists(NAMES, min_size=1), st.randoms(use_true_random=False))
def test_values_come_in_the_order_of_the_numbers(names: list[str], chance: random.Random) -> None:
    queries = sql.Queries("numbers", {"one": " ".join(f":{name}" for name in names)})
    values = [(name, f"the {name}") for name in set(names)]
    chance.shuffle(values)
    text, *bound = queries.bind("one", **dict(values))
    assert text == queries.one
    assert [bound[int(place) - 1] for place in re.findall(r"\$(\d+)", text)] == [f"the {name}" for name in names]


def test_what_is_not_given_by_name_is_an_attribute_of_the_record() -> None:
    queries = sql.Queries("numbers", {"save": "update t set env = :env, at = :at where id = :id"})
    text = "update t set env = $1, at = $2 where id = $3"
    assert queries.bind("save", Contact("1", "test"), at=7) == (text, "test", 7, "1")
    assert queries.bind("save", Contact("1", "test"), at=7, id="2") == (text, "test", 7, "2")


@pytest.mark.parametrize("values", [{"id": 1}, {"id": 1, "env": 2, "at": 3}, {"id": 1, "at": 3}, {}])
def test_a_value_that_is_missing_or_that_nobody_asks_for_is_an_error(values: dict[str, int]) -> None:
    queries = sql.Queries("numbers", {"one": "select :id, :env"})
    with pytest.raises(TypeError, match="one "):
        queries.bind("one", **values)
    with pytest.raises(TypeError, match="one has no parameters"):
        queries.bind("one", Contact("1", "test"), nothing=1)


def test_a_statement_numbers_its_parameters_or_names_them() -> None:
    with pytest.raises(ValueError, match=r"numbers\.sql: one names some"):
        sql.Queries("numbers", {"one": "select :id, $1"})
    assert sql.Queries("numbers", {"one": "select '$1', :id"}).one == "select '$1', $1"


def test_lists_stand_in_place_of_their_names() -> None:
    assert "pg_column_size(p.tags)" in sql.load("wide_rows", column="tags").width
    assert "pg_column_size(p.{column})" in sql.load("wide_rows").width


def test_each_statement_is_found_under_its_name() -> None:
    statements = sql.parse(TEXT, "numbers.sql")
    assert list(statements) == ["by_id", "remove"]
    assert statements["by_id"].endswith("where organization_id = $1 and id = $2")
    assert statements["remove"] == "delete from numbers where id = $1"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("select 1;\n-- name: one\nselect 1", "before the first"),
        ("-- name: one\nselect 1\n-- name: one\nselect 2", "two statements"),
        ("-- name: one\n-- only a comment\n-- name: two\nselect 2", "no statement stands under"),
        ("-- name: \nselect 1", "cannot name"),
        ("-- name: by-id\nselect 1", "cannot name"),
    ],
)
def test_a_malformed_file_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        sql.parse(text, "numbers.sql")


def test_a_misspelt_name_is_an_attribute_error_that_names_the_file() -> None:
    queries = sql.Queries("numbers", {"by_id": "select 1"})
    assert queries.by_id == "select 1"
    with pytest.raises(AttributeError, match=r"numbers\.sql holds no statement named 'by_idd'"):
        _ = queries.by_idd


def test_every_query_file_of_the_program_loads() -> None:
    assert len(sql.FILES) > 50
    for path in sql.FILES.values():
        assert dir(sql.load(path.stem)), f"{path.name} holds no statement"


def test_no_block_of_rows_is_chosen_in_a_comparison_that_may_choose_it_anew_for_each_row() -> None:
    chosen_anew = re.compile(r"\bin\s*\(\s*select\b[^()]*(\([^()]*\)[^()]*)*\bskip locked\b")
    assert chosen_anew.search(
        "id in (\n select id from t where exists (select from u) limit $1 for update skip locked)"
    )
    for path in sql.FILES.values():
        text = re.sub(r"--.*", "", path.read_text(encoding="utf-8"))
        assert not chosen_anew.search(text), path.name


def test_no_row_whose_lock_is_waited_for_is_changed_by_its_place() -> None:
    """The place is that of the row as it is then, which the waiting statement does not see: the change is lost."""
    waited_for = re.compile(
        r"\bctid\b[^()]*(\([^()]*\)[^()]*)*\bfor (no key )?update\b(?! of \w+ skip locked| skip locked)"
    )
    assert waited_for.search("(select ctid as place from t where a in (select 1) for no key update)")
    for path in sql.FILES.values():
        text = re.sub(r"--.*", "", path.read_text(encoding="utf-8"))
        assert not waited_for.search(text), path.name


def test_a_missing_file_is_an_error() -> None:
    with pytest.raises(KeyError):
        sql.load("no_such_aggregate")
