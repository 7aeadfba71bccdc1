"""Web addresses in bodies."""

from typing import Annotated

from pydantic import AfterValidator, Field

from recado.domain.core.web_addresses import LONGEST_WEB_ADDRESS, is_web_address


def _checked(text: str) -> str:
    if not is_web_address(text):
        raise ValueError("must be an http or https address with a host, and a port up to 65,535 if any")
    return text


# For what has a pattern of its own.
CAN_BE_OPENED = AfterValidator(_checked)

# The pattern stands in the document; what it lets through and no program can open is refused as well.
WebAddress = Annotated[
    str,
    Field(max_length=LONGEST_WEB_ADDRESS, pattern=r"^https?://[^\s/?#]+\S*$", examples=["https://example.com/a"]),
    CAN_BE_OPENED,
]
