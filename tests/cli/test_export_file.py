"""The file of an export: how it grows, and how one that was interrupted goes on (C18.5)."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from recado.cli.errors import CommandError
from recado.cli.export_file import ExportFile, ExportFormat, Exporting
from recado.domain.channels.exported import COLUMNS

ROWS = [{"id": f"msg_{n}", "to": "+55*******4321", "metadata": {"order": n}, "segments": n} for n in range(6)]
END = "2026-01-31T00:00:00.000Z"


def asked(**changes: Any) -> Exporting:
    fields: dict[str, Any] = {
        "caller": "me", "channel": "sms", "file_format": ExportFormat.NDJSON, "start": "2026-01-01T00:00:00.000Z",
        "end": END, "before": END,
    }  # fmt: skip
    return Exporting(**{**fields, **changes})


def lines(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def test_a_file_has_its_name_when_all_of_it_is_there_and_belongs_to_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "rows.ndjson"
    with ExportFile(file, asked()) as export:
        export.add(ROWS[:2], before=END, cursor="c")
        assert not file.exists()
        modes = {each.name: oct(each.stat().st_mode & 0o777) for each in tmp_path.iterdir()}
        assert modes == {"rows.ndjson.part": "0o600", "rows.ndjson.resume": "0o600"}
        export.add(ROWS[2:], before=None, cursor=None)
        export.finish()
    assert lines(file) == ROWS
    assert [each.name for each in tmp_path.iterdir()] == ["rows.ndjson"]
    assert (export.progress.rows, export.progress.size) == (6, file.stat().st_size)


def test_a_table_has_a_header_once_and_each_value_in_its_column(tmp_path: Path) -> None:
    file, table = tmp_path / "rows.csv", asked(file_format=ExportFormat.CSV)
    odd = {"id": "msg_7", "subject": 'Two lines,\nand a "quote"', "campaignId": "=1+1", "metadata": {"a": "ü"}}
    with ExportFile(file, table) as export:
        export.add(ROWS[:1], before=END, cursor="c")
    with ExportFile(file, table) as export:
        export.add([odd], before=None, cursor=None)
        export.finish()
    header, first, second = csv.reader(io.StringIO(file.read_bytes().decode(), newline=""))
    assert tuple(header) == COLUMNS
    told = [{name: value for name, value in zip(header, row, strict=True) if value} for row in (first, second)]
    assert told == [
        {"id": "msg_0", "to": "+55*******4321", "metadata": '{"order":0}', "segments": "0"},
        {**odd, "metadata": '{"a":"ü"}'},
    ]


def test_an_empty_export_is_a_file_too(tmp_path: Path) -> None:
    for file_format in ExportFormat:
        file = tmp_path / f"none.{file_format}"
        with ExportFile(file, asked(file_format=file_format)) as export:
            export.add([], before=None, cursor=None)
            export.finish()
        assert file.read_text("utf-8").strip() == (",".join(COLUMNS) if file_format is ExportFormat.CSV else "")


@pytest.mark.parametrize("behind", [b"", b'{"id": "msg_2", "to": "+55', b'{"id": "msg_2"}\n' * 100])
def test_what_was_interrupted_goes_on_behind_the_last_page_that_was_noted(tmp_path: Path, behind: bytes) -> None:
    file = tmp_path / "rows.ndjson"
    with ExportFile(file, asked()) as export:
        export.add(ROWS[:2], before="2026-01-20T00:00:00.000Z", cursor="third")
        with (tmp_path / "rows.ndjson.part").open("ab") as part:
            part.write(behind)  # of a page that was not noted any more
    with ExportFile(file, asked(before="2026-02-28T00:00:00.000Z")) as export:
        going_on = (export.progress.before, export.progress.cursor, export.progress.rows)
        assert going_on == ("2026-01-20T00:00:00.000Z", "third", 2)
        export.add(ROWS[2:], before=None, cursor=None)
        export.finish()
    assert lines(file) == ROWS


@pytest.mark.parametrize(
    "changes",
    [{"caller": "another"}, {"channel": "chatapp"}, {"start": END}, {"end": None}, {"file_format": ExportFormat.CSV}],
)
def test_what_is_left_of_another_export_is_kept_unless_it_is_thrown_away(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    file = tmp_path / "rows.ndjson"
    with ExportFile(file, asked()) as export:
        export.add(ROWS, before=END, cursor="c")
    before = (tmp_path / "rows.ndjson.part").read_bytes()
    with pytest.raises(CommandError, match="holds another export"), ExportFile(file, asked(**changes)):
        pass
    assert (tmp_path / "rows.ndjson.part").read_bytes() == before
    with ExportFile(file, asked(**changes), anew=True) as export:
        assert (export.progress.rows, export.progress.cursor) == (0, None)
    assert (tmp_path / "rows.ndjson.part").read_bytes() == b""


def test_what_holds_no_row_yet_is_in_nobodys_way(tmp_path: Path) -> None:
    file = tmp_path / "rows.ndjson"
    with ExportFile(file, asked()) as export:
        export.add([], before=END, cursor=None)
    with ExportFile(file, asked(channel="chatapp")) as export:
        export.add(ROWS, before=None, cursor=None)
        export.finish()
    assert lines(file) == ROWS


@pytest.mark.parametrize("note", [b"", b"[]", b"{}", b'{"version": 2}', b'{"version": 1, "rows": 1}', b"\xff"])
def test_a_note_that_cannot_be_read_is_told(tmp_path: Path, note: bytes) -> None:
    file = tmp_path / "rows.ndjson"
    (tmp_path / "rows.ndjson.resume").write_bytes(note)
    with pytest.raises(CommandError, match="cannot be read: begin again with --anew"), ExportFile(file, asked()):
        pass


def test_a_part_that_lost_rows_is_told(tmp_path: Path) -> None:
    file = tmp_path / "rows.ndjson"
    with ExportFile(file, asked()) as export:
        export.add(ROWS, before=END, cursor="c")
    (tmp_path / "rows.ndjson.part").write_bytes(b"")
    with pytest.raises(CommandError, match="is shorter than"), ExportFile(file, asked()):
        pass


def test_a_file_that_is_there_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "rows.ndjson"
    file.write_text("mine")
    with pytest.raises(CommandError, match="is there already"), ExportFile(file, asked(), anew=True):
        pass
    assert file.read_text() == "mine"
    with pytest.raises(CommandError, match="there is no folder"), ExportFile(tmp_path / "none" / "rows.csv", asked()):
        pass


def test_two_commands_do_not_write_one_file(tmp_path: Path) -> None:
    file = tmp_path / "rows.ndjson"
    with ExportFile(file, asked()) as export:
        export.add(ROWS, before=END, cursor="c")
        with pytest.raises(CommandError, match="another command writes"), ExportFile(file, asked(), anew=True):
            pass
        export.add([], before=None, cursor=None)
        export.finish()
    assert lines(file) == ROWS
