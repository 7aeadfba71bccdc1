"""A template of e-mails: whether messages are made of it (C10.4)."""

from enum import StrEnum
from typing import Final

MAX_TEMPLATES: Final = 500  # of an environment, archived ones aside


class EmailTemplateStatus(StrEnum):
    """Archived ones stay readable, and nothing is sent with them any more."""

    ACTIVE = "active"
    ARCHIVED = "archived"
