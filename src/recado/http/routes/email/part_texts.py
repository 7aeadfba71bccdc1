"""Parts of e-mails in bodies: how long they are, and what they use (C10.2)."""

from collections.abc import Callable
from typing import Annotated, Final

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from recado.domain.email.rendering import MIB, MOST_OF, MOST_OPENED, EmailPart, is_too_long


def _checked(part: EmailPart, *, taken_apart: bool = True) -> Callable[[str], str]:
    """`taken_apart`: what stands in braces is looked for."""

    def check(text: str) -> str:
        if is_too_long(part, text):
            most = f"{MOST_OF[part] // 1024:,} KiB"
            raise PydanticCustomError("too_many_bytes", "must be at most {most}", {"most": most})
        if taken_apart and text.count("{{") > MOST_OPENED:
            raise PydanticCustomError(
                "too_many_placeholders", "must not hold {brackets} more than {most} times",
                {"brackets": "{{", "most": f"{MOST_OPENED:,}"},
            )  # fmt: skip
        return text

    return check


ON_ONE_LINE: Final = r"^[^\x00-\x1f\x7f\x85\u2028\u2029]*$"

Subject = Annotated[
    str,
    Field(
        min_length=1, max_length=MOST_OF[EmailPart.SUBJECT], pattern=ON_ONE_LINE, description="Without line breaks.",
        examples=["Your order {{order}}"],
    ),
]  # fmt: skip
Html = Annotated[str, Field(min_length=1, max_length=MIB), AfterValidator(_checked(EmailPart.HTML))]
PlainText = Annotated[str, Field(max_length=MOST_OF[EmailPart.TEXT]), AfterValidator(_checked(EmailPart.TEXT))]
GivenHtml = Annotated[
    str, Field(min_length=1, max_length=MIB), AfterValidator(_checked(EmailPart.HTML, taken_apart=False))
]
GivenText = Annotated[
    str, Field(max_length=MOST_OF[EmailPart.TEXT]), AfterValidator(_checked(EmailPart.TEXT, taken_apart=False))
]
"""Of an e-mail that is sent as it is given."""
