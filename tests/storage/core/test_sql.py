"""Named SQL: what is written under a name is what the name gives, and mistakes show at load."""

import re

import pytest

from recado.storage.core import sql

TEXT = """-- Numbers: what the number actor reads.

-- name: by_id
-- One number of one organization.
select * from numbers
where organization_id = $1 and id = $2;

-- name: remove
delete from numbers where id = $1
"""


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


def test_a_missing_file_is_an_error() -> None:
    with pytest.raises(KeyError):
        sql.load("no_such_aggregate")
