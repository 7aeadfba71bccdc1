"""E-mail addresses in bodies and queries."""

from typing import Annotated

from pydantic import Field

from recado.domain.contacts.contact import MOST_EMAIL
from recado.domain.core.mail_domains import ADDRESS_FORM

# In the spelling given; compared without case.
Email = Annotated[str, Field(max_length=MOST_EMAIL, pattern=f"^{ADDRESS_FORM}$", examples=["ana@example.com"])]

# One to look for, or to send nothing more to: also such as no new record takes.
KnownEmail = Annotated[str, Field(max_length=MOST_EMAIL, pattern=r"^[^@\s]+@[^@\s]+$", examples=["ana@example.com"])]
