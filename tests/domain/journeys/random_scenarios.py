"""Random journeys and random worlds around them, the same for a seed."""

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from tests.domain.journeys.cases import BERLIN, LISBON, LORD_HOWE, SAO_PAULO
from tests.domain.journeys.scenario import Fate, Scenario, Window

ZONES = [SAO_PAULO, LISBON, BERLIN, LORD_HOWE]
SIGNALS = ["entregue", "lido", "clicou", "respondeu", "converteu"]
EVENTS = ["order", "visit", "goal"]
OBSTACLES = ["modelo_indisponivel", "numero_indisponivel", "email_suprimido", "conteudo_invalido"]
# Not long before clocks are changed, in one zone or another.
STARTS = [
    datetime(2018, 11, 1, tzinfo=UTC),
    datetime(2018, 2, 15, tzinfo=UTC),
    datetime(2026, 3, 27, tzinfo=UTC),
    datetime(2026, 10, 1, tzinfo=UTC),
    datetime(2026, 10, 23, tzinfo=UTC),
    datetime(2026, 4, 3, tzinfo=UTC),
]
VALUES: list[Any] = ["Ada", "ada", "d", 10, 9.5, True, "2026-03-28", "2026-03-27T23:30:00+00:00", "", ["VIP", "New"]]
OPERANDS: list[Any] = ["ADA", "D", "vip", 10, 9, True, "2026-03-28", "2026-03-28T12:00:00+00:00"]


