"""What each recipient of a text with placeholders is told, on any channel whose messages are plain texts (C15.5)."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypedDict

from recado.domain.core.errors import field_refused
from recado.domain.messages.placeholders import filled, measures, placeholders
from recado.services.batches.channel_batches import MANY, Misfit, RecipientContent, RenderedContent

MEMBER: Final = "variables"
MISMATCH: Final = "TEMPLATE_VARS_MISMATCH"

LONGEST: Final = 10_000
"""Characters of a text, before and after it is filled: what is longer is read no further."""
IN_A_TURN: Final = 50
"""Recipients: to measure the longest text takes some milliseconds."""
_TOO_LONG: Final = "TEXT_TOO_LONG"

Render = Callable[[str], RenderedContent | Misfit]
"""Makes a message of a whole text: its payload, units and details; it costs some microseconds."""


class TextTerms(TypedDict):
    """The members of `BatchTerms` that say what recipients are told."""

    usual: RecipientContent | Misfit
    member: str | None
    in_a_turn: int
    content: Callable[[Any], RecipientContent | Misfit]


def text_terms(text: str, render: Render) -> TextTerms:
    """A text without placeholders is rendered once, and its payload is the batch's own.

    Problem 422 `TEXT_TOO_LONG` for one that is too long before it is filled: it would be read for each recipient.
    """
    if len(text) > LONGEST:
        raise field_refused(_TOO_LONG, "/text", f"The text must have at most {LONGEST:,} characters.")
    names = placeholders(text)
    if not names:
        usual = render(text)
        if isinstance(usual, RenderedContent):
            usual = usual._replace(payload=None)
        return TextTerms(usual=usual, member=None, in_a_turn=MANY, content=lambda given: usual)

    measured = measures(text)

    def content(given: Mapping[str, str]) -> RecipientContent | Misfit:
        lacking = next((name for name in names if not given.get(name)), None)
        if lacking is not None:
            return _lacks(lacking)
        if measured.filled_length(given) > LONGEST:
            return Misfit(_TOO_LONG, f"With its `{MEMBER}` the text has more than {LONGEST:,} characters.")
        return render(filled(text, given))

    return TextTerms(usual=_lacks(names[0]), member=MEMBER, in_a_turn=IN_A_TURN, content=content)


def _lacks(name: str) -> Misfit:
    return Misfit(MISMATCH, f"The text has the placeholder {{{{{name}}}}}, for which `{MEMBER}` has no text.")
