"""Kills while contacts are on their way: each execution passes each step exactly once (C9.15, C32).

`JOURNEY_EXECUTIONS`, `JOURNEY_KILLS`: how many contacts enter, and how often the service dies; `JOURNEY_SEED`.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.crash.endpoint import Arrival
from tests.crash.journeys import JourneyRound, Where, planned
from tests.crash.verdict_journeys import Journeys, Passed, Run, journey_violations

from recado.simulator.behaviour import Given
from recado.simulator.record import Request

CONTACTS = int(os.environ.get("JOURNEY_EXECUTIONS", "2000"))
KILLS = int(os.environ.get("JOURNEY_KILLS", "4"))
SEED = int(os.environ.get("JOURNEY_SEED", "1"))


@pytest.mark.long
@pytest.mark.alone
async def test_wherever_the_service_dies_each_execution_passes_each_step_once(tmp_path: Path) -> None:
    kills = JourneyRound(tmp_path, seed=SEED, contacts=CONTACTS, kills=KILLS)

    wrong = await kills.run()

    assert not wrong, "\n".join([*kills.story, f"{len(wrong)} violations:", *wrong[:40]])
    assert len(kills.brought) == planned(KILLS).count(Where.WAKES), "a kill among wake-ups was not made"


def test_kills_go_along_the_way() -> None:
    assert planned(4) == list(Where)
    assert [planned(10).count(where) for where in Where] == [3, 3, 2, 2]


# The judge ------------------------------------------------------------------------------------------------------------

STEPS: dict[str, dict[str, Any]] = {
    "ola": {"tipo": "enviar", "proximo": "chegou"},
    "chegou": {"tipo": "condicao", "sobre": "ola", "sim": "avisar", "nao": "fim"},
    "avisar": {"tipo": "webhook", "proximo": "fim", "seFalhar": "fim"},
    "fim": {"tipo": "fim"},
}
NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
Change = Callable[[Journeys], Journeys]


def run(number: int, *results: str, **changes: Any) -> Run:
    steps = ["ola", "chegou", "fim"] if "nao" in results else list(STEPS)
    of_message = [f"msg_{number}" if step == "ola" else None for step in steps]
    trail = [Passed(*each) for each in zip(steps, results, of_message, strict=False)]
    sound = Run(f"exe_{number}", f"cnt_{number}", "concluida", "fim", "fim", trail)
    return replace(sound, **changes)


def message(number: int, **changes: Any) -> dict[str, Any]:
    told = {"journeyRunId": f"exe_{number}", "journeyStepId": "ola"}
    stamps = {"sentAt": NOW.isoformat(), "deliveredAt": NOW.isoformat()}
    return {"status": "delivered", "metadata": told, **stamps, **changes}


def request(number: int) -> Request:
    return Request(f"msg_{number}", NOW, "line", Given.ACCEPTED, f"msg_{number}", f"person-{number}", f"sim_{number}")


def call(number: int, event: str = "evt") -> Arrival:
    return Arrival(f"{event}_{number}", "journey.action", None, key=f"exe_{number}:avisar")


def numbers(step: str, through: int, **more: Any) -> dict[str, Any]:
    counted = {"entraram": through, "aguardando": 0, "concluiram": through, "pulados": 0, "erros": 0}
    return {"passo": step, **counted, **more}


def sound() -> Journeys:
    """Two who went by `sim`, and one whose message failed."""
    runs = [
        run(1, "enviado", "sim", "webhook_ok", "fim"),
        run(2, "enviado", "sim", "webhook_ok", "fim"),
        run(3, "enviado", "nao", "fim"),
    ]
    refused = {"status": "failed", "sentAt": None, "deliveredAt": None}
    of_messages = {"enviadas": 2, "entregues": 2, "lidas": 0, "falhas": 1}
    return Journeys(
        "ola",
        STEPS,
        3,
        runs,
        {"msg_1": message(1), "msg_2": message(2), "msg_3": message(3, **refused)},
        [request(1), request(2), replace(request(3), outcome=Given.REFUSED)],
        [call(1), call(2), call(2)],
        frozenset(),
        [
            numbers("ola", 3, mensagens=of_messages),
            numbers("chegou", 3, sim=2, nao=1),
            numbers("avisar", 2, sucesso=2, falha=0),
            numbers("fim", 3),
        ],
        {"ativa": 0, "concluida": 3, "cancelada": 0, "erro": 0},
    )


def first(**changes: Any) -> Change:
    """The first execution is another one."""
    return lambda it: replace(it, runs=[replace(it.runs[0], **changes), *it.runs[1:]])


def passed(*results: str) -> Change:
    return first(trail=run(1, *results).trail)


def waiting(it: Journeys) -> Journeys:
    """The first one waits for a message whose call was under way at a kill."""
    stands = first(status="ativa", reason=None, stands_at="chegou", trail=run(1, "enviado").trail)(it)
    uncertain = message(1, status="sending", sentAt=None, deliveredAt=None, waiting={"reason": "uncertain"})
    counted = [
        numbers("ola", 3, mensagens={"enviadas": 1, "entregues": 1, "lidas": 0, "falhas": 1}),
        {**numbers("chegou", 2, sim=1, nao=1), "entraram": 3, "aguardando": 1},
        numbers("avisar", 1, sucesso=1, falha=0),
        numbers("fim", 2),
    ]
    return replace(
        stands,
        messages={**it.messages, "msg_1": uncertain},
        requests=it.requests[1:],
        arrivals=it.arrivals[1:],
        in_doubt=frozenset({"msg_1"}),
        numbers=counted,
        counts={"ativa": 1, "concluida": 2},
    )


def test_a_sound_round_has_no_violations() -> None:
    assert journey_violations(sound()) == []


def test_who_waits_for_a_message_in_doubt_is_not_stuck() -> None:
    assert journey_violations(waiting(sound())) == []


FAULTS: dict[str, Change] = {
    "cnt_2 entered 2 times": first(contact_id="cnt_2"),
    "3 of 4 members entered": lambda it: replace(it, members=4),
    "exe_1 passed chegou with pulado": passed("enviado", "pulado", "webhook_ok", "fim"),
    "exe_1 passed fim, and its way led to avisar": first(
        trail=[Passed("ola", "enviado", "msg_1"), Passed("chegou", "sim"), Passed("fim", "fim")]
    ),
    "exe_1 passed ola, and its way led to chegou": first(trail=[Passed("ola", "enviado", "msg_1")] * 2),
    "exe_1 stands at fim, and its way led to avisar": first(status="ativa", trail=run(1, "enviado", "sim").trail),
    "exe_1 is stuck at avisar": first(status="ativa", stands_at="avisar", trail=run(1, "enviado", "sim").trail),
    "exe_1 is stuck at chegou": lambda it: replace(waiting(it), in_doubt=frozenset()),
    "exe_1 is erro (falha_interna) at fim, and its way led to None": first(status="erro", reason="falha_interna"),
    "exe_1 is concluida (fim) at fim, and its way led to avisar": first(trail=run(1, "enviado", "sim").trail),
    "3 sends were passed, and trails name 2 messages": first(
        trail=[Passed("ola", "enviado"), *run(1, "enviado", "sim", "webhook_ok", "fim").trail[1:]]
    ),
    "msg_1 is the message of ('exe_1', 'ola'), and says {}": lambda it: replace(
        it, messages={**it.messages, "msg_1": message(1, metadata={})}
    ),
    "msg_9 is in no trail": lambda it: replace(it, messages={**it.messages, "msg_9": message(9)}),
    "msg_1 left 2 times": lambda it: replace(it, requests=[*it.requests, request(1)]),
    "msg_9 left, and is no message": lambda it: replace(it, requests=[*it.requests, request(9)]),
    "exe_1:avisar is webhook_ok after 0 calls": lambda it: replace(it, arrivals=it.arrivals[1:]),
    "exe_1:avisar is webhook_falhou after 1 calls": passed("enviado", "sim", "webhook_falhou", "fim"),
    "a call came under the key 'exe_9:avisar'": lambda it: replace(it, arrivals=[*it.arrivals, call(9)]),
    "the calls under exe_2:avisar had several ids": lambda it: replace(
        it, arrivals=[*it.arrivals, call(2, "evt_other")]
    ),
    "exe_1:avisar came, and it is torn": lambda it: replace(
        it, arrivals=[*it.arrivals, replace(call(1), faults=("it is torn",))]
    ),
    "the journey counts {'concluida': 4}, not {'concluida': 3}": lambda it: replace(it, counts={"concluida": 4}),
    "fim is counted wrong (told, true): {'entraram': (2, 3), 'concluiram': (2, 3)}": lambda it: replace(
        it, numbers=[*it.numbers[:3], numbers("fim", 2)]
    ),
    "ola is counted wrong (told, true): {'lidas': (0, 1)}": lambda it: replace(
        it, messages={**it.messages, "msg_1": message(1, readAt="now")}
    ),
    "nothing is told of ['fim']": lambda it: replace(it, numbers=it.numbers[:3]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_executions_is_seen(fault: str) -> None:
    assert fault in journey_violations(FAULTS[fault](sound()))