class Draw:
    """Draws one scenario."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._drawn = 0

    def scenario(self) -> Scenario:
        random = self._random
        starts = random.choice(STARTS) + timedelta(minutes=random.randrange(5 * 1_440))
        count = random.choices([1, 2, random.randint(3, 16), random.randint(17, 50)], [1, 1, 30, 3])[0]
        names = [f"p{number}" for number in range(count)]
        steps: dict[str, dict[str, Any]] = {}
        for place, name in enumerate(names):
            sends = [other for other, step in steps.items() if step["tipo"] == "enviar"]
            steps[name] = self._step(place, names, sends)
        calls = {name: self._calls() for name, step in steps.items() if step["tipo"] == "webhook"}
        test = self._chance(0.15)
        return Scenario(
            execution=f"exe_{random.randrange(10**9)}",
            starts=starts,
            first=names[0],
            steps=steps,
            zone=random.choice(ZONES),
            contact=self._contact(),
            entry={key: random.choice([each for each in VALUES if not isinstance(each, list)]) for key in ("a", "b")},
            goal="goal" if self._chance(0.5) else None,
            windows=self._windows(),
            cap=(random.randint(1, 3), random.randint(1, 5)) if self._chance(0.4) else None,
            earlier=[starts - self._time(6 * 86_400) for _ in range(random.randint(0, 2))],
            fates={name: self._fate() for name, step in steps.items() if step["tipo"] == "enviar"},
            events=[(self._event(), starts + self._time(9 * 86_400)) for _ in range(random.randint(0, 4))],
            calls=calls,
            failures={name: random.choice([1, 2, 3, 4, 4, 5]) for name in names if self._chance(0.03)},
            inactive=starts + self._time(5 * 86_400) if self._chance(0.2) else None,
            leaves=self._leaves(starts),
            test=test,
            hurried=test and self._chance(0.7),
        )

    def _chance(self, part: float) -> bool:
        return self._random.random() < part

    def _time(self, most: int) -> timedelta:
        """Whole seconds, and microseconds that no other time has."""
        self._drawn += 1
        return timedelta(seconds=self._random.randrange(most), microseconds=self._drawn)

    def _event(self) -> str:
        return self._random.choices(EVENTS, [5, 4, 1])[0]

    def _leaves(self, starts: datetime) -> tuple[str, datetime] | None:
        if not self._chance(0.15):
            return None
        return self._random.choice(["opt_out", "contato_excluido"]), starts + self._time(8 * 86_400)

    def _contact(self) -> dict[str, Any]:
        random = self._random
        found: dict[str, Any] = {"attributes": {key: random.choice(VALUES) for key in ("x", "y")}}
        if self._chance(0.8):
            found["name"] = "Ada"
        if self._chance(0.7):
            found["email"] = "ada@example.com"
        if self._chance(0.05):
            found["phone"] = ""
        if self._chance(0.5):
            found["tags"] = ("VIP", "D")
        return found

    def _windows(self) -> list[Window]:
        found = []
        for _ in range(self._random.choice([0, 0, 1, 2])):
            start = self._random.randrange(96)
            end = (start + self._random.randint(1, 44)) % 96  # not half a day: two never fill a whole one
            texts = [f"{quarter // 4:02}:{quarter % 4 * 15:02}" for quarter in (start, end)]
            found.append(Window(*texts, self._random.choice(ZONES)))
        return found

    def _calls(self) -> list[tuple[int | None, int]]:
        statuses = [200, 204, 500, 503, 429, None, 404, 302]
        weights = [4, 2, 5, 4, 4, 5, 1, 1]
        return [(status, self._random.randint(0, 10)) for status in self._random.choices(statuses, weights, k=4)]

    def _fate(self) -> Fate:
        random = self._random
        kinds = [kind for kind in SIGNALS if kind != "converteu" and self._chance(0.5)]
        usual = self._chance(0.75)
        settled = None if self._chance(0.12) else self._time(60 if usual else 3 * 86_400)
        return Fate(
            obstacle=random.choice(OBSTACLES) if self._chance(0.12) else None,
            ends=random.choices(["accepted", "failed", "expired"], [6, 2, 1])[0],
            queued=self._time(30 if self._chance(0.7) else 2 * 86_400),
            settled=settled,
            signals={kind: self._time(random.choice([300, 86_400])) for kind in kinds},
        )

    def _step(self, place: int, names: list[str], sends: list[str]) -> dict[str, Any]:
        random = self._random
        later = names[place + 1 : place + 3]
        if not later:
            return {"tipo": "fim"}
        exits = [random.choice(later) for _ in range(5)]
        kinds = ["enviar", "minutos", "hora", "sinal", "campo", "dividir", "webhook", "fim"]
        kind = random.choices(kinds, [7, 4, 4, 9, 3, 2, 3, 0.2])[0]
        if kind == "sinal" and not sends:
            kind = "enviar"
        if kind == "enviar":
            return {"tipo": "enviar", "proximo": exits[0], **self._content()}
        if kind == "minutos":
            return {"tipo": "esperar", "minutos": random.choice([1, 30, 60, 1_440, 4_000]), "proximo": exits[0]}
        if kind == "hora":
            hour = f"{random.choice([0, 1, 2, 2, 3, 9, 23]):02}:{random.choice([0, 10, 30, 59]):02}"
            days = {"dias": random.sample(range(1, 8), random.randint(0, 3))} if self._chance(0.7) else {}
            return {"tipo": "esperar", "hora": hour, "proximo": exits[0], **days}
        if kind == "sinal":
            return self._signal_condition(random.choice(sends), exits)
        if kind == "campo":
            field = random.choice(["name", "email", "tags", "attributes.x", "attributes.y", "entrada.a", "entrada.b"])
            operator = random.choice(["igual", "diferente", "contem", "existe", "nao_existe", "maior", "menor"])
            value = {} if "existe" in operator else {"valor": random.choice(OPERANDS)}
            return {"tipo": "condicao", "campo": field, "operador": operator, "sim": exits[0], "nao": exits[1], **value}
        if kind == "dividir":
            branches = [{"nome": f"r{n}", "peso": random.randint(1, 50), "proximo": exits[n]} for n in range(3)]
            return {"tipo": "dividir", "ramos": branches}
        if kind == "webhook":
            failing = {"seFalhar": exits[1]} if self._chance(0.6) else {}
            return {"tipo": "webhook", "webhookId": "wbh_1", "proximo": exits[0], **failing}
        return {"tipo": "fim"}

    def _signal_condition(self, about: str, exits: list[str]) -> dict[str, Any]:
        step: dict[str, Any] = {"tipo": "condicao", "sobre": about, "sinal": self._random.choice(SIGNALS)}
        if step["sinal"] == "converteu":
            step["evento"] = self._random.choice(EVENTS)
        if self._chance(0.7):
            step["janelaMinutos"] = self._random.choice([1, 10, 60, 600, 2_880])
        return {**step, "sim": exits[0], "nao": exits[1]}

    def _content(self) -> dict[str, Any]:
        sources = [
            {"de": "contato", "campo": "name"},
            {"de": "contato", "campo": "name", "padrao": "cliente"},
            {"de": "contato", "campo": "attributes.z", "padrao": "2026-03-28"},
            {"de": "entrada", "campo": "a"},
            {"de": "entrada", "campo": "b", "padrao": "-"},
            {"de": "fixo", "valor": "2026-03-28"},
        ]
        variables = {"variaveis": {str(n): self._random.choice(sources) for n in (1, 2)}}
        kind = self._random.choice(["sms", "chatapp", "email"])
        if kind == "sms":
            return {"canal": "sms", "texto": "Oi {{1}}, {{2}}!", **variables}
        if kind == "chatapp":
            return {"canal": "chatapp", "templateId": "tpl_1", "numberId": "num_1", **variables}
        return {"canal": "email", "templateId": "etpl_1", **variables}
