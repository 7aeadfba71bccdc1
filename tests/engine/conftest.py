"""The surroundings of every engine test: virtual time, seeded chance, and signals to wait for."""

import random
from datetime import UTC, datetime

import pytest

from recado.engine.clock import VirtualClock
from recado.engine.runtime import Runtime
from recado.engine.signals import Signals

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(START)


@pytest.fixture
def signals() -> Signals:
    return Signals()


@pytest.fixture
def runtime(clock: VirtualClock, signals: Signals) -> Runtime:
    return Runtime(clock, random.Random(7), signals)
