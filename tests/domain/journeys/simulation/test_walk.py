"""A journey is walked for many contacts at once, as single executions would go (C9.17)."""

import tracemalloc
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.domain.journeys.cases import SAO_PAULO, person
from tests.examples import examples

from recado.domain.contacts.consent import ConsentStatus
from recado.domain.core.ids import CONTACT
from recado.domain.dispatch.quiet_hours import QuietHours
from recado.domain.journeys.execution import EndReason, SkipReason
from recado.domain.journeys.graph import definition_of
from recado.domain.journeys.runnable import runnable
from recado.domain.journeys.sends import QuietWindow
from recado.domain.journeys.simulation.assumptions import Assumptions, Rate
from recado.domain.journeys.simulation.departure_times import SenderLimits
from recado.domain.journeys.simulation.walk import ContactKind, Offer, Walk
from recado.domain.journeys.steps import SendStep
from recado.domain.journeys.waits import LONGEST_WAIT

START = datetime(2026, 3, 13, 15, tzinfo=UTC)  # noon in São Paulo
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
OFFER = Offer("chatapp", "num_1", 4_500, 1, DAY)

END = {"id": "end", "tipo": "fim"}


def send(step_id: str, following: str) -> dict[str, Any]:
    return {
        "id": step_id, "tipo": "enviar", "canal": "chatapp", "templateId": "tpl_1", "numberId": "num_1",
        "proximo": following,
    }  # fmt: skip


def on(step_id: str, about: str, signal: str, yes: str, no: str, minutes: int = 60) -> dict[str, Any]:
    return {
        "id": step_id, "tipo": "condicao", "sobre": about, "sinal": signal, "janelaMinutos": minutes, "sim": yes,
        "nao": no,
    }  # fmt: skip


def wait(step_id: str, following: str, minutes: int = 60) -> dict[str, Any]:
    return {"id": step_id, "tipo": "esperar", "minutos": minutes, "proximo": following}


def walked(
    steps: Sequence[Mapping[str, Any]],
    *,
    people: int = 1_000,
    kinds: Sequence[ContactKind] | None = None,
    rates: Mapping[Rate, float] | None = None,
    assumptions: Assumptions | None = None,
    offers: Mapping[str, Offer | SkipReason] | None = None,
    definition: Mapping[str, Any] | None = None,
    **options: Any,
) -> Walk:
    """The walk at its end, of one kind of contacts unless `kinds` says otherwise."""
    document = {"gatilho": {"tipo": "api"}, "inicio": steps[0]["id"], "passos": list(steps), **(definition or {})}
    plan = runnable(definition_of(document))
    made = offers or {step.id: OFFER for step in plan.steps.values() if isinstance(step, SendStep)}
    given = [ContactKind(person(), registered=False, count=people, offers=made)] if kinds is None else kinds
    given = [each if each.offers else replace(each, offers=made) for each in given]
    found = Walk(plan, given, assumptions or Assumptions(rates or {}), zone=SAO_PAULO, start=START, **options)
    while found.advance(1_000):
        pass
    assert found.under_way == 0 or found.endless
    return found


def entered(walk: Walk, step_id: str) -> int:
    return walk.tallies.numbers(step_id).entered


REMINDED = [
    send("hello", "read"),
    on("read", "hello", "lido", "end", "again"),
    send("again", "end"),
    END,
]


def test_rates_part_those_who_go_on() -> None:
    walk = walked(REMINDED, rates={Rate.ENTREGUE: 0.9, Rate.LIDO: 0.5})
    numbers = walk.tallies.numbers("read")
    assert (numbers.result("sim"), numbers.result("nao"), entered(walk, "again")) == (450, 550, 550)
    assert walk.tallies.ends == {EndReason.FINISHED: 1_000}
    assert walk.tallies.numbers("hello").messages() | {"conversoes": 0} == {
        "enviadas": 1_000, "entregues": 900, "lidas": 450, "clicadas": 0, "respondidas": 0, "falhas": 0,
        "conversoes": 0,
    }  # fmt: skip
    assert walk.tallies.coins == {"hello": 4_500_000, "again": 550 * 4_500}
    assert walk.tallies.last_at == START + HOUR


def test_nothing_is_assumed_but_that_messages_arrive() -> None:
    walk = walked(REMINDED)
    numbers = walk.tallies.numbers("hello").messages()
    assert (numbers["entregues"], numbers["lidas"], entered(walk, "again")) == (1_000, 0, 1_000)


def test_rates_of_a_step_stand_before_those_of_all() -> None:
    assumptions = Assumptions({Rate.LIDO: 0.5}, {"again": {Rate.LIDO: 0.1}})
    walk = walked(REMINDED, assumptions=assumptions)
    assert walk.tallies.numbers("again").messages()["lidas"] == 50


