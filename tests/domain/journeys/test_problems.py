"""Problems of journeys (C9.14): each code with what produces it, all of them at once, and none where there is none."""

import re
from dataclasses import replace
from typing import Any

import pytest
from tests.domain.journeys.definitions import (
    EMAIL_TEMPLATE,
    NUMBER,
    OTHER_NUMBER,
    REFERENCES,
    SEGMENT,
    TEMPLATE,
    codes,
    document,
    found,
    with_step,
)

from recado.domain.journeys.graph import SIGNALS, StepChannel, StepMode, StepSignal, definition_of
from recado.domain.journeys.problems import JourneyFault, JourneyReferences

NOBODY = {"de": "ninguem", "campo": "name"}

CASES: dict[str, list[tuple[dict[str, Any], list[str]]]] = {
    "SEM_INICIO": [(document(inicio="nowhere"), ["SEM_INICIO"])],
    "PASSO_REPETIDO": [
        (document(passos=[*document()["passos"], {"id": "end", "tipo": "fim"}]), ["PASSO_REPETIDO[end]"]),
    ],
    "PASSO_SEM_SAIDA": [
        (with_step("wait", proximo=None), ["PASSO_SEM_SAIDA[wait]", *(f"PASSO_INALCANCAVEL[{step}]" for step in (
            "sms", "until", "mail", "rcs", "bought", "field"))]),
        (with_step("read", sim=None), ["PASSO_SEM_SAIDA[read]"]),
        (with_step("bought", sim=None), ["PASSO_SEM_SAIDA[bought]"]),
        (with_step("split", ramos=[{"nome": "A", "peso": 1, "proximo": "call"}, {"nome": "B", "peso": 1}]),
         ["PASSO_SEM_SAIDA[split]"]),
    ],
    "DESTINO_INEXISTENTE": [
        (with_step("call", proximo="nowhere"), ["DESTINO_INEXISTENTE[call]"]),
        (with_step("call", seFalhar="nowhere"), ["DESTINO_INEXISTENTE[call]"]),
    ],
    "CICLO": [
        (with_step("call", proximo="wait"), ["CICLO"]),
        (with_step("call", seFalhar="call"), ["CICLO"]),
    ],
    "PASSO_INALCANCAVEL": [
        (document(passos=[*document()["passos"], {"id": "island", "tipo": "fim"}]), ["PASSO_INALCANCAVEL[island]"]),
    ],
    "GATILHO_INCOMPLETO": [
        (document(gatilho={"tipo": "lista"}), ["GATILHO_INCOMPLETO"]),
        (document(gatilho={"tipo": "segmento", "listId": "lst_clients"}), ["GATILHO_INCOMPLETO"]),
        (document(gatilho={"tipo": "evento"}), ["GATILHO_INCOMPLETO"]),
        (document(gatilho={}), ["GATILHO_INCOMPLETO"]),
    ],
    "GATILHO_INEXISTENTE": [
        (document(gatilho={"tipo": "lista", "listId": "lst_gone"}), ["GATILHO_INEXISTENTE"]),
        (document(gatilho={"tipo": "segmento", "segmentId": "seg_gone"}), ["GATILHO_INEXISTENTE"]),
    ],
    "CANAL_AUSENTE": [
        (with_step("sms", canal=None), ["CANAL_AUSENTE[sms]"]),
        (with_step("sms", canal="fax"), ["CANAL_AUSENTE[sms]"]),
    ],
    "MODELO_AUSENTE": [
        (with_step("chat", templateId=None), ["MODELO_AUSENTE[chat]"]),
        (with_step("mail", templateId=None), ["MODELO_AUSENTE[mail]"]),
    ],
    "MODELO_INEXISTENTE": [
        (with_step("chat", templateId="tpl_gone"), ["MODELO_INEXISTENTE[chat]"]),
        (with_step("chat", templateId=EMAIL_TEMPLATE), ["MODELO_INEXISTENTE[chat]"]),
        (with_step("mail", templateId=TEMPLATE), ["MODELO_INEXISTENTE[mail]"]),
    ],
    "MODELO_NAO_APROVADO": [(with_step("chat", templateId="tpl_paused"), ["MODELO_NAO_APROVADO[chat]"])],
    "MODELO_DE_OUTRO_NUMERO": [(with_step("chat", numberId=OTHER_NUMBER), ["MODELO_DE_OUTRO_NUMERO[chat]"])],
    "NUMERO_AUSENTE": [(with_step("chat", numberId=None), ["NUMERO_AUSENTE[chat]"])],
    "NUMERO_INEXISTENTE": [
        (with_step("chat", numberId="num_gone"), ["MODELO_DE_OUTRO_NUMERO[chat]", "NUMERO_INEXISTENTE[chat]"]),
    ],
    "NUMERO_INDISPONIVEL": [
        (with_step("chat", numberId="num_pending"), ["MODELO_DE_OUTRO_NUMERO[chat]", "NUMERO_INDISPONIVEL[chat]"]),
    ],
    "TEXTO_AUSENTE": [(with_step("sms", texto=None), ["TEXTO_AUSENTE[sms]"])],
    "TEXTO_LONGO": [
        (with_step("sms", texto="a" * 1_531), ["TEXTO_LONGO[sms]"]),
        (with_step("sms", texto="ã" * 671), ["TEXTO_LONGO[sms]"]),  # eleven segments
    ],
    "RCS_CONTEUDO_AUSENTE": [
        (with_step("rcs", rcs=None), ["RCS_CONTEUDO_AUSENTE[rcs]"]),
        (with_step("rcs", rcs={"conteudo": {"card": {"title": "News"}}}), ["RCS_CONTEUDO_AUSENTE[rcs]"]),
    ],
    "RCS_CONTEUDO_INVALIDO": [
        (with_step("rcs", rcs=rcs), ["RCS_CONTEUDO_INVALIDO[rcs]"])
        for rcs in (
            {"conteudo": {"text": "a" * 3_073}},
            {"conteudo": {"text": "Hello"}, "rota": "fast"},
            {"conteudo": {"text": "Hello", "card": {"title": "News"}}, "rota": "easy_otp_rcs"},
            {"conteudo": {"text": "Hello"}, "fallback": {}},
            {"conteudo": {"text": "Hello"}, "fallback": {"text": "a" * 1_531}},
            {"conteudo": {"text": "Hello"}, "fallback": {"text": "ã" * 671}},
            {"conteudo": {"text": "Hello", "card": {}}},
            {"conteudo": {"text": "Hello", "card": {"title": "a" * 201}}},
            {"conteudo": {"text": "Hello", "card": {"title": "News", "description": "a" * 2_001}}},
            {"conteudo": {"text": "Hello", "card": {"title": "News", "mediaUrl": "http://example.org/"}}},
            {"conteudo": {"text": "Hello", "card": {"title": "News", "mediaUrl": "https://example..org/"}}},
            {"conteudo": {"text": "Hello", "card": {"title": "News", "suggestions": [
                {"type": "url", "text": "Open", "value": "https://example..org/"}]}}},
            {"conteudo": {"text": "Hello", "card": {"title": "News", "suggestions": [{"type": "buy"}]}}},
            {"conteudo": {"text": "Hello", "card": {"title": "News", "suggestions": 5 * [
                {"type": "dial", "text": "Call", "value": "+5511987654321"}]}}},
        )
    ],
    "VARIAVEL_SEM_MAPA": [
        (with_step("chat", variaveis=None), ["VARIAVEL_SEM_MAPA[chat]"]),
        (with_step("sms", texto="Hello {{1}} and {{other}}"), ["VARIAVEL_SEM_MAPA[sms]"]),
        (with_step("mail", variaveis={"1": {"de": "contato", "campo": "name"}}), ["VARIAVEL_SEM_MAPA[mail]"]),
        (with_step("rcs", rcs={"conteudo": {"text": "a", "card": {"title": "{{1}}"}}}), ["VARIAVEL_SEM_MAPA[rcs]"]),
        (
            with_step("rcs", rcs={"conteudo": {"text": "a", "card": {"title": "b", "suggestions": [
                {"type": "url", "text": "See", "value": "https://example.org/{{1}}"}
            ]}}}),
            ["VARIAVEL_SEM_MAPA[rcs]"],
        ),
        (with_step("rcs", rcs={"conteudo": {"text": "a"}, "fallback": {"text": "{{1}}"}}), ["VARIAVEL_SEM_MAPA[rcs]"]),
    ],
    "VARIAVEL_FONTE_INVALIDA": [
        (with_step("sms", variaveis={"1": source}), ["VARIAVEL_FONTE_INVALIDA[sms]"])
        for source in (
            NOBODY,
            {},
            {"de": "contato"},
            {"de": "contato", "campo": "password"},
            {"de": "contato", "campo": "entrada.order"},
            {"de": "contato", "campo": "attributes.1"},
            {"de": "entrada"},
            {"de": "entrada", "campo": "1 order"},
            {"de": "fixo"},
            {"de": "fixo", "campo": "name"},
            {"de": "fixo", "valor": "a" * 1_025},
            {"de": "contato", "campo": "name", "padrao": "a" * 1_025},
        )
    ],
    "ESPERA_INVALIDA": [
        (with_step("wait", **fields), ["ESPERA_INVALIDA[wait]"])
        for fields in (
            {"minutos": 0},
            {"minutos": 129_601},
            {"minutos": None},
            {"hora": "09:00"},
            {"minutos": None, "dias": [1]},
        )
    ],
    "HORA_INVALIDA": [(with_step("until", hora=hour), ["HORA_INVALIDA[until]"]) for hour in ("24:00", "9:00", "09h")],
    "DIAS_INVALIDOS": [(with_step("until", dias=days), ["DIAS_INVALIDOS[until]"]) for days in ([0], [1, 8])],
    "CONDICAO_SEM_MODO": [
        (with_step("read", sobre=None, sinal=None), ["CONDICAO_SEM_MODO[read]"]),
        (with_step("read", campo="name"), ["CONDICAO_SEM_MODO[read]"]),
        (with_step("field", sinal="lido"), ["CONDICAO_SEM_MODO[field]"]),
    ],
    "SOBRE_INVALIDO": [
        (with_step("read", sobre=None), ["SOBRE_INVALIDO[read]"]),
        (with_step("read", sobre="nowhere"), ["SOBRE_INVALIDO[read]"]),
        (with_step("read", sobre="wait"), ["SOBRE_INVALIDO[read]"]),
        (with_step("bought", sobre="end"), ["SOBRE_INVALIDO[bought]"]),
        (with_step("read", sobre="sms", sinal="entregue"), ["SOBRE_INVALIDO[read]"]),  # it comes later
        (with_step("read", nao="sms", sim="wait"), []),  # both ways lead to the SMS
        (with_step("read", sim="rcs"), ["SOBRE_INVALIDO[bought]"]),  # past the SMS
    ],
    "SINAL_NAO_SUPORTADO": [
        (with_step("read", sinal=None), ["SINAL_NAO_SUPORTADO[read]"]),
        (with_step("read", sinal="sorriu"), ["SINAL_NAO_SUPORTADO[read]"]),
        (with_step("read", sinal="clicou"), ["SINAL_NAO_SUPORTADO[read]"]),
    ],
    "EVENTO_AUSENTE": [(with_step("bought", evento=None), ["EVENTO_AUSENTE[bought]"])],
    "JANELA_INVALIDA": [
        (with_step("read", janelaMinutos=minutes), ["JANELA_INVALIDA[read]"]) for minutes in (0, -1, 129_601)
    ],
    "CAMPO_INVALIDO": [
        (with_step("field", campo=name), ["CAMPO_INVALIDO[field]"])
        for name in (None, "phone", "attributes.", "attributes.1", "entrada", "password")
    ],
    "OPERADOR_INVALIDO": [
        (with_step("field", operador=operator), ["OPERADOR_INVALIDO[field]"]) for operator in (None, "parecido")
    ],
    "VALOR_AUSENTE": [
        (with_step("field", valor=None), ["VALOR_AUSENTE[field]"]),
        (with_step("field", valor=None, operador="existe"), []),
        (with_step("field", valor=None, operador="nao_existe"), []),
        (with_step("field", valor=False), []),
        (with_step("field", valor=0, operador="maior"), []),
    ],
    "RAMOS_INVALIDOS": [
        (with_step("split", ramos=[{"proximo": "call", **branch} for branch in branches]), ["RAMOS_INVALIDOS[split]"])
        for branches in (
            [{"nome": "A", "peso": 1}],
            [{"nome": str(place), "peso": 1} for place in range(11)],
            [{"nome": "A", "peso": 1}, {"nome": "A", "peso": 1}],
            [{"nome": "A", "peso": 1}, {"peso": 1}],
            [{"nome": "A", "peso": 1}, {"nome": "a" * 41, "peso": 1}],
            [{"nome": "A", "peso": 1}, {"nome": "B", "peso": 0}],
            [{"nome": "A", "peso": 1}, {"nome": "B", "peso": 1_001}],
            [{"nome": "A", "peso": 1}, {"nome": "B"}],
        )
    ],
    "WEBHOOK_AUSENTE": [(with_step("call", webhookId=None), ["WEBHOOK_AUSENTE[call]"])],
    "WEBHOOK_INEXISTENTE": [(with_step("call", webhookId="wbh_gone"), ["WEBHOOK_INEXISTENTE[call]"])],
    "WEBHOOK_INATIVO": [
        (with_step("call", webhookId="wbh_paused"), ["WEBHOOK_INATIVO[call]"]),
        (with_step("call", webhookId="wbh_revoked"), ["WEBHOOK_INATIVO[call]"]),
        (with_step("call", webhookId="wbh_failing"), []),
    ],
    "SILENCIO_INVALIDO": [
        (document(silencio=silence), ["SILENCIO_INVALIDO"])
        for silence in (
            {}, {"inicio": "21:00"}, {"inicio": "21:00", "fim": "21:00"}, {"inicio": "25:00", "fim": "08:00"},
        )
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(given, expected, id=f"{code}-{place}")
        for code, cases in CASES.items()
        for place, (given, expected) in enumerate(cases)
    ],
)
def test_a_fault_is_told_by_its_code_and_its_step(given: dict[str, Any], expected: list[str]) -> None:
    assert codes(given) == expected


