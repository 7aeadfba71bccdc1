"""Where people open a chat with a number: an address that the chat app's program, or its page, knows (C29.2)."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

SANDBOX_ADDRESS: Final = "https://chat.sandbox.invalid"  # nobody's: the sandbox has no chats


@dataclass(frozen=True, slots=True)
class ChatAddress:
    """Under `base` each number has an address, by its digits; the text is the parameter `text`."""

    base: str

    def open_chat_url(self, phone: str, text: str) -> str:
        return f"{self.base}/{phone.removeprefix('+')}?text={quote(text, safe='')}"
