"""What a bridge's answers mean: statuses and bodies to outcome values (C29.3). Pure."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from recado.channels.core import answers
from recado.channels.core.fields import text_or_none
from recado.channels.core.provider import Outcome, Refused
from recado.channels.core.refusals import PROVIDER_CODES, bounded_text, refusal_code
from recado.channels.http.answer import Answer, Lost, NotSent

NOUN = "bridge"


def outcome(
    answer: Answer | NotSent | Lost,
    now: datetime,
    *,
    personal: Callable[[], Sequence[str] | None],
    codes: Collection[str] = PROVIDER_CODES,
) -> Outcome:
    """The outcome of a send. `codes`: of refusals.

    `personal`: values that must not come back in a refusal's text; None: it is not kept.
    """
    return answers.outcome(
        answer,
        now,
        message_id=lambda taken: text_or_none(taken.get("providerMessageId"), 256),
        refused=lambda refusal, _: Refused(*_refusal(refusal, codes, personal())),
    )


def operation_result(
    answer: Answer, *, personal: Sequence[str], codes: Collection[str] = PROVIDER_CODES
) -> Mapping[str, Any]:
    """The body of a successful operation; raises `ProviderError` for every other answer."""
    if answer.ok:
        return answers.body_of(answer, NOUN)
    raise answers.failure(answer.status, *_refusal(answer, codes, personal))


def _refusal(answer: Answer, codes: Collection[str], personal: Sequence[str] | None) -> tuple[str, str]:
    said = answers.said(answer)
    text = said.get("message")
    if personal is None or not isinstance(text, str) or not text.strip():
        text = f"the bridge answered with status {answer.status}"
    return refusal_code(said.get("code"), codes), bounded_text(text, personal or ())
