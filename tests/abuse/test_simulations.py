"""Dry runs of a journey over the largest segment, again and again: who asks for them waits, and nobody else does."""

import itertools
import secrets

import pytest
from tests.abuse.attacker import Attacker, keep_on
from tests.abuse.neighbour import Neighbour
from tests.program import Api

pytestmark = [pytest.mark.alone, pytest.mark.long, pytest.mark.usefixtures("memory_returns")]

AT_ONCE = 20
CONTACTS, IN_ONE = 20_000, 2_000
STEPS = 20  # conditions that tell nearly everybody apart
RATES = {"entregue": 0.9, "lido": 0.5, "respondeu": 0.1, "clicou": 0.1, "optOut": 0.01}


def steps() -> list[dict[str, object]]:
    """Many conditions on fields and on signals, with a message of each contact's own between them."""
    name = {"1": {"de": "contato", "campo": "name", "padrao": "x"}}
    found: list[dict[str, object]] = []
    for n in range(STEPS):
        following = f"c{n + 1}" if n + 1 < STEPS else "sms"
        found.append({
            "id": f"c{n}", "tipo": "condicao", "campo": "attributes.n", "operador": "contem", "valor": f"{n}",
            "sim": following, "nao": following,
        })  # fmt: skip
    return [
        *found,
        {"id": "sms", "tipo": "enviar", "canal": "sms", "texto": "Oi {{1}}", "variaveis": name, "proximo": "asked"},
        {"id": "asked", "tipo": "condicao", "sobre": "sms", "sinal": "respondeu", "sim": "end", "nao": "more"},
        {"id": "more", "tipo": "enviar", "canal": "sms", "texto": "{{1}}?", "variaveis": name, "proximo": "end"},
        {"id": "end", "tipo": "fim"},
    ]


async def test_dry_runs_of_the_largest_segment_keep_nobody_waiting(
    attacker: Attacker, api: Api, neighbour: Neighbour, seconds: float
) -> None:
    phones = itertools.count(secrets.randbelow(10**7))
    for start in range(0, CONTACTS, IN_ONE):
        contacts = [
            {"phone": f"+55119{next(phones):08}", "name": f"Person {n}", "attributes": {"n": secrets.token_hex(8)}}
            for n in range(start, start + IN_ONE)
        ]
        assert await attacker.ask("POST", "/contacts/import", {"contacts": contacts}) in (200, 202)
    everybody = [{"field": "attribute", "key": "n", "operator": "exists"}]
    segment = await api.call("POST", "/v2/segments", {"name": secrets.token_hex(8), "filters": everybody})
    trigger = {"tipo": "segmento", "segmentId": segment["id"]}
    body = {"name": "tried", "gatilho": trigger, "inicio": "c0", "passos": steps()}
    journey = await api.call("POST", "/v2/journeys", body)
    path = f"/v2/journeys/{journey['id']}/simulate"

    async with neighbour.held():
        answers = await keep_on(seconds, AT_ONCE, lambda: attacker.ask("POST", path, {"taxas": RATES, "amostra": 20}))
    assert answers[200] > 0
    assert set(answers) <= {200, 429, 503}
