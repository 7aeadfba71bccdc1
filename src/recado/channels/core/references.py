"""By what a provider names a message of ours, in a report or where a person's answer quotes it (C29.2)."""

from enum import StrEnum


class NamedBy(StrEnum):
    """An id that does not tell whose message it is: a look-up row is written for it when the message is sent.

    Our id beside an account that is one organization's tells it, and needs none.
    """

    THEIR_ID = "their_id"
    OUR_ID = "our_id"  # with no account, or one that organizations share