def test_an_e_mail_needs_a_sender() -> None:
    assert codes(document(), replace(REFERENCES, email_sender=False)) == ["REMETENTE_AUSENTE[mail]"]


def test_every_code_has_a_case() -> None:
    assert set(CASES) | {"REMETENTE_AUSENTE"} == set(JourneyFault)
    assert all(any(code in told for _, expected in cases for told in expected) for code, cases in CASES.items())


@pytest.mark.parametrize(
    "given",
    [
        document(),
        document(gatilho={"tipo": "segmento", "segmentId": SEGMENT}),
        document(gatilho={"tipo": "evento", "nome": "order"}),
        document(gatilho={"tipo": "api"}),
        document(silencio=None, tetoDeFrequencia=None),
        document(inicio="end", passos=[{"id": "end", "tipo": "fim"}]),
        with_step("bought", evento=None) | {"meta": {"evento": "order"}},
        with_step("until", dias=[]),
        with_step("chat", variaveis={"1": {"de": "contato", "campo": "phone"}, "2": {"de": "fixo", "valor": "b"}}),
        with_step("field", campo="entrada.order"),
        # What belongs to another kind or mode is ignored.
        with_step("end", canal="fax", minutos=-1, proximo="nowhere", ramos=[{"peso": 0}], rcs={}, dias=[9]),
        with_step("wait", dias=[9], janelaMinutos=0),
        with_step("sms", templateId="tpl_gone", rcs={"rota": "fast"}),
    ],
)
def test_what_is_well_formed_has_no_problem(given: dict[str, Any]) -> None:
    assert found(given) == []


