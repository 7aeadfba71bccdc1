"""Workers that send are killed or stand still, the owner and PostgreSQL die: nothing is lost, doubled, or too fast."""

import os
from pathlib import Path

import pytest
from tests.crash.test_crashes import check
from tests.crash.workers import WorkerCrash, WorkersRound

pytestmark = [pytest.mark.long, pytest.mark.alone]

ROUNDS = int(os.environ.get("WORKER_ROUNDS", "1"))
FIRST_SEED = int(os.environ.get("CRASH_SEED", "10"))


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + ROUNDS))
async def test_whichever_process_dies_or_stands_still_nothing_is_lost_doubled_or_too_fast(
    seed: int, tmp_path: Path
) -> None:
    crashes = WorkersRound(tmp_path, seed=seed)
    order = [*WorkerCrash]
    crashes.random.shuffle(order)

    check(await crashes.run(order))
