"""The open files that the system allows this process, and who has how many of them: a flood of connections takes none
from the database and from calls (C31).
"""

import resource
from typing import Final, NamedTuple, Self

WANTED: Final = 65_536
LARGEST_RESERVE: Final = 8_192
OUTBOUND: Final = 4_000  # calls in flight of a provider's account
_OURS: Final = 256  # the database, uploads, processes that read bodies, logs


class Descriptors(NamedTuple):
    """`inbound`: connections that clients may have; `outbound`: those to a provider."""

    inbound: int
    outbound: int

    @classmethod
    def of(cls, limit: int) -> Self:
        """Share `limit`: half of it, but no more than 8,192, is kept from clients."""
        reserve = min(limit // 2, LARGEST_RESERVE)
        return cls(limit - reserve, min(OUTBOUND, max(16, (reserve - _OURS) // 2)))

    @classmethod
    def allowed(cls) -> Self:
        """Raise the limit of this process as far as it may, and share what it is."""
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        limit = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        return cls.of(limit)
