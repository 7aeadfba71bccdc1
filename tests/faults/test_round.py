"""Faults under load, one after the other: when all is well again nothing is lost, doubled, untold or miscounted (C32).

`FAULT_ROUNDS`: how many rounds are made; `FAULT_SEED`: the first one's seed. The round of the seed 1 is a short one.
"""

import os
from pathlib import Path

import pytest
from tests.crash.round import report
from tests.faults.proxy import before_postgres
from tests.faults.round import FaultRound, Trouble, drawn
from tests.privacy import found_in_logs

from recado.storage.core.connections.postgres import Database

ROUNDS = int(os.environ.get("FAULT_ROUNDS", "1"))
FIRST_SEED = int(os.environ.get("FAULT_SEED", "1"))
SHORT = 1  # a seed


def test_a_seed_draws_the_same_faults_again_and_every_trouble_is_among_them() -> None:
    assert drawn(7, short=False) == drawn(7, short=False)
    assert drawn(7, short=False) != drawn(8, short=False)
    for short in (True, False):
        assert set(Trouble) < set(drawn(9, short=short))


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + ROUNDS))
async def test_whatever_goes_wrong_in_whatever_order_nothing_is_lost_or_doubled(
    seed: int, database: Database, tmp_path: Path
) -> None:
    server = dict(database.server)
    async with before_postgres(server) as (proxy, _):
        made = FaultRound(tmp_path, seed=seed, server=server, proxy=proxy)
        outcome = await made.run(drawn(seed, short=seed == SHORT))

    print(*outcome.story, sep="\n")
    wrong = report(outcome)
    assert not wrong, "\n".join(wrong)
    evidence = outcome.evidence
    assert len(evidence.messages) >= 300
    assert sum(letter.tries > 1 for letter in evidence.letters) > 3
    personal = [text for letter in evidence.letters for text in (letter.recipient[1:], letter.marker, letter.key)]
    assert found_in_logs(outcome.logs, [*outcome.secrets, *personal]) == []
