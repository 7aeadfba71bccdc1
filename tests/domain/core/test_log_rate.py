"""Entries of the log that others could cause without end."""

from recado.domain.core.log_rate import QUIET, LogRate


def test_a_kind_has_one_entry_in_so_many_seconds_which_counts_those_left_out() -> None:
    rate = LogRate()
    assert [rate.admits("dropped", now) for now in (5.0, 5.0, 6.0, 4.9 + QUIET)] == [0, None, None, None]
    assert rate.admits("dropped", 5.0 + QUIET) == 3
    assert rate.admits("dropped", 5.0 + 2 * QUIET) == 0


def test_each_kind_has_its_own_entries() -> None:
    rate = LogRate()
    assert [rate.admits(kind, 1.0) for kind in ("dropped", "of no use", "dropped")] == [0, 0, None]