def test_each_mode_stands_in_the_well_formed_one() -> None:
    modes = [step.modes for step in definition_of(document()).passos]
    assert {mode for (mode,) in modes} == set(StepMode)


@pytest.mark.parametrize("channel", StepChannel)
@pytest.mark.parametrize("signal", StepSignal)
def test_a_signal_is_taken_from_the_channels_that_give_it(channel: StepChannel, signal: StepSignal) -> None:
    watched = {"chatapp": "chat", "sms": "sms", "email": "mail", "rcs": "rcs"}[channel]
    given = with_step("bought", sobre=watched, sinal=signal.value)
    assert codes(given) == ([] if signal in SIGNALS[channel] else ["SINAL_NAO_SUPORTADO[bought]"])


def test_all_problems_are_found_at_once() -> None:
    """A reader mends them in one go, step by step in the order that they were written in."""
    told = codes(
        {
            "gatilho": {"tipo": "lista"},
            "inicio": "a",
            "passos": [
                {"id": "a", "tipo": "enviar", "canal": "chatapp"},
                {"id": "b", "tipo": "esperar", "proximo": "b"},
                {"id": "c", "tipo": "condicao", "sobre": "a", "campo": "name"},
            ],
            "silencio": {},
        },
        JourneyReferences(),
    )
    assert told == [
        "GATILHO_INCOMPLETO", "CICLO", "SILENCIO_INVALIDO",
        "PASSO_SEM_SAIDA[a]", "MODELO_AUSENTE[a]", "NUMERO_AUSENTE[a]",
        "PASSO_INALCANCAVEL[b]", "ESPERA_INVALIDA[b]",
        "PASSO_INALCANCAVEL[c]", "PASSO_SEM_SAIDA[c]", "PASSO_SEM_SAIDA[c]", "CONDICAO_SEM_MODO[c]",
    ]  # fmt: skip


