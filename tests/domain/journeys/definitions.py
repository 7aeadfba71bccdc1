"""Documents of journeys: one that is well formed, in which each kind and mode of step stands, and what it refers to."""

from copy import deepcopy
from typing import Any

from recado.domain.journeys.graph import definition_of
from recado.domain.journeys.problems import JourneyReferences, TemplateState, problems
from recado.domain.senders.number import NumberStatus
from recado.domain.webhooks.webhook import SubscriptionStatus

LIST, SEGMENT, WEBHOOK = "lst_clients", "seg_recent", "wbh_erp"
NUMBER, OTHER_NUMBER, TEMPLATE, EMAIL_TEMPLATE = "num_main", "num_other", "tpl_welcome", "etpl_welcome"

REFERENCES = JourneyReferences(
    lists=frozenset({LIST}),
    segments=frozenset({SEGMENT}),
    templates={
        TEMPLATE: TemplateState(NUMBER, approved=True, variables=("1", "2")),
        "tpl_paused": TemplateState(NUMBER, approved=False, variables=()),
    },
    email_templates={EMAIL_TEMPLATE: ("name",)},
    numbers={
        NUMBER: NumberStatus.CONNECTED,
        OTHER_NUMBER: NumberStatus.FLAGGED,
        "num_pending": NumberStatus.PENDING,
    },
    webhooks={
        WEBHOOK: SubscriptionStatus.ACTIVE,
        "wbh_failing": SubscriptionStatus.FAILING,
        "wbh_paused": SubscriptionStatus.PAUSED,
        "wbh_revoked": SubscriptionStatus.REVOKED,
    },
    email_sender=True,
)

_NAME = {"de": "contato", "campo": "name"}

_STEPS: list[dict[str, Any]] = [
    {
        "id": "chat", "tipo": "enviar", "canal": "chatapp", "templateId": TEMPLATE, "numberId": NUMBER,
        "variaveis": {"1": _NAME, "2": {"de": "entrada", "campo": "order", "padrao": "-"}}, "proximo": "read",
    },
    {"id": "read", "tipo": "condicao", "sobre": "chat", "sinal": "lido", "sim": "split", "nao": "wait"},
    {"id": "wait", "tipo": "esperar", "minutos": 60, "proximo": "sms"},
    {
        "id": "sms", "tipo": "enviar", "canal": "sms", "texto": "Hello {{1}}",
        "variaveis": {"1": {"de": "fixo", "valor": "you"}}, "proximo": "until",
    },
    {"id": "until", "tipo": "esperar", "hora": "09:30", "dias": [1, 5], "proximo": "mail"},
    {
        "id": "mail", "tipo": "enviar", "canal": "email", "templateId": EMAIL_TEMPLATE,
        "variaveis": {"name": _NAME}, "proximo": "rcs",
    },
    {
        "id": "rcs", "tipo": "enviar", "canal": "rcs",
        "rcs": {
            "rota": "easy_rcs", "fallback": {"text": "Plain"},
            "conteudo": {
                "text": "Hello",
                "card": {
                    "title": "News", "description": "Long", "mediaUrl": "https://example.org/a.png",
                    "suggestions": [{"type": "reply", "text": "Yes", "value": "yes"}],
                },
            },
        },
        "proximo": "bought",
    },
    {
        "id": "bought", "tipo": "condicao", "sobre": "sms", "sinal": "converteu", "evento": "order", "sim": "end",
        "nao": "field",
    },
    {
        "id": "field", "tipo": "condicao", "campo": "attributes.city", "operador": "igual", "valor": "Recife",
        "sim": "split", "nao": "end",
    },
    {
        "id": "split", "tipo": "dividir",
        "ramos": [{"nome": "A", "peso": 1, "proximo": "call"}, {"nome": "B", "peso": 3, "proximo": "end"}],
    },
    {"id": "call", "tipo": "webhook", "webhookId": WEBHOOK, "proximo": "end", "seFalhar": "end"},
    {"id": "end", "tipo": "fim"},
]  # fmt: skip


def document(**changes: Any) -> dict[str, Any]:
    """A well-formed one, with these members of its own; one that is None is not there."""
    whole = {
        "gatilho": {"tipo": "lista", "listId": LIST},
        "inicio": "chat",
        "passos": deepcopy(_STEPS),
        "silencio": {"inicio": "21:00", "fim": "08:00"},
        "tetoDeFrequencia": {"mensagens": 3, "dias": 7},
        **changes,
    }
    return {name: value for name, value in whole.items() if value is not None}


def with_step(step_id: str, **changes: Any) -> dict[str, Any]:
    """The well-formed one with these fields in a step; one that is None is not there."""
    changed = document()
    for step in changed["passos"]:
        if step["id"] == step_id:
            step.update(changes)
            for name in [name for name, value in step.items() if value is None]:
                del step[name]
    return changed


def found(given: dict[str, Any], references: JourneyReferences = REFERENCES) -> list[str]:
    """The problems of a document."""
    return problems(definition_of(given), references)


def codes(given: dict[str, Any], references: JourneyReferences = REFERENCES) -> list[str]:
    """Its problems without their sentences: `CODE` or `CODE[step]`."""
    return [problem.partition(": ")[0] for problem in found(given, references)]