@pytest.mark.parametrize("branch", ["sim", "nao"])
@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_a_chosen_branch_is_taken_by_all(branch: str, rate: float) -> None:
    walk = walked(REMINDED, assumptions=Assumptions({Rate.LIDO: rate}, {}, {"read": branch}))
    assert entered(walk, "again") == (0 if branch == "sim" else 1_000)


@pytest.mark.parametrize(
    ("rates", "ends"),
    [
        ({Rate.ENTREGUE: 0.7, Rate.INDETERMINADO: 0.3}, {EndReason.FINISHED: 700, EndReason.SEND_UNDETERMINED: 300}),
        ({Rate.OPT_OUT: 0.2}, {EndReason.FINISHED: 800, EndReason.OPTED_OUT: 200}),
        ({Rate.CONVERTEU: 0.25}, {EndReason.FINISHED: 750, EndReason.GOAL_REACHED: 250}),
        ({Rate.ENTREGUE: 0.5, Rate.FALHA: 0.5}, {EndReason.FINISHED: 1_000}),
    ],
)
def test_executions_end_as_the_outcomes_of_their_messages_say(
    rates: Mapping[Rate, float], ends: Mapping[EndReason, int]
) -> None:
    steps = [send("hello", "there"), on("there", "hello", "respondeu", "end", "end"), END]
    walk = walked(steps, rates=rates, definition={"meta": {"evento": "bought"}})
    assert walk.tallies.ends == ends


def test_who_opts_out_does_so_wherever_they_stand_and_gets_nothing_more() -> None:
    steps = [send("hello", "wait"), wait("wait", "again", 1_440), send("again", "end"), END]
    walk = walked(steps, rates={Rate.OPT_OUT: 0.3})
    assert (entered(walk, "again"), walk.tallies.messages["again"]) == (700, 700)
    # Of those who are left as many opt out of the second one, when the journey is through with them.
    assert walk.tallies.ends == {EndReason.OPTED_OUT: 300, EndReason.FINISHED: 700}


def test_whoever_refused_before_does_not_enter_or_ends_at_once() -> None:
    denied = ContactKind(person(opt_in_status=ConsentStatus.DENIED), registered=False, count=3, offers={}, shown=True)
    registered = ContactKind(person(), registered=True, count=2, offers={})
    walk = walked(REMINDED, kinds=[denied, registered])
    assert (walk.tallies.entered, walk.tallies.ends) == (2, {EndReason.OPTED_OUT: 2})
    assert walk.trails[0].entered is False


def test_splits_share_by_weight_and_come_together_again() -> None:
    branches = [("a", 1), ("b", 2), ("c", 7)]
    split = {
        "id": "split", "tipo": "dividir", "ramos": [{"nome": n, "peso": w, "proximo": "wait"} for n, w in branches],
    }  # fmt: skip
    walk = walked([split, wait("wait", "end"), END])
    assert [walk.tallies.numbers("split").branch(name) for name, _ in branches] == [100, 200, 700]
    assert walk.tallies.numbers("wait").entered == 1_000


def test_a_single_one_takes_the_branch_that_its_id_says() -> None:
    split = {
        "id": "split", "tipo": "dividir", "ramos": [{"nome": n, "peso": 1, "proximo": "end"} for n in ("a", "b")],
    }  # fmt: skip
    kinds = [
        ContactKind(person(id=f"{CONTACT}{n:021}"), registered=False, count=1, offers={"none": OFFER}, shown=True)
        for n in range(400)
    ]
    ways = [
        [trail.lines[0].result for trail in walked([split, END], kinds=kinds, seed=seed).trails.values()]
        for seed in (1, 1, 2)
    ]
    assert ways[0] == ways[1] != ways[2]
    assert 150 < ways[0].count("a") < 250


def test_sends_hold_while_it_is_silent_and_are_skipped_beyond_the_cap() -> None:
    silence = QuietWindow(QuietHours(time(11), time(14)), SAO_PAULO)
    steps = [send("one", "two"), send("two", "three"), send("three", "end"), END]
    definition = {"tetoDeFrequencia": {"mensagens": 2, "dias": 1}}
    walk = walked(steps, silences=[silence], definition=definition)
    assert walk.tallies.departures["num_1"].first == START + 2 * HOUR
    assert walk.tallies.skipped == {"three": {SkipReason.FREQUENCY_CAP.value: 1_000}}
    recent = ContactKind(person(), registered=False, count=5, offers={}, recent=(START - 2 * DAY, START - 23 * HOUR))
    walk = walked([send("one", "wait"), wait("wait", "two", 120), send("two", "end"), END],
        kinds=[recent], definition={"tetoDeFrequencia": {"mensagens": 1, "dias": 1}},
    )  # fmt: skip
    assert walk.tallies.skipped == {"one": {SkipReason.FREQUENCY_CAP.value: 5}}
    assert walk.tallies.messages == {"two": 5}


