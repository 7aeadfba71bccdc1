"""When somebody who asks is alone, and so keeps nobody waiting: turns are made where several ask (C31)."""

from typing import Final

ALONE_AFTER: Final = 1.0  # seconds in which nobody else asked
