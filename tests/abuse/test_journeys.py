"""Journeys as large as they may be, kept and read without end: who does it waits, and nobody else does (C9.14)."""

import itertools
import json
from typing import Any

import pytest
from tests.abuse.attacker import Attacker, keep_on
from tests.abuse.neighbour import Neighbour
from tests.program import Api

from recado.domain.journeys.graph import MAX_STEPS

pytestmark = [pytest.mark.alone, pytest.mark.long, pytest.mark.usefixtures("memory_returns")]

AT_ONCE = 20
LARGEST = 2**20
KEPT = "?permitirProblemas=true"


def step(place: int) -> dict[str, Any]:
    """Long texts, as many placeholders as a body of this size may hold, and many sources for others."""
    return {
        "id": f"{place:040}", "tipo": "enviar", "canal": "rcs", "proximo": f"{(place + 1) % MAX_STEPS:040}",
        "rcs": {
            "conteudo": {
                "text": "{{1}}" * 60 + "x" * 3_500,
                "card": {"title": "x" * 400, "description": "x" * 2_500},
            },
            "fallback": {"text": "x" * 4_000},
        },
        "variaveis": {f"n{number}": {"de": "fixo", "valor": "x" * 50} for number in range(90)},
    }  # fmt: skip


def fork(place: int) -> dict[str, Any]:
    """Twenty ways that lead nowhere, or back."""
    ways = [{"nome": "x" * 120, "peso": 0, "proximo": f"{place * way % 70:040}"} for way in range(20)]
    return {"id": f"{place:040}", "tipo": "dividir", "ramos": ways}


def draft(make: Any) -> bytes:
    steps = [make(place) for place in range(MAX_STEPS)]
    return json.dumps({"name": "Large", "gatilho": {}, "inicio": steps[0]["id"], "passos": steps}).encode()


async def test_the_largest_journeys_keep_nobody_waiting(
    attacker: Attacker, api: Api, neighbour: Neighbour, seconds: float
) -> None:
    bodies = [draft(step), draft(fork)]
    assert LARGEST * 0.7 < len(bodies[0]) < LARGEST
    made = [(await api.call("POST", f"/v2/journeys{KEPT}", json.loads(body)))["id"] for body in bodies]
    requests = itertools.cycle(
        [
            request
            for journey_id, body in zip(made, bodies, strict=True)
            for request in (
                ("PUT", f"/v2/journeys/{journey_id}{KEPT}", body),
                ("GET", f"/v2/journeys/{journey_id}", b""),
                ("POST", "/v2/journeys", body),
            )
        ]
    )
    async with neighbour.held():
        answers = await keep_on(seconds, AT_ONCE, lambda: attacker.ask(*next(requests)))
    assert answers[200] >= AT_ONCE
    assert answers[422]
    assert set(answers) <= {200, 422, 429, 503}
