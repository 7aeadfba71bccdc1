"""A second reading of the rules of journeys, from the contract alone: an execution in a world that is known beforehand.

Nothing here is clever. A local time is found by trying one minute after the other, what a condition sees by asking for
each moment at which it may see something. It shares no code with the service.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from typing import Any
from zoneinfo import ZoneInfo

from tests.domain.journeys.scenario import Fate, Scenario, Told, Walked, Window

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
INTERNAL_PAUSES = (5, 30, 120, 600)  # seconds; the fifth failure ends the execution (C9.12)
CALL_PAUSES = (10, 60, 300)  # seconds, C9.13
UNKNOWN_FOR = DAY  # beyond the window, C9.6.4
HURRIED_WAIT, HURRIED_WINDOW = timedelta(seconds=1), timedelta(seconds=60)  # C9.9
USUAL_WINDOW = 1_440  # minutes
PHONE = "+5511987654321"


def interpret(scenario: Scenario) -> Walked:
    """The whole path: the steps one after the other, cut where the contact leaves or reaches the goal."""
    reading = _Reading(scenario)
    trail, status, reason, at = reading.path()
    for cut, status_then, why in sorted(reading.cuts()):
        if cut <= at:
            return Walked([told for told in trail if told.at < cut], status_then, why, cut)
    return Walked(trail, status, reason, at)


@dataclass(frozen=True)
class _Sent:
    """A send that was passed. `dispatched`: None for what never was; `failed`, `accepted`: when that was known.

    One that was left out failed at once.
    """

    made: datetime
    dispatched: datetime | None = None
    failed: datetime | None = None
    accepted: datetime | None = None
    signals: Mapping[str, datetime] = field(default_factory=dict)


class _Reading:
    def __init__(self, scenario: Scenario) -> None:
        self.world = scenario
        self.sent: dict[str, _Sent] = {}

    def cuts(self) -> Iterator[tuple[datetime, str, str]]:
        """Moments at which the execution ends wherever it is (C9.12)."""
        if self.world.leaves is not None:
            reason, at = self.world.leaves
            yield max(at, self.world.starts), "cancelada", reason
        for name, at in self.world.events:
            if name == self.world.goal and at >= self.world.starts:
                yield at, "concluida", "meta_atingida"

    def path(self) -> tuple[list[Told], str, str, datetime]:
        """The path of somebody whom nothing cuts off: trail, state, its reason, and when."""
        trail: list[Told] = []
        name, now = self.world.first, self.world.starts
        while True:
            step = self.world.steps[name]
            failures = self.world.failures.get(name, 0)
            tried = now + timedelta(seconds=sum(INTERNAL_PAUSES[:failures]))
            if failures >= 5:
                return [*trail, Told(name, "erro", tried)], "erro", "falha_interna", tried
            told, following = self.pass_step(name, step, now, tried)
            trail.append(told)
            now = told.at
            if told.result == "erro":
                return trail, "erro", "envio_indeterminado", now
            if following is None:
                return trail, "concluida", "fim", now
            name = following

    def pass_step(
        self, name: str, step: Mapping[str, Any], arrived: datetime, now: datetime
    ) -> tuple[Told, str | None]:
        """`arrived`: when the execution came to the step; `now`: when it was first looked at without a failure."""
        match step["tipo"]:
            case "enviar":
                return self.send(name, step, now), step["proximo"]
            case "esperar":
                return Told(name, "esperou", max(now, self.wait_ends(step, arrived))), step["proximo"]
            case "condicao" if "campo" in step:
                answer = "sim" if self.holds(step) else "nao"
                return Told(name, answer, now), step[answer]
            case "condicao":
                answer, at = self.signal(step, now)
                return Told(name, answer, at), step.get(answer)
            case "dividir":
                branch = self.branch(name, step["ramos"])
                return Told(name, branch["nome"], now), branch["proximo"]
            case "webhook":
                answer, at = self.call(name, now)
                failed = step.get("seFalhar", step["proximo"])
                return Told(name, answer, at), step["proximo"] if answer == "webhook_ok" else failed
        return Told(name, "fim", now), None

    # Waits (C9.4.1) -------------------------------------------------------------------------------------------------

    def wait_ends(self, step: Mapping[str, Any], arrived: datetime) -> datetime:
        if "minutos" in step:
            end = arrived + step["minutos"] * MINUTE
        else:
            end = next_local(step["hora"], step.get("dias") or range(1, 8), self.world.zone, arrived)
        end = min(end, arrived + 90 * DAY)
        return min(end, arrived + HURRIED_WAIT) if self.world.hurried else end

    # Splits (C9.4.2) ------------------------------------------------------------------------------------------------

    def branch(self, name: str, branches: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        number = int(sha256(f"{self.world.execution}:{name}".encode()).hexdigest()[:16], 16)
        places = [branch for branch in branches for _ in range(branch["peso"])]
        return places[number % len(places)]

    # Calls (C9.13) --------------------------------------------------------------------------------------------------

    def call(self, name: str, at: datetime) -> tuple[str, datetime]:
        for attempt, (status, seconds) in enumerate(self.world.calls[name][:4]):
            if self.world.inactive is not None and at >= self.world.inactive:
                break
            at += timedelta(seconds=seconds)
            if status is not None and 200 <= status < 300:
                return "webhook_ok", at
            if not (status is None or status == 429 or status >= 500) or attempt == 3:
                break
            at += timedelta(seconds=CALL_PAUSES[attempt])
        return "webhook_falhou", at

    # Sends (C9.5, C9.8) ---------------------------------------------------------------------------------------------

    def send(self, name: str, step: Mapping[str, Any], now: datetime) -> Told:
        world, fate = self.world, self.world.fates[name]
        at = now if world.test else after_quiet(world.windows, now)
        texts = {key: self.text(source) for key, source in step.get("variaveis", {}).items()}
        if step["canal"] == "chatapp":
            texts = {key: text.replace("\r\n", " ").replace("\n", " ") for key, text in texts.items()}
        # The contract has no order among the reasons: whoever has no address cannot be written to, whatever else holds.
        missing = {"email": "email"}.get(step["canal"], "phone")
        skipped = None
        if not self.contact_value(missing):
            skipped = "sem_email" if missing == "email" else "sem_telefone"
        elif fate.obstacle is not None:
            skipped = fate.obstacle
        elif not world.test and world.cap is not None and self.made_within(at, world.cap[1]) >= world.cap[0]:
            skipped = "teto_de_frequencia"
        elif not all(texts.values()):
            skipped = "variavel_vazia"
        if skipped is not None:
            self.sent[name] = _Sent(at, failed=at)
            return Told(name, "pulado", at, skipped)
        self.sent[name] = became(fate, at)
        said = step.get("texto", str(texts)) if step["canal"] == "sms" else str(texts)
        for key, text in texts.items() if step["canal"] == "sms" else ():
            said = said.replace("{{" + key + "}}", text)
        return Told(name, "enviado", at, said)

    def made_within(self, now: datetime, days: int) -> int:
        """Messages of any journey to the contact, but for those of which it is known that they never left (C9.8.2)."""
        mine = [each.made for each in self.sent.values() if each.failed is None or each.failed > now]
        return sum(now - days * DAY < at <= now for at in (*mine, *self.world.earlier))

    def text(self, source: Mapping[str, Any]) -> str:
        match source["de"]:
            case "fixo":
                value = source["valor"]
            case "contato":
                value = self.contact_value(source["campo"])
            case _:
                value = self.world.entry.get(source["campo"])
        found = self.written(value)
        return found or self.written(source.get("padrao"))

    def written(self, value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, (list, tuple)):
            return ", ".join(value)[:1_024]
        text = str(value)
        moment = as_date(value, None)
        if moment is not None:
            local = moment.astimezone(self.world.zone) if moment.tzinfo is not None else moment
            return f"{local.day:02}/{local.month:02}/{local.year:04}"
        return text[:1_024]

    # Field conditions (C9.4.3) --------------------------------------------------------------------------------------

    def contact_value(self, name: str) -> Any:
        if name.startswith("attributes."):
            return self.world.contact.get("attributes", {}).get(name.removeprefix("attributes."))
        if name == "phone":
            return self.world.contact.get("phone", PHONE)
        return self.world.contact.get(name)

    def holds(self, step: Mapping[str, Any]) -> bool:
        name, operator, wanted = step["campo"], step["operador"], step.get("valor")
        if name.startswith("entrada."):
            value = self.world.entry.get(name.removeprefix("entrada."))
        else:
            value = self.contact_value(name)
        if value is None or value in ("", [], ()):
            return operator in ("nao_existe", "diferente")
        values = value if isinstance(value, (list, tuple)) else None
        equal = any(same(each, wanted) for each in values) if values is not None else same(value, wanted)
        match operator:
            case "existe":
                return True
            case "nao_existe":
                return False
            case "igual":
                return equal
            case "diferente":
                return not equal
            case "contem" if values is not None:
                return equal
            case "contem":
                return isinstance(value, str) and isinstance(wanted, str) and wanted.lower() in value.lower()
        if is_number(value) and is_number(wanted):
            return bool(value > wanted if operator == "maior" else value < wanted)
        mine, theirs = as_date(value, self.world.zone), as_date(wanted, self.world.zone)
        if mine is None or theirs is None:
            return False
        return mine > theirs if operator == "maior" else mine < theirs

    # Signals (C9.6) -------------------------------------------------------------------------------------------------

    def signal(self, step: Mapping[str, Any], now: datetime) -> tuple[str, datetime]:
        """The answer, `erro` for none, and when it is given."""
        sent = self.sent.get(step["sobre"])
        if sent is None:
            return "nao", now  # never passed
        window = step.get("janelaMinutos", USUAL_WINDOW) * MINUTE
        if self.world.hurried:
            window = min(window, HURRIED_WINDOW)
        converts = step["sinal"] == "converteu"
        since = sent.dispatched or sent.failed
        assert since is not None
        ends = since + window
        ways: list[tuple[datetime, int, str]] = []  # when each answer could be given: what was seen goes before all
        hits = [at for at in self.seen(step, sent) if since <= at <= ends]
        if hits:
            ways.append((max(now, min(hits)), 0, "sim"))
        if sent.failed is not None:
            ways.append((max(now, sent.failed, *([ends] if converts else [])), 1, "nao"))
        if sent.accepted is not None:
            ways.append((max(now, sent.accepted, ends), 1, "nao"))
        ways.append((max(now, ends + UNKNOWN_FOR), 2, "erro"))
        at, _, answer = min(ways)
        return answer, at

    def seen(self, step: Mapping[str, Any], sent: _Sent) -> list[datetime]:
        if step["sinal"] != "converteu":
            found = sent.signals.get(step["sinal"])
            return [] if found is None else [found]
        wanted = step.get("evento", self.world.goal)
        return [at for name, at in self.world.events if name == wanted]


def became(fate: Fate, made: datetime) -> _Sent:
    if fate.ends == "expired":
        return _Sent(made, failed=made + fate.queued)
    dispatched = made + fate.queued
    signals = {kind: dispatched + after for kind, after in fate.signals.items()}
    known = None if fate.settled is None or fate.ends == "unknown" else dispatched + fate.settled
    if fate.ends == "failed":
        return _Sent(made, dispatched, failed=known, signals=signals)
    return _Sent(made, dispatched, accepted=known, signals=signals)


# Clocks ---------------------------------------------------------------------------------------------------------------


def next_local(hour: str, days: Sequence[int], zone: ZoneInfo, since: datetime) -> datetime:
    """The next minute that is `hour` on the clock of the zone on one of these weekdays; `since` where it is within one.

    Looks for it among all the minutes of each day: the first that shows the time, or the one an hour later where the
    day has none.
    """
    minute = since.astimezone(UTC).replace(second=0, microsecond=0)
    first = since.astimezone(zone).date()
    for day in (first + timedelta(days=number) for number in range(16)):
        if day.isoweekday() in days:
            found = minute_of(day, hour, zone)
            if found == minute:
                return since
            if found > minute:
                return found
    raise AssertionError("each week has these days")


def minute_of(day: date, hour: str, zone: ZoneInfo) -> datetime:
    shown = minutes_around(day, zone)
    wanted = datetime.fromisoformat(f"{day.isoformat()}T{hour}")
    while (wanted.date(), f"{wanted:%H:%M}") not in shown:
        wanted += timedelta(hours=1)
    return shown[wanted.date(), f"{wanted:%H:%M}"]


@lru_cache(maxsize=512)
def minutes_around(day: date, zone: ZoneInfo) -> Mapping[tuple[date, str], datetime]:
    """The first moment of each minute that a clock there shows on that day."""
    begin = datetime(day.year, day.month, day.day, tzinfo=UTC) - timedelta(hours=15)  # before the day begins anywhere
    shown: dict[tuple[date, str], datetime] = {}
    for number in range(60 * 44):
        moment = begin + number * MINUTE
        local = moment.astimezone(zone)
        shown.setdefault((local.date(), f"{local:%H:%M}"), moment)
    return shown


def after_quiet(windows: Sequence[Window], at: datetime) -> datetime:
    """The first minute from `at` on that is in no window; `at` itself where that is."""
    while any(is_quiet(window, at) for window in windows):
        at = at.replace(second=0, microsecond=0) + MINUTE
    return at


def is_quiet(window: Window, at: datetime) -> bool:
    shown = f"{at.astimezone(window.zone):%H:%M}"
    if window.start < window.end:
        return window.start <= shown < window.end
    return shown >= window.start or shown < window.end


# Values ---------------------------------------------------------------------------------------------------------------


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def same(value: Any, wanted: Any) -> bool:
    if is_number(value) and is_number(wanted):
        return bool(value == wanted)
    if isinstance(value, bool) and isinstance(wanted, bool):
        return value is wanted
    return isinstance(value, str) and isinstance(wanted, str) and value.lower() == wanted.lower()


def as_date(value: Any, zone: ZoneInfo | None) -> datetime | None:
    """An ISO date, with a time or without. One without an offset is of the zone, where one is given."""
    if not isinstance(value, str) or len(value) < 10 or value[4:5] != "-" or value[7:8] != "-":
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    return found if found.tzinfo is not None or zone is None else found.replace(tzinfo=zone)
