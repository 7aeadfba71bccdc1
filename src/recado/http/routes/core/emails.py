"""E-mail addresses in bodies and queries."""

from typing import Annotated

from pydantic import Field

from recado.domain.contacts.contact import MOST_EMAIL

# In the spelling given; compared without case.
Email = Annotated[str, Field(max_length=MOST_EMAIL, pattern=r"^[^@\s]+@[^@\s]+$", examples=["ana@example.com"])]
