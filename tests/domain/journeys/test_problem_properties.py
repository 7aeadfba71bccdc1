"""Problems of any definition at all: never an exception, bounded, and none exactly where a plain look finds nothing."""

import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.domain.journeys.definitions import EMAIL_TEMPLATE, LIST, NUMBER, REFERENCES, TEMPLATE, WEBHOOK, codes, found

from recado.domain.journeys.graph import (
    SIGNALS,
    FieldOperator,
    Reentry,
    StepChannel,
    StepKind,
    StepSignal,
    TriggerKind,
    VariableOrigin,
    definition_of,
)
from recado.domain.journeys.paths import Paths
from recado.domain.journeys.problems import JourneyReferences

IDS = st.sampled_from(["a", "b", "c", "d", "-", "_" * 40])
TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["{{1}}", "{{" * 2_000, "{{1}}" * 800, "a" * 4_000, "{ } %s {0}", "09:00", "24:00", "é" * 1_531]),
)
NUMBERS = st.one_of(st.integers(-1, 10), st.sampled_from([129_600, 129_601, 2**63, -(2**63)]))
REFERENCE = st.one_of(TEXTS, st.sampled_from([LIST, NUMBER, TEMPLATE, EMAIL_TEMPLATE, WEBHOOK, "wbh_paused"]))
SOURCES = st.fixed_dictionaries(
    {},
    optional={
        "de": st.one_of(TEXTS, st.sampled_from(VariableOrigin)),
        "campo": st.one_of(TEXTS, st.just("name")),
        "valor": TEXTS,
        "padrao": TEXTS,
    },
)
SUGGESTIONS = st.fixed_dictionaries({}, optional={"type": TEXTS, "text": TEXTS, "value": TEXTS})
CARDS = st.fixed_dictionaries(
    {},
    optional={
        "title": TEXTS,
        "description": TEXTS,
        "mediaUrl": TEXTS,
        "orientation": TEXTS,
        "suggestions": st.lists(SUGGESTIONS, max_size=6),
    },
)
RCS = st.fixed_dictionaries(
    {},
    optional={
        "rota": TEXTS,
        "conteudo": st.fixed_dictionaries({}, optional={"text": TEXTS, "card": CARDS}),
        "fallback": st.fixed_dictionaries({}, optional={"text": TEXTS}),
    },
)
BRANCHES = st.fixed_dictionaries({}, optional={"nome": TEXTS, "peso": NUMBERS, "proximo": IDS})
HOSTILE_STEPS = st.fixed_dictionaries(
    {"id": IDS, "tipo": st.sampled_from([kind.value for kind in StepKind])},
    optional={
        "canal": st.one_of(TEXTS, st.sampled_from([channel.value for channel in StepChannel])),
        "templateId": REFERENCE,
        "numberId": REFERENCE,
        "smsRoute": TEXTS,
        "texto": TEXTS,
        "rcs": RCS,
        "variaveis": st.dictionaries(st.sampled_from(["1", "2", "name"]), SOURCES),
        "proximo": IDS,
        "minutos": NUMBERS,
        "hora": TEXTS,
        "dias": st.lists(NUMBERS, max_size=8),
        "sobre": IDS,
        "sinal": st.one_of(TEXTS, st.sampled_from([signal.value for signal in StepSignal])),
        "evento": TEXTS,
        "janelaMinutos": NUMBERS,
        "campo": st.one_of(TEXTS, st.sampled_from(["name", "entrada.x", "attributes.x"])),
        "operador": st.one_of(TEXTS, st.sampled_from([operator.value for operator in FieldOperator])),
        "valor": st.one_of(TEXTS, NUMBERS, st.booleans(), st.floats(allow_nan=False, allow_infinity=False)),
        "sim": IDS,
        "nao": IDS,
        "ramos": st.lists(BRANCHES, max_size=12),
        "webhookId": REFERENCE,
        "seFalhar": IDS,
    },
)
HOSTILE = st.fixed_dictionaries(
    {
        "gatilho": st.fixed_dictionaries(
            {},
            optional={
                "tipo": st.sampled_from([kind.value for kind in TriggerKind]),
                "listId": REFERENCE,
                "segmentId": REFERENCE,
                "nome": TEXTS,
            },
        ),
        "inicio": IDS,
        "passos": st.lists(HOSTILE_STEPS, max_size=8),
    },
    optional={
        "reentrada": st.sampled_from([each.value for each in Reentry]),
        "silencio": st.fixed_dictionaries({}, optional={"inicio": TEXTS, "fim": TEXTS}),
        "meta": st.fixed_dictionaries({}, optional={"evento": TEXTS}),
    },
)


