"""Whether a provider that refuses a template holds it already, from a submission whose answer was lost (C11.3)."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from recado.channels.core.adapters import TemplateReviewer
from recado.channels.core.errors import ProviderError
from recado.channels.core.events import VERDICTS, Followup, TemplateVerdict
from recado.channels.core.provider import Account, ProviderTemplate, Submission, TemplateSubmission

_WORDED_THERE: Final = "authentication"


async def there_already(
    provider: TemplateReviewer, account: Account, wanted: TemplateSubmission, now: datetime
) -> Submission | None:
    """The submission as it would have been answered; None where the provider holds no such template, or cannot say.

    Templates that the provider words itself are not told apart, and so are never found.
    """
    if wanted.category == _WORDED_THERE:
        return None
    try:
        listed = await provider.list_templates(account)
    except ProviderError:
        return None
    for held in listed:
        if (held.name, held.language) == (wanted.name, wanted.language) and same_content(
            held.components, wanted.components
        ):
            return Submission(held.provider_template_id, _verdict(held, now))
    return None


def same_content(one: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]) -> bool:
    """Whether both show a person the same; examples are for the reviewer only."""
    return [_shown(component) for component in one] == [_shown(component) for component in other]


def _verdict(held: ProviderTemplate, now: datetime) -> tuple[Followup, ...]:
    if held.status not in VERDICTS:
        return ()
    event = TemplateVerdict(
        held.status,
        now,
        held.provider_template_id,
        category=held.category,
        reason=held.rejection_reason,
    )
    return (Followup(0.0, event),)


def _shown(component: Mapping[str, Any]) -> dict[str, Any]:
    payload = component.get("payload")
    fields = payload if isinstance(payload, Mapping) else {}
    shown = {name: value for name, value in fields.items() if name not in ("example", "buttons", "format") and value}
    kind = str(component.get("type", "")).upper()
    buttons = fields.get("buttons")
    if isinstance(buttons, Sequence):
        shown["buttons"] = [_button(each) for each in buttons if isinstance(each, Mapping)]
    if kind == "HEADER":
        shown["format"] = str(fields.get("format", "TEXT")).upper()
    return {"type": kind, **shown}


def _button(button: Mapping[str, Any]) -> dict[str, Any]:
    shown = {name: value for name, value in button.items() if name not in ("example", "type") and value}
    return {"type": str(button.get("type", "")).upper(), **shown}
