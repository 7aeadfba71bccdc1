"""Which tests must run: in continuous integration (`CI`), a test that is skipped fails, and says what was missing.

By hand, who may not install a browser or a database goes without the tests that need them. A test that does not apply
to a machine at all is no skip: it is left out (`only_where`).
"""

import os
from collections.abc import Callable, Generator
from typing import Any, TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., Any])
Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def everything_is_required() -> bool:
    """Whether this run is continuous integration's."""
    return os.environ.get("CI", "") not in {"", "0", "false"}


def only_where(applies: bool, why: str) -> Callable[[Test], Test]:
    """Marks a test that elsewhere has nothing to test."""

    def marked(test: Test) -> Test:
        return test if applies else pytest.mark.elsewhere(why)(test)

    return marked


as_root = only_where(os.geteuid() == 0, "only root keeps databases outside their data folders")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if item.get_closest_marker("elsewhere")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _required((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _required((yield))


def _required(report: Report) -> Report:
    if report.skipped and everything_is_required():
        report.outcome = "failed"
        report.longrepr = f"Every test is required here. {_reason(report.longrepr)}"
    return report


def _reason(longrepr: Any) -> str:
    return str(longrepr[2]) if isinstance(longrepr, tuple) else str(longrepr)