def test_a_problem_is_a_sentence_under_its_code() -> None:
    told = found(with_step("call", proximo="wait", webhookId="wbh_paused"))
    assert told == [
        "CICLO: Estes passos formam um ciclo: wait, sms, until, mail, rcs, bought, field, split, call.",
        "WEBHOOK_INATIVO[call]: A assinatura de webhook wbh_paused está pausada ou revogada.",
    ]
    everything = [problem for cases in CASES.values() for given, _ in cases for problem in found(given)]
    assert all(re.fullmatch(r"[A-Z_]+(\[[A-Za-z0-9_-]{1,40}\])?: [A-ZÉ].*\.", problem) for problem in everything)


def test_what_is_no_id_is_not_repeated() -> None:
    """A caller that put a phone or a name where an id belongs does not find it in an answer (C4.1)."""
    phone = "+55 11 98765-4321"
    given = with_step("chat", templateId=phone, numberId=phone, proximo=phone)
    given["gatilho"] = {"tipo": "lista", "listId": phone}
    assert len(found(given)) > 4
    assert not [problem for problem in found(given) if "98765" in problem]


def test_many_variables_are_told_in_one_sentence() -> None:
    text = "".join(f"{{{{n{place}}}}}" for place in range(30))
    (problem,) = found(with_step("sms", texto=text))
    assert problem.endswith("{{n9}} e mais 20.")


def test_a_template_of_another_number_is_told_beside_its_approval() -> None:
    assert codes(with_step("chat", templateId="tpl_paused", numberId=OTHER_NUMBER)) == [
        "MODELO_NAO_APROVADO[chat]",
        "MODELO_DE_OUTRO_NUMERO[chat]",
    ]
    assert REFERENCES.templates["tpl_paused"].number_id == NUMBER
