"""Guessed credentials: their refusals cost those who guess."""

import secrets

import pytest
from tests.abuse.attacker import Attacker, keep_on
from tests.abuse.neighbour import Neighbour

from recado.domain.core.tokens import mint_token

pytestmark = [pytest.mark.alone, pytest.mark.long, pytest.mark.usefixtures("memory_returns")]


AT_ONCE = 700  # more than may wait for one caller's share of the database


async def test_a_storm_of_guessed_keys_keeps_nobody_waiting(
    attacker: Attacker, neighbour: Neighbour, seconds: float
) -> None:
    stranger = attacker.without_credential("127.0.0.2")

    async def guess() -> int:
        token = mint_token("svc_test_", secrets.token_bytes)  # well-formed, so that the database is asked
        return await stranger.ask("GET", "/messages", headers={"Authorization": f"Bearer {token}"})

    async with neighbour.held():
        answers = await keep_on(seconds, AT_ONCE, guess)
    assert {401, 429} <= set(answers) <= {401, 429, 503}
