"""What must be true of executions after the crashes: each step once, and counted so (C9.10, C9.15). Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tests.crash.endpoint import Arrival
from tests.crash.evidence import is_uncertain

from recado.simulator.record import Request

Step = Mapping[str, Any]
"""As callers write it."""

EXITS = {
    ("enviar", "enviado"): "proximo",
    ("esperar", "esperou"): "proximo",
    ("condicao", "sim"): "sim",
    ("condicao", "nao"): "nao",
    ("webhook", "webhook_ok"): "proximo",
    ("webhook", "webhook_falhou"): "seFalhar",
}
"""The exit that a result leads to. Nothing here is left out (`pulado`), or fails within."""
CALLS = 4  # of a webhook step, C9.13


@dataclass(frozen=True, slots=True)
class Passed:
    """A line of a trail."""

    step: str
    result: str
    message_id: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """An execution with its trail, in the order of its way. `reason`: what ended it."""

    id: str
    contact_id: str
    status: str
    reason: str | None
    stands_at: str
    trail: Sequence[Passed]

    @property
    def under_way(self) -> bool:
        return self.status == "ativa"


@dataclass(frozen=True)
class Journeys:
    """What a round of one journey leaves behind. `members`: who was to enter.

    `messages`: what the API lists, by id; `requests`: the provider's record; `in_doubt`: messages whose call was under
    way at a kill; `numbers`, `counts`: what is told of the steps and the executions.
    """

    first: str
    steps: Mapping[str, Step]
    members: int
    runs: Sequence[Run]
    messages: Mapping[str, Mapping[str, Any]]
    requests: Sequence[Request]
    arrivals: Sequence[Arrival]
    in_doubt: frozenset[str]
    numbers: Sequence[Mapping[str, Any]]
    counts: Mapping[str, int]

    @cached_property
    def calls(self) -> Mapping[str, Sequence[Arrival]]:
        """By their keys."""
        found: dict[str, list[Arrival]] = defaultdict(list)
        for arrival in self.arrivals:
            found[arrival.key].append(arrival)
        return found


def journey_violations(evidence: Journeys) -> list[str]:
    """Everything that is wrong, one line each."""
    return [
        *_who_entered(evidence),
        *(wrong for run in evidence.runs for wrong in _wrong_way(evidence, run)),
        *_wrong_messages(evidence),
        *_wrong_calls(evidence),
        *_miscounted(evidence),
    ]


def _who_entered(evidence: Journeys) -> Iterable[str]:
    entered = Counter(run.contact_id for run in evidence.runs)
    yield from (f"{contact} entered {count} times" for contact, count in entered.items() if count > 1)
    if len(entered) != evidence.members:
        yield f"{len(entered)} of {evidence.members} members entered"


def _wrong_way(evidence: Journeys, run: Run) -> Iterable[str]:
    """The trail leads from the first step along exits to where the execution stands, through no step twice."""
    at: str | None = evidence.first
    for passed in run.trail:
        if passed.step != at:
            yield f"{run.id} passed {passed.step}, and its way led to {at}"
            return
        kind = evidence.steps[passed.step]["tipo"]
        if (kind, passed.result) == ("fim", "fim"):
            at = None
        elif (kind, passed.result) in EXITS:
            at = evidence.steps[passed.step][EXITS[kind, passed.result]]
        else:
            yield f"{run.id} passed {passed.step} with {passed.result}"
            return
    twice = [step for step, count in Counter(passed.step for passed in run.trail).items() if count > 1]
    yield from (f"{run.id} passed {step} more than once" for step in twice)
    if run.under_way:
        if run.stands_at != at:
            yield f"{run.id} stands at {run.stands_at}, and its way led to {at}"
        if not _waits_in_doubt(evidence, run):
            yield f"{run.id} is stuck at {run.stands_at}"
    elif (run.status, run.reason, at) != ("concluida", "fim", None):
        yield f"{run.id} is {run.status} ({run.reason}) at {run.stands_at}, and its way led to {at}"


def _waits_in_doubt(evidence: Journeys, run: Run) -> bool:
    """Whether it waits for what became of a message that a kill left in doubt."""
    about = evidence.steps[run.stands_at].get("sobre")
    sent = next((passed.message_id for passed in run.trail if passed.step == about), None)
    return sent in evidence.in_doubt and is_uncertain(evidence.messages.get(sent or "", {"status": "none"}))


def _wrong_messages(evidence: Journeys) -> Iterable[str]:
    """Each send made one message, which names its step, and left once."""
    made = {
        passed.message_id: (run.id, passed.step) for run in evidence.runs for passed in run.trail if passed.message_id
    }
    sends = sum(passed.result == "enviado" for run in evidence.runs for passed in run.trail)
    if len(made) != sends:
        yield f"{sends} sends were passed, and trails name {len(made)} messages"
    for message_id, of_step in made.items():
        told = (evidence.messages.get(message_id) or {}).get("metadata") or {}
        if (told.get("journeyRunId"), told.get("journeyStepId")) != of_step:
            yield f"{message_id} is the message of {of_step}, and says {told}"
    yield from (f"{message_id} is in no trail" for message_id in evidence.messages.keys() - made.keys())
    left = Counter(request.id for request in evidence.requests if request.outcome.processed)
    yield from (f"{message_id} left {count} times" for message_id, count in left.items() if count > 1)
    yield from (f"{message_id} left, and is no message" for message_id in left.keys() - evidence.messages.keys())


def _wrong_calls(evidence: Journeys) -> Iterable[str]:
    """Each call was made under the key of its step, and as often as its result says, at least."""
    due = {
        f"{run.id}:{passed.step}": passed.result
        for run in evidence.runs
        for passed in run.trail
        if evidence.steps.get(passed.step, {}).get("tipo") == "webhook"
    }
    for key, result in due.items():
        arrived = len(evidence.calls.get(key, ()))
        if arrived < (1 if result == "webhook_ok" else CALLS):
            yield f"{key} is {result} after {arrived} calls"
    yield from (f"a call came under the key {key!r}" for key in evidence.calls.keys() - due.keys())
    for key, arrivals in evidence.calls.items():
        if len({arrival.event_id for arrival in arrivals}) > 1:
            yield f"the calls under {key} had several ids"
    yield from (f"{arrival.key} came, and {fault}" for arrival in evidence.arrivals for fault in arrival.faults)


def _miscounted(evidence: Journeys) -> Iterable[str]:
    """The numbers of steps and of executions are those of the trails (C9.10)."""
    states = Counter(run.status for run in evidence.runs)
    told = {state: number for state, number in evidence.counts.items() if number}
    if told != states:
        yield f"the journey counts {told}, not {dict(states)}"
    results = Counter((passed.step, passed.result) for run in evidence.runs for passed in run.trail)
    through = Counter(passed.step for run in evidence.runs for passed in run.trail)
    standing = Counter(run.stands_at for run in evidence.runs if run.under_way)
    outcomes = _outcomes(evidence)
    for numbers in evidence.numbers:
        step = numbers["passo"]
        wanted = {
            "entraram": through[step] + standing[step],
            "aguardando": standing[step],
            "concluiram": through[step],
            "pulados": 0,
            "erros": 0,
        }
        match evidence.steps[step]["tipo"]:
            case "enviar":
                wanted |= {name: outcomes[step, name] for name in ("enviadas", "entregues", "lidas", "falhas")}
            case "condicao":
                wanted |= {"sim": results[step, "sim"], "nao": results[step, "nao"]}
            case "webhook":
                wanted |= {"sucesso": results[step, "webhook_ok"], "falha": results[step, "webhook_falhou"]}
        flat = {**numbers, **numbers.get("mensagens", {})}
        if wrong := {name: (flat.get(name), number) for name, number in wanted.items() if flat.get(name) != number}:
            yield f"{step} is counted wrong (told, true): {wrong}"
    if missing := evidence.steps.keys() - {numbers["passo"] for numbers in evidence.numbers}:
        yield f"nothing is told of {sorted(missing)}"


def _outcomes(evidence: Journeys) -> Counter[tuple[str, str]]:
    """What became of the messages of each step."""
    found: Counter[tuple[str, str]] = Counter()
    for run in evidence.runs:
        for passed in run.trail:
            message = evidence.messages.get(passed.message_id or "", {})
            told = {
                "enviadas": bool(message.get("sentAt")),
                "entregues": bool(message.get("deliveredAt")),
                "lidas": bool(message.get("readAt")),
                "falhas": message.get("status") == "failed",
            }
            found.update((passed.step, name) for name, is_so in told.items() if is_so)
    return found