@given(HOSTILE, st.sampled_from([REFERENCES, JourneyReferences()]))
def test_any_document_is_looked_at_to_its_end(document: dict[str, Any], references: JourneyReferences) -> None:
    told = found(document, references)
    assert len(told) == len(set(told))
    assert all(re.match(r"[A-Z_]+(\[[A-Za-z0-9_-]{1,40}\])?: ", problem) for problem in told)
    # A sentence names at most ten variables, whatever a step holds: an answer does not grow with the texts.
    assert all(len(problem) < 1_000 for problem in told)
    assert len(told) < 20 + 35 * len(document["passos"])
    definition = definition_of(document)
    assert set(definition.channels) <= set(StepChannel)
    assert len(definition.flow) <= len(document["passos"])


# A plain look at graphs of steps that are well formed by themselves -------------------------------------------------

FEW = st.sampled_from("abcde")
MAYBE = st.one_of(st.none(), FEW, FEW, FEW, FEW, st.just("z"))
PLAIN_STEPS = st.one_of(
    st.fixed_dictionaries({"tipo": st.just("fim")}),
    st.fixed_dictionaries({"tipo": st.just("esperar"), "minutos": st.just(1), "proximo": MAYBE}),
    st.fixed_dictionaries(
        {"tipo": st.just("enviar"), "canal": st.just("sms"), "texto": st.just("Hello"), "proximo": MAYBE}
    ),
    st.fixed_dictionaries(
        {
            "tipo": st.just("condicao"),
            "sobre": FEW,
            "sinal": st.sampled_from(sorted(SIGNALS[StepChannel.SMS] - {StepSignal.CONVERTEU})),
            "sim": MAYBE,
            "nao": MAYBE,
        }
    ),
    st.fixed_dictionaries({"tipo": st.just("webhook"), "webhookId": st.just(WEBHOOK), "proximo": MAYBE}),
)


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, Any]:
    """Small ones: with whatever stands in them, or such as lead forward only, as well formed ones do."""
    drawn = draw(st.lists(PLAIN_STEPS, min_size=1, max_size=5))
    passos = [
        {"id": step_id, **{name: value for name, value in step.items() if value is not None}}
        for step_id, step in zip("abcde", drawn, strict=False)
    ]
    if draw(st.booleans()):
        _lead_forward(passos)
    elif draw(st.booleans()):
        passos.append(dict(draw(st.sampled_from(passos))))
    ordered = draw(st.permutations(passos))
    return {"gatilho": {"tipo": "api"}, "inicio": draw(st.sampled_from("aaabz")), "passos": ordered}


def _lead_forward(passos: list[dict[str, Any]]) -> None:
    """Let each step lead to the next one, and the last one end: the most usual journey."""
    for step, following in pairwise(passos):
        for name in ("proximo", "sim", "nao"):
            if name in step:
                step[name] = following["id"]
        if step["tipo"] == "fim":
            step |= {"tipo": "enviar", "canal": "sms", "texto": "Hello", "proximo": following["id"]}
    passos[-1] = {"id": passos[-1]["id"], "tipo": "fim"}


def exits_of(step: dict[str, Any]) -> list[Any]:
    match step["tipo"]:
        case "fim":
            return []
        case "condicao":
            return [step.get("sim"), step.get("nao")]
    return [step.get("proximo")]


def ways(steps: dict[str, Any], at: str, before: tuple[str, ...]) -> list[tuple[str, ...]] | None:
    """All paths from here, each with what came before; None when one of them comes back."""
    if at in before:
        return None
    found_ways = [(*before, at)]
    for target in exits_of(steps[at]):
        further = ways(steps, target, (*before, at))
        if further is None:
            return None
        found_ways += further
    return found_ways


