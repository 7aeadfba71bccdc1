"""E-mail as a channel: its name, so far. No message is sent on it yet (C10)."""

from typing import Final

EMAIL: Final = "email"
