"""Kills under load: nothing accepted is lost, nothing leaves twice, and what is in doubt says so (C32)."""

import random
from pathlib import Path

import pytest
from tests.crash.round import Crash, Outcome, Round
from tests.crash.verdict import violations
from tests.privacy import found_in_logs


async def test_a_short_round_loses_nothing_doubles_nothing_and_tells_no_secret(tmp_path: Path) -> None:
    outcome = await Round(tmp_path, seed=1).run([Crash.SERVICE, Crash.POSTGRES, Crash.SERVICE])

    check(outcome)


@pytest.mark.long
@pytest.mark.parametrize("seed", [11, 12, 13, 14])
async def test_ten_kills_and_more_lose_nothing_and_double_nothing(seed: int, tmp_path: Path) -> None:
    crashes = [Crash.SERVICE] * 9 + [Crash.BOTH] * 2 + [Crash.POSTGRES, Crash.POSTGRES_AT_ONCE]
    random.Random(seed).shuffle(crashes)

    outcome = await Round(tmp_path, seed=seed).run(crashes)

    check(outcome)
    assert len(outcome.evidence.kills) >= 11


def check(outcome: Outcome) -> None:
    evidence = outcome.evidence
    in_doubt = [len(kill.claimed) for kill in evidence.kills]
    repeated = sum(letter.tries > 1 for letter in evidence.letters)
    print(f"{len(evidence.messages)} messages, {repeated} repeated requests, claimed at the kills: {in_doubt}")
    assert violations(evidence) == []
    assert outcome.unexpected == []
    assert len(evidence.messages) >= 500
    assert repeated > 10
    personal = [text for letter in evidence.letters for text in (letter.recipient[1:], letter.marker, letter.key)]
    assert found_in_logs(outcome.logs, [*outcome.secrets, *personal]) == []
