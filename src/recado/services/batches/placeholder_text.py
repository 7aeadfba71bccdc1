"""What each recipient of a text with placeholders is told, on any channel whose messages are plain texts (C15.5)."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypedDict

from recado.domain.messages.placeholders import filled, placeholders
from recado.services.batches.channel_batches import Misfit, RecipientContent, RenderedContent

MEMBER: Final = "variables"
MISMATCH: Final = "TEMPLATE_VARS_MISMATCH"

Render = Callable[[str], RenderedContent | Misfit]
"""Makes a message of a whole text: its payload, units and details; it costs some microseconds."""


class TextTerms(TypedDict):
    """The members of `BatchTerms` that say what recipients are told."""

    usual: RecipientContent | Misfit
    member: str | None
    content: Callable[[Any], RecipientContent | Misfit]


def text_terms(text: str, render: Render) -> TextTerms:
    """A text without placeholders is rendered once, and its payload is the batch's own."""
    names = placeholders(text)
    if not names:
        usual = render(text)
        if isinstance(usual, RenderedContent):
            usual = usual._replace(payload=None)
        return TextTerms(usual=usual, member=None, content=lambda given: usual)

    def content(given: Mapping[str, str]) -> RecipientContent | Misfit:
        lacking = next((name for name in names if not given.get(name)), None)
        return _lacks(lacking) if lacking is not None else render(filled(text, given))

    return TextTerms(usual=_lacks(names[0]), member=MEMBER, content=content)


def _lacks(name: str) -> Misfit:
    return Misfit(MISMATCH, f"The text has the placeholder {{{{{name}}}}}, for which `{MEMBER}` has no text.")
