"""Where what comes back comes from: the adapter of a channel that told it (C29.2, C29.5)."""

from typing import Final, NamedTuple

SANDBOX: Final = "sandbox"
"""The adapter of test, on every channel."""


class Source(NamedTuple):
    """`channel` and `adapter` as in the path of a callback; `env`: whose records it speaks of."""

    channel: str
    adapter: str
    env: str