def test_it_ends_where_silences_leave_no_time_to_send() -> None:
    day = QuietWindow(QuietHours(time(8), time(20)), SAO_PAULO)
    night = QuietWindow(QuietHours(time(20), time(8)), SAO_PAULO)
    walk = walked(REMINDED, people=10, silences=[day, night])
    assert (walk.endless, walk.under_way, walk.tallies.messages) == (True, 10, {})
    most = START + len(REMINDED) * LONGEST_WAIT
    assert most - DAY < walk.tallies.last_at <= most
    assert not walked(REMINDED, people=10, silences=[night]).endless


def test_the_longest_waits_are_walked_to_the_end() -> None:
    longest = LONGEST_WAIT // timedelta(minutes=1)
    walk = walked([wait("one", "two", longest), wait("two", "end", longest), END])
    assert (walk.endless, walk.tallies.last_at) == (False, START + 2 * LONGEST_WAIT)


def test_it_stands_still_when_it_was_enough_even_within_a_decision() -> None:
    document = {"gatilho": {"tipo": "api"}, "inicio": "hello", "passos": REMINDED}
    kinds = [ContactKind(person(), registered=False, count=4_800, offers={"hello": OFFER, "again": OFFER})]
    limits = {"num_1": SenderLimits(per_second=1)}
    walk = Walk(
        runnable(definition_of(document)), kinds, Assumptions(), zone=SAO_PAULO, start=START, limits=limits
    )  # fmt: skip
    steps = 0
    while walk.tallies.numbers("hello").messages()["enviadas"] < 4_800:
        assert walk.advance(1_000, lambda: True)
        assert walk.under_way == 4_800
        steps += 1
    assert steps == 2 + 48


def test_what_comes_of_equal_lots_is_kept_once() -> None:
    events = [f"event_{n}" for n in range(40)]
    asks = [{**on(e, "hello", "converteu", "end", after), "evento": e}
        for e, after in zip(events, [*events[1:], "end"], strict=True)]  # fmt: skip
    document = {"gatilho": {"tipo": "api"}, "inicio": "hello", "passos": [send("hello", events[0]), *asks, END]}
    kinds = [ContactKind(person(), registered=False, count=4_800, offers={"hello": OFFER})]
    limits, rates = {"num_1": SenderLimits(per_second=1)}, Assumptions({Rate.CONVERTEU: 0.5})
    walk = Walk(runnable(definition_of(document)), kinds, rates, zone=SAO_PAULO, start=START, limits=limits)
    tracemalloc.start()
    try:
        walk.advance(2 + 48)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert walk.cohorts == 2 * 48
    assert held / walk.cohorts < 1_500


def test_what_cannot_be_sent_is_skipped_with_its_reason() -> None:
    offers = {"hello": SkipReason.TEMPLATE_UNAVAILABLE, "again": OFFER}
    walk = walked(REMINDED, offers=offers, people=10)
    assert walk.tallies.skipped["hello"] == {"modelo_indisponivel": 10}
    assert entered(walk, "again") == 10


def test_windows_count_from_the_departure_at_the_pace_of_the_number() -> None:
    limits = {"num_1": SenderLimits(per_second=1)}
    walk = walked(REMINDED, people=7_200, limits=limits, rates={Rate.LIDO: 0.5})
    departures = walk.tallies.departures["num_1"]
    assert departures.by_hour.total() == 7_200 + 3_600
    assert departures.first == START
    assert [departures.by_hour[START + n * HOUR] for n in range(2)] == pytest.approx([3_600, 3_600], abs=200)
    assert departures.last is not None
    assert departures.last > START + 2.8 * HOUR


def test_what_expires_in_the_queue_has_failed_and_costs_nothing() -> None:
    walk = walked(REMINDED, people=10, limits={"num_1": SenderLimits(held=True)})
    assert (walk.tallies.departures["num_1"].expired, walk.tallies.coins) == (20, {})
    assert walk.tallies.numbers("hello").messages()["falhas"] == 10
    assert walk.tallies.numbers("read").result("nao") == 10


