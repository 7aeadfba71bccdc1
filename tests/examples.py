"""How many examples a property is tried with: all of them in the long suite, a tenth in the usual one.

`tools/run-tests` names the suite. Whoever runs pytest by hand has the usual one.
"""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

SUITE = "TEST_SUITE"  # long: every example
WHOLE = 100  # examples of a property that says no number
FEWEST = 5


def examples(whole: int) -> int:
    """How many to try where `whole` is what the long suite tries."""
    return whole if os.environ.get(SUITE) == "long" else max(FEWEST, whole // 10)


def seeds(count: int) -> list[Any]:
    """Of a property whose cases a seed draws, as parameters: all but the first are long."""
    return [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, count))]


def use_profile() -> None:
    """Of a property that says no number, and how: how long an example takes says nothing while other tests run too."""
    settings.register_profile(
        "recado", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=examples(WHOLE)
    )
    settings.load_profile("recado")
