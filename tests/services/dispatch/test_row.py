"""A row and the columns that it is read from."""

from dataclasses import fields

from recado.services.dispatch.row import Row, row_from

RENAMED = {"klass": "class"}
NOT_READ = {"claimed_at", "contact_hash"}  # of a row that is ready nothing is known of a claim, nor of a direct send


def test_each_field_is_read_from_the_column_of_its_name() -> None:
    columns = {field.name: RENAMED.get(field.name, field.name) for field in fields(Row) if field.name not in NOT_READ}
    row = row_from({column: column for column in columns.values()})
    assert {name: getattr(row, name) for name in columns} == columns
    assert row.claimed_at is None