@pytest.mark.parametrize(("rate", "chosen", "failed"), [(0.75, {}, 250), (1.0, {"call": "webhook_falhou"}, 1_000)])
def test_calls_are_taken_or_fail_after_their_repeats(rate: float, chosen: dict[str, str], failed: int) -> None:
    steps = [{"id": "call", "tipo": "webhook", "webhookId": "wbh_1", "proximo": "end", "seFalhar": "sorry"},
        {"id": "sorry", "tipo": "fim"}, END,
    ]  # fmt: skip
    walk = walked(steps, assumptions=Assumptions({Rate.WEBHOOK: rate}, {}, chosen))
    numbers = walk.tallies.numbers("call")
    assert (numbers.result("webhook_ok"), numbers.result("webhook_falhou")) == (1_000 - failed, failed)
    assert walk.tallies.last_at == START + timedelta(seconds=0 if chosen else 370)


def test_a_shown_contact_has_a_trail_with_its_messages() -> None:
    ada = ContactKind(person(name="Ada"), registered=False, count=1, offers={}, shown=True)
    walk = walked(REMINDED, kinds=[ada], rates={Rate.LIDO: 0.0})
    trail = walk.trails[0]
    assert [(line.step_id, line.result, line.at - START) for line in trail.lines] == [
        ("hello", "enviado", timedelta()), ("read", "nao", HOUR), ("again", "enviado", HOUR), ("end", "fim", HOUR),
    ]  # fmt: skip
    assert (trail.reason, trail.ended_at) == (EndReason.FINISHED, START + HOUR)
    assert [line.leaves_at for line in trail.lines if line.send is not None] == [START, START + HOUR]


LONG = [
    send("one", "split"),
    {
        "id": "split", "tipo": "dividir",
        "ramos": [{"nome": "a", "peso": 3, "proximo": "read"}, {"nome": "b", "peso": 1, "proximo": "wait"}],
    },
    on("read", "one", "lido", "two", "wait", 120),
    wait("wait", "two", 600),
    send("two", "answered"),
    on("answered", "two", "respondeu", "end", "bought"),
    on("bought", "one", "converteu", "end", "three", 1_440),
    send("three", "end"),
    END,
]  # fmt: skip
for _step in LONG:
    if _step["id"] == "bought":
        _step["evento"] = "bought"

_rates = st.floats(0, 1, allow_nan=False)


@given(
    st.fixed_dictionaries(dict.fromkeys((Rate.LIDO, Rate.RESPONDEU, Rate.CONVERTEU, Rate.OPT_OUT), _rates)),
    st.tuples(_rates, _rates, _rates),
    st.lists(st.integers(1, 400), min_size=1, max_size=4),
    st.booleans(),
    st.integers(0, 5),
)
@settings(max_examples=examples(60))
def test_nobody_is_lost_and_a_repeat_gives_the_same(
    rates: dict[Rate, float], outcomes: tuple[float, float, float], counts: list[int], slow: bool, seed: int
) -> None:
    whole = sum(outcomes) or 1.0
    named = (Rate.ENTREGUE, Rate.FALHA, Rate.INDETERMINADO)
    rates = {**rates, **{rate: share / max(whole, 1.0) for rate, share in zip(named, outcomes, strict=True)}}
    kinds = [
        ContactKind(person(id=f"{CONTACT}{n:021}"), registered=False, count=c, offers={}) for n, c in enumerate(counts)
    ]
    limits = {"num_1": SenderLimits(per_second=0.25, recipients=250)} if slow else {}
    first, second = (
        walked(LONG, kinds=kinds, rates=rates, limits=limits, seed=seed, definition={"meta": {"evento": "paid"}})
        for _ in range(2)
    )
    assert first.tallies == second.tallies
    assert first.tallies.ends.total() == first.tallies.entered == sum(counts)
    for step in LONG:
        numbers = first.tallies.numbers(step["id"])
        assert numbers.waiting == 0
        if step["tipo"] == "enviar":
            told = numbers.messages()
            assert told["entregues"] + told["falhas"] <= first.tallies.messages[step["id"]]


def test_a_cohort_goes_as_single_ones_do() -> None:
    rates = {Rate.ENTREGUE: 0.9, Rate.FALHA: 0.05, Rate.LIDO: 0.6, Rate.RESPONDEU: 0.2, Rate.CONVERTEU: 0.1}
    single = [
        ContactKind(person(id=f"{CONTACT}{n:021}"), registered=False, count=1, offers={}, shown=True)
        for n in range(4_000)
    ]
    together, alone = walked(LONG, people=4_000, rates=rates), walked(LONG, kinds=single, rates=rates)
    for step in LONG:
        one, other = together.tallies.steps[step["id"]], alone.tallies.steps[step["id"]]
        assert {name: one[name] for name in one | other} == pytest.approx(
            {name: other[name] for name in one | other}, rel=0.1, abs=60
        )
