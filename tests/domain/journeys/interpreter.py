"""A second reading of the rules of journeys, which shares no code with the first: a plain loop over what callers wrote.

It knows the whole scenario beforehand, so that it computes when each step is over instead of waiting for anything.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from typing import Any
from zoneinfo import ZoneInfo

from tests.domain.journeys.scenario import Scenario, Told, Walked

PAUSES = [5, 30, 120, 600]
CALL_PAUSES = [10, 60, 300]
DAY = timedelta(days=1)


def interpret(scenario: Scenario) -> Walked:
    """The path that the rules prescribe."""
    outside = ends_outside(scenario)
    trail: list[Told] = []
    passed: dict[str, tuple[str, datetime]] = {}
    now, name = scenario.starts, scenario.first
    while True:
        failures = scenario.failures.get(name, 0)
        begun = now + timedelta(seconds=sum(PAUSES[:failures]))
        if failures >= 5:
            told, following = Told(name, "erro", begun, "falha_interna"), None
        else:
            told, following = one_step(scenario, name, now, begun, passed)
        if outside is not None and outside[1] <= told.at:
            status = "concluida" if outside[0] == "meta_atingida" else "cancelada"
            return Walked(trail, status, *outside)
        if told.result == "erro":
            return Walked([*trail, Told(name, "erro", told.at)], "erro", told.said, told.at)
        trail.append(told)
        if following is None:
            return Walked(trail, "concluida", "fim", told.at)
        if scenario.steps[name]["tipo"] == "enviar":
            passed[name] = (told.result, told.at)
        now, name = told.at, following


def ends_outside(scenario: Scenario) -> tuple[str, datetime] | None:
    """What ends the execution wherever it stands, and when."""
    ends = [("meta_atingida", at) for name, at in scenario.events if name == scenario.goal and at >= scenario.starts]
    if scenario.leaves is not None:
        ends.append(scenario.leaves)
    return min(ends, key=lambda end: end[1], default=None)


def one_step(
    scenario: Scenario, name: str, arrived: datetime, now: datetime, passed: dict[str, tuple[str, datetime]]
) -> tuple[Told, str | None]:
    """How and when the step is over that the execution came to at `arrived` and may begin `now`; and what follows."""
    step = scenario.steps[name]
    kind = step["tipo"]
    if kind == "fim":
        return Told(name, "fim", now), None
    if kind == "dividir":
        drawn = int(sha256(f"{scenario.execution}:{name}".encode()).hexdigest()[:16], 16)
        tickets = [branch for branch in step["ramos"] for _ in range(branch["peso"])]
        branch = tickets[drawn % len(tickets)]
        return Told(name, branch["nome"], now), branch["proximo"]
    if kind == "esperar":
        return Told(name, "esperou", max(now, waited(scenario, step, arrived))), step["proximo"]
    if kind == "webhook":
        return called(scenario, name, now)
    if kind == "enviar":
        return sent(scenario, name, now, passed), step["proximo"]
    if "campo" in step:
        answer = "sim" if compares(scenario, step) else "nao"
        return Told(name, answer, now), step[answer]
    answer, at = signalled(scenario, step, now, passed)
    return Told(name, answer, at, "envio_indeterminado" if answer == "erro" else ""), step.get(answer)


# Waits --------------------------------------------------------------------------------------------------------------


def waited(scenario: Scenario, step: Mapping[str, Any], arrived: datetime) -> datetime:
    if "minutos" in step:
        end = arrived + timedelta(minutes=step["minutos"])
    else:
        hours, minutes = map(int, step["hora"].split(":"))
        today = wall(scenario.zone, arrived).date()
        ends = []
        for ahead in range(-1, 10):
            day = today + ahead * DAY
            if not step.get("dias") or day.isoweekday() in step["dias"]:
                begins = when(scenario.zone, datetime(day.year, day.month, day.day, hours, minutes))
                if begins + timedelta(minutes=1) > arrived:
                    ends.append(max(begins, arrived))
        end = min(ends)
    return min(end, arrived + timedelta(seconds=1)) if scenario.hurried else end


def wall(zone: ZoneInfo, at: datetime) -> datetime:
    """What the clock shows, without a zone."""
    return at.astimezone(zone).replace(tzinfo=None)


def when(zone: ZoneInfo, shown: datetime) -> datetime:
    """When the clock first shows this: tried with the offsets of the day before and of the day after."""
    apart = shown.replace(tzinfo=UTC)
    offsets = {wall(zone, apart + days) - (shown + days) for days in (-DAY, DAY)}
    found = [apart - offset for offset in offsets if wall(zone, apart - offset) == shown]
    return min(found) if found else when(zone, shown + timedelta(hours=1))


# Webhooks -----------------------------------------------------------------------------------------------------------


def called(scenario: Scenario, name: str, now: datetime) -> tuple[Told, str]:
    step = scenario.steps[name]
    failed = step.get("seFalhar", step["proximo"])
    for attempt, (status, seconds) in enumerate(scenario.calls[name][:4]):
        if scenario.inactive is not None and now >= scenario.inactive:
            break
        now += timedelta(seconds=seconds)
        if status is not None and status // 100 == 2:
            return Told(name, "webhook_ok", now), step["proximo"]
        if status is not None and status != 429 and status // 100 != 5:
            break
        if attempt < 3:
            now += timedelta(seconds=CALL_PAUSES[attempt])
    return Told(name, "webhook_falhou", now), failed


# Sends --------------------------------------------------------------------------------------------------------------


def sent(scenario: Scenario, name: str, now: datetime, passed: dict[str, tuple[str, datetime]]) -> Told:
    step = scenario.steps[name]
    quarter = timedelta(minutes=15)
    while not scenario.test and any(quiet(each.start, each.end, wall(each.zone, now)) for each in scenario.windows):
        now += quarter - (now - datetime(2000, 1, 1, tzinfo=UTC)) % quarter
    address = "email" if step["canal"] == "email" else "phone"
    if not scenario.contact.get(address, "+5511987654321" if address == "phone" else None):
        return Told(name, "pulado", now, "sem_email" if address == "email" else "sem_telefone")
    if scenario.fates[name].obstacle is not None:
        return Told(name, "pulado", now, scenario.fates[name].obstacle)
    if scenario.cap is not None and not scenario.test:
        most, days = scenario.cap
        counted = [at for at in scenario.earlier if at > now - days * DAY]
        for other, (result, at) in passed.items():
            fate = scenario.fates[other]
            never_left = fate.ends == "expired" and at + fate.queued <= now
            if result == "enviado" and not never_left and at > now - days * DAY:
                counted.append(at)
        if len(counted) >= most:
            return Told(name, "pulado", now, "teto_de_frequencia")
    texts = {}
    for key, source in step.get("variaveis", {}).items():
        text = as_text(scenario, source)
        if not text:
            return Told(name, "pulado", now, "variavel_vazia")
        texts[key] = text
    said = str(texts)
    if step["canal"] == "sms":
        said = step["texto"]
        for key, text in texts.items():
            said = said.replace("{{" + key + "}}", text)
    return Told(name, "enviado", now, said)


def quiet(start: str, end: str, shown: datetime) -> bool:
    now = f"{shown:%H:%M}"
    return start <= now < end if start < end else now >= start or now < end


def as_text(scenario: Scenario, source: Mapping[str, str]) -> str:
    value = source["valor"] if source["de"] == "fixo" else look_up(scenario, source)
    if value is None or value == "":
        value = source.get("padrao", "")
    if isinstance(value, bool):
        return "true" if value else "false"
    found = moment(value, scenario.zone)
    return str(value) if found is None else f"{found.astimezone(scenario.zone):%d/%m/%Y}"


def look_up(scenario: Scenario, source: Mapping[str, str]) -> Any:
    if source["de"] == "entrada":
        return scenario.entry.get(source["campo"])
    return of_contact(scenario, source["campo"])


def of_contact(scenario: Scenario, field: str) -> Any:
    where, _, key = field.partition(".")
    return scenario.contact.get("attributes", {}).get(key) if where == "attributes" else scenario.contact.get(field)


# Conditions ---------------------------------------------------------------------------------------------------------


def moment(value: Any, zone: ZoneInfo) -> datetime | None:
    if not isinstance(value, str) or value[4:5] != "-":
        return None
    if len(value) == 10:
        return when(zone, datetime.combine(date.fromisoformat(value), datetime.min.time()))
    return datetime.fromisoformat(value)


def compares(scenario: Scenario, step: Mapping[str, Any]) -> bool:
    field, operator, value = step["campo"], step["operador"], step.get("valor")
    entry = field.startswith("entrada.")
    held = scenario.entry.get(field.removeprefix("entrada.")) if entry else of_contact(scenario, field)
    missing = held is None or held == "" or held in ([], ())
    if operator in ("existe", "nao_existe"):
        return missing == (operator == "nao_existe")
    if missing:
        return operator == "diferente"
    if operator in ("igual", "diferente"):
        among = held if isinstance(held, list | tuple) else [held]
        return (operator == "igual") == any(alike(each, value) for each in among)
    if operator == "contem":
        if isinstance(held, list | tuple):
            return any(alike(each, value) for each in held)
        return isinstance(held, str) and isinstance(value, str) and value.lower() in held.lower()
    greater, less = (held, value) if operator == "maior" else (value, held)
    if type(held) in (int, float) and type(value) in (int, float):
        return bool(greater > less)
    first, second = moment(greater, scenario.zone), moment(less, scenario.zone)
    return first is not None and second is not None and first > second


def alike(one: Any, other: Any) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        return one.lower() == other.lower()
    numbers = type(one) in (int, float) and type(other) in (int, float)
    return (numbers or type(one) is type(other)) and one == other


def signalled(
    scenario: Scenario, step: Mapping[str, Any], now: datetime, passed: dict[str, tuple[str, datetime]]
) -> tuple[str, datetime]:
    """The answer, or `erro`, and the moment at which it is certain."""
    if step["sobre"] not in passed:
        return "nao", now
    result, at = passed[step["sobre"]]
    fate = scenario.fates[step["sobre"]]
    window = timedelta(minutes=step.get("janelaMinutos", 1440))
    if scenario.hurried:
        window = min(window, timedelta(seconds=60))
    converts = step["sinal"] == "converteu"
    left = result == "enviado" and fate.ends != "expired"
    since = at + fate.queued if result == "enviado" else at
    end = since + window
    signals = [since + after for kind, after in fate.signals.items() if left and kind == step["sinal"]]
    if converts:
        event = step.get("evento", scenario.goal)
        signals = [each for name, each in scenario.events if name == event and each >= since]
    signal = min([each for each in signals if each <= end], default=None)
    settled = since if not left else None if fate.settled is None else since + fate.settled
    never_arrives = settled is not None and (not left or fate.ends == "failed")
    if never_arrives and not converts and (signal is None or max(now, settled) < max(now, signal)):
        # Unless nobody heard of the failure before the condition had given up.
        gives_up = max(now, end + DAY)
        return ("nao", max(now, settled)) if settled <= gives_up else ("erro", gives_up)
    if signal is not None:
        return "sim", max(now, signal)
    gives_up = max(now, end + DAY)
    if settled is None or settled > gives_up:
        return "erro", gives_up
    return "nao", max(now, end, settled)
