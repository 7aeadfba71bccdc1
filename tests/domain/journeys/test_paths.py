"""Whole executions: two readings of the rules agree on random journeys, and ninety days take no time."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

from tests.domain.journeys.cases import BERLIN, LISBON, LORD_HOWE, SAO_PAULO
from tests.domain.journeys.interpreter import interpret
from tests.domain.journeys.random_scenarios import Draw
from tests.domain.journeys.scenario import Fate, Scenario, Told, Walked, Window
from tests.domain.journeys.walker import Walker
from tests.examples import examples

from recado.domain.journeys.execution import EndReason, SkipReason, TrailResult

START = datetime(2026, 3, 13, 15, tzinfo=UTC)  # Friday noon in São Paulo
NIGHT = Window("22:00", "08:00", SAO_PAULO)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=SAO_PAULO).astimezone(UTC)


def test_decisions_lead_where_the_contract_leads_at_the_same_times() -> None:
    found: Counter[str] = Counter()
    for seed in range(examples(10_000)):
        scenario = Draw(seed).scenario()
        walked = Walker(scenario).walk()
        assert walked == interpret(scenario), f"seed {seed}: {scenario}"
        found.update(told.result for told in walked.trail)
        found.update(told.said for told in walked.trail if told.result == "pulado")
        found[f"end {walked.reason}"] += 1
    ends = {f"end {reason}" for reason in EndReason if reason not in ("jornada_arquivada", "operador")}
    assert set(TrailResult) | set(SkipReason) | ends <= set(found), "the scenarios must lead everywhere"


NIGHTS = [
    (SAO_PAULO, datetime(2018, 2, 18, tzinfo=UTC)),  # back at midnight
    (SAO_PAULO, datetime(2018, 11, 4, tzinfo=UTC)),  # no midnight
    (LISBON, datetime(2026, 3, 29, tzinfo=UTC)),
    (LISBON, datetime(2026, 10, 25, tzinfo=UTC)),
    (BERLIN, datetime(2026, 3, 29, tzinfo=UTC)),
    (BERLIN, datetime(2026, 10, 25, tzinfo=UTC)),
    (LORD_HOWE, datetime(2026, 4, 5, tzinfo=UTC)),  # by half an hour
    (LORD_HOWE, datetime(2026, 10, 4, tzinfo=UTC)),
]


def test_waits_and_silences_end_as_the_contract_says_around_the_nights_when_clocks_are_changed() -> None:
    for seed in range(examples(3_000)):
        random = Random(seed)
        zone, night = random.choice(NIGHTS)
        around = [(22 + random.randrange(8)) % 24 * 60 + random.randrange(60) for _ in range(3)]
        hour, start, end = (f"{minute // 60:02}:{minute % 60:02}" for minute in around)
        days = {"dias": random.sample(range(1, 8), random.randint(1, 6))} if random.random() < 0.5 else {}
        steps = {
            "espera": {"tipo": "esperar", "hora": hour, "proximo": "envio", **days},
            "envio": {"tipo": "enviar", "canal": "sms", "texto": "Oi", "proximo": "fim"},
            "fim": {"tipo": "fim"},
        }
        starts = night + timedelta(minutes=random.randint(-2 * 1_440, 2 * 1_440), seconds=random.randrange(60))
        windows = [Window(start, end, zone)] if start != end else []
        fates = {"envio": Fate()}
        for first in ("espera", "envio"):
            scenario = Scenario("exe_1", starts, first, steps, zone, {}, windows=windows, fates=fates)
            assert Walker(scenario).walk() == interpret(scenario), f"seed {seed}: {scenario}"


def test_to_look_more_often_changes_nothing() -> None:
    for seed in range(examples(2_000)):
        scenario = Draw(seed).scenario()
        random = Random(seed)
        looks = [scenario.starts + timedelta(seconds=random.uniform(0, 20 * 86_400)) for _ in range(50)]
        assert Walker(scenario, looks).walk() == Walker(scenario).walk(), f"seed {seed}: {scenario}"


WEEKS = 12
"""Of a journey of 49 steps: a wait, a send and its condition, another send, and so again."""


def weekly(**changes: object) -> Scenario:
    steps: dict[str, dict[str, object]] = {}
    for week in range(WEEKS):
        following = f"espera{week + 1}" if week < WEEKS - 1 else "fim"
        steps[f"espera{week}"] = {"tipo": "esperar", "dias": [1], "hora": "07:30", "proximo": f"lembrete{week}"}
        steps[f"lembrete{week}"] = {
            "tipo": "enviar", "canal": "chatapp", "templateId": "tpl_1", "numberId": "num_1", "proximo": f"leu{week}",
        }  # fmt: skip
        steps[f"leu{week}"] = {
            "tipo": "condicao", "sobre": f"lembrete{week}", "sinal": "lido", "janelaMinutos": 2_880,
            "sim": following, "nao": f"reforco{week}",
        }  # fmt: skip
        steps[f"reforco{week}"] = {"tipo": "enviar", "canal": "sms", "texto": "Ainda aí?", "proximo": following}
    steps["fim"] = {"tipo": "fim"}
    fates = {name: Fate() for name in steps if name.startswith(("lembrete", "reforco"))}
    fates["lembrete3"] = Fate(signals={"lido": timedelta(hours=5)})
    usual = Scenario("exe_1", START, "espera0", steps, SAO_PAULO, {}, windows=[NIGHT], fates=fates)
    return replace(usual, **changes)  # type: ignore[arg-type]


def test_twelve_weeks_pass_in_as_many_decisions_as_there_is_something_to_decide() -> None:
    walker = Walker(weekly())
    walked = walker.walk()
    assert walked.trail[:4] == [
        Told("espera0", "esperou", at("2026-03-16T07:30")),
        Told("lembrete0", "enviado", at("2026-03-16T08:00"), "{}"),  # when the silence was over
        Told("leu0", "nao", at("2026-03-18T08:00")),
        Told("reforco0", "enviado", at("2026-03-18T08:00"), "Ainda aí?"),
    ]
    third = [told for told in walked.trail if told.step.endswith("3")]
    assert third == [
        Told("espera3", "esperou", at("2026-04-06T07:30")),
        Told("lembrete3", "enviado", at("2026-04-06T08:00"), "{}"),
        Told("leu3", "sim", at("2026-04-06T13:00")),
    ]
    assert (walked.status, walked.reason, walked.at) == ("concluida", "fim", at("2026-06-03T08:00"))
    assert len(walked.trail) == 4 * WEEKS - 1 + 1
    assert walker.decisions < 8 * WEEKS


def test_a_journey_may_last_ninety_days_in_one_wait() -> None:
    steps = {"espera": {"tipo": "esperar", "minutos": 129_600, "proximo": "fim"}, "fim": {"tipo": "fim"}}
    walker = Walker(Scenario("exe_1", START, "espera", steps, SAO_PAULO, {}))
    end = START + timedelta(days=90)
    told = [Told("espera", "esperou", end), Told("fim", "fim", end)]
    assert walker.walk() == Walked(told, "concluida", "fim", end)
    assert walker.decisions == 3


def test_a_test_of_twelve_weeks_takes_minutes() -> None:
    walked = Walker(weekly(test=True, hurried=True)).walk()
    assert [told.step for told in walked.trail if told.result == "enviado"] == [
        f"{kind}{week}" for week in range(WEEKS) for kind in ("lembrete", "reforco")
    ]  # the answer of five hours later comes too late for a window of a minute
    assert walked.at == START + WEEKS * timedelta(seconds=61)
