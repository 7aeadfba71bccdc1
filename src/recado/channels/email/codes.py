"""What providers of e-mail refuse with, or report, besides the codes of every channel (C10.2.13)."""

from typing import Final

INVALID_ADDRESS: Final = "invalid_address"
MAILBOX_FULL: Final = "mailbox_full"
SUPPRESSED: Final = "suppressed"
CONTENT_REJECTED: Final = "content_rejected"
PROVIDER_ERROR: Final = "provider_error"