def is_well_formed(document: dict[str, Any]) -> bool:
    steps = {step["id"]: step for step in document["passos"]}
    if len(steps) < len(document["passos"]) or document["inicio"] not in steps:
        return False
    if not all(target in steps for step in steps.values() for target in exits_of(step)):
        return False
    paths = ways(steps, document["inicio"], ())
    if paths is None or {path[-1] for path in paths} < set(steps):
        return False
    watched = [(path[:-1], steps[path[-1]]["sobre"]) for path in paths if steps[path[-1]]["tipo"] == "condicao"]
    return all(sobre in before and steps[sobre]["tipo"] == "enviar" for before, sobre in watched)


@given(graphs())
def test_a_graph_has_no_problem_exactly_when_each_path_is_sound(document: dict[str, Any]) -> None:
    assert (codes(document) == []) is is_well_formed(document)


@given(graphs())
def test_a_cycle_is_told_exactly_when_a_path_comes_back(document: dict[str, Any]) -> None:
    definition = definition_of(document)
    paths = Paths(definition.passos, definition.inicio)
    in_cycles = {step_id for together in paths.cycles() for step_id in together}

    def reaches(at: str, wanted: str, seen: set[str]) -> bool:
        for way_out in paths.steps[at].exits:
            if way_out.target == wanted:
                return True
            if way_out.target in paths.steps and way_out.target not in seen:
                seen.add(way_out.target)
                if reaches(way_out.target, wanted, seen):
                    return True
        return False

    assert in_cycles == {step_id for step_id in paths.steps if reaches(step_id, step_id, set())}


def test_the_largest_graphs_take_a_few_rounds() -> None:
    """Fifty steps, each of which leads to two others: along many more paths than could be walked one by one."""
    steps = [
        {"id": f"s{place}", "tipo": "condicao", "campo": "name", "operador": "existe",
         "sim": f"s{place + 1}", "nao": f"s{min(place + 2, 49)}"}
        for place in range(49)
    ]  # fmt: skip
    document = {"gatilho": {"tipo": "api"}, "inicio": "s0", "passos": [*steps, {"id": "s49", "tipo": "fim"}]}
    assert found(document) == []
    steps[48]["nao"] = "s0"
    assert found(document)[0].startswith("CICLO: Estes passos formam um ciclo: s0, s1, s2,")


@pytest.mark.parametrize("length", [1, 2, 3, 49, 50])
def test_a_way_of_any_length_is_sound_until_a_step_of_it_leads_back(length: int) -> None:
    names = [f"{place}-_{'x' * 36}"[:40] for place in range(length)]  # as long as ids may be
    steps: list[dict[str, Any]] = [
        {"id": name, "tipo": "webhook", "webhookId": WEBHOOK, "proximo": following}
        for name, following in pairwise(names)
    ]
    steps.append({"id": names[-1], "tipo": "fim"})
    document = {"gatilho": {"tipo": "api"}, "inicio": names[0], "passos": steps}
    assert codes(document) == []
    steps[-1] = {"id": names[-1], "tipo": "webhook", "webhookId": WEBHOOK, "proximo": names[0]}
    assert codes(document) == ["CICLO"]
    steps[-1]["proximo"] = "nowhere"
    assert codes(document) == [f"DESTINO_INEXISTENTE[{names[-1]}]"]


def test_a_watched_send_is_passed_on_every_path() -> None:
    """Two ways that meet again: only a send before they part, or after they met, is passed for sure."""
    ask = {"id": "ask", "tipo": "condicao", "sobre": "first", "sinal": "entregue", "sim": "end", "nao": "end"}
    document = {
        "gatilho": {"tipo": "api"},
        "inicio": "first",
        "passos": [
            {"id": "first", "tipo": "enviar", "canal": "sms", "texto": "One", "proximo": "part"},
            {"id": "part", "tipo": "condicao", "campo": "name", "operador": "existe", "sim": "left", "nao": "right"},
            {"id": "left", "tipo": "enviar", "canal": "sms", "texto": "Two", "proximo": "met"},
            {"id": "right", "tipo": "esperar", "minutos": 1, "proximo": "met"},
            {"id": "met", "tipo": "enviar", "canal": "sms", "texto": "Three", "proximo": "ask"},
            ask,
            {"id": "end", "tipo": "fim"},
        ],
    }
    assert codes(document) == []
    ask["sobre"] = "met"
    assert codes(document) == []
    ask["sobre"] = "left"
    assert codes(document) == ["SOBRE_INVALIDO[ask]"]
