"""Hints to lanes cross to another process and are the same there."""

from datetime import UTC, datetime, timedelta

import orjson
import pytest

from recado.actors.dispatch.hint_frames import hint_of, said_of
from recado.actors.dispatch.lane_messages import Changed, Heads, Look, TemplateMoved
from recado.services.dispatch.crossing import packed
from recado.services.dispatch.hints import Arrived, Forced, OwnerMoved, Queued
from recado.services.dispatch.row import Row
from recado.storage.dispatch.dispatch import Head

NOW = datetime(2026, 3, 10, tzinfo=UTC)
ROW = Row(
    "org_1", "test", "chatapp", "msg_1", "num_1", 1, "org_1", NOW, 3_600_000, NOW + timedelta(hours=1), 0, 0, False,
    "+5511987650001", 1, "template", "tpl_1", None, '["a"]',
)  # fmt: skip


def crossed(hint: object) -> object:
    return hint_of(orjson.loads(orjson.dumps(said_of(hint))))


HEADS = Heads((Head(1, "org_1", "msg_1", False), Head(0, "bat_1", "msg_2", True)))


@pytest.mark.parametrize("hint", [HEADS, Forced(), OwnerMoved("bat_1"), Queued()])
def test_a_hint_is_the_same_in_the_other_process(hint: object) -> None:
    assert crossed(hint) == hint


def test_rows_cross_with_all_that_a_lane_needs() -> None:
    there = crossed(Arrived((ROW,)))
    assert isinstance(there, Arrived)
    assert [packed(each) for each in there.rows] == [packed(ROW)]


def test_a_look_of_the_poller_is_one_for_rows() -> None:
    assert crossed(Look()) == Queued()


@pytest.mark.parametrize("change", [Changed(), TemplateMoved("tpl_1")])
def test_changes_of_records_are_no_hints_that_cross(change: object) -> None:
    assert said_of(change) is None
