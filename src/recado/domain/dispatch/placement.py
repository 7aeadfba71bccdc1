"""Placement: which shard has a sender, and which host has a shard, by rendezvous hashing.

Everybody who knows the same hosts finds the same places, without asking. A host that goes leaves its shards to all
others evenly, and one that comes takes from all evenly; no other shard moves. Hosts are those of the simulated cluster
(decision 0086): the service has one, whose processes share the shards by their numbers (decision 0088).
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

from recado.domain.senders.sender import SenderKey

SHARDS: Final = 256
"""As many as the table `shards` has rows."""
OWNERS_SHARD: Final = 0
"""Never given away: whose it is owns the numbers (C14.5.7)."""

_MASK: Final = (1 << 64) - 1


def shard_of(sender: SenderKey, shards: int = SHARDS) -> int:
    """The shard that has a sender, of so many; the same in every process and version."""
    return _hashed(":".join(sender)) % shards


class Placement:
    """The host of each shard. It depends on the names of the hosts alone, never on the order in which they came.

    `host_of`: by shard; None while there is no host.
    """

    __slots__ = ("_best", "_hosts", "_shards", "host_of")

    def __init__(self, hosts: Iterable[str] = (), shards: int = SHARDS) -> None:
        self._hosts = {name: _hashed(f"host:{name}") for name in hosts}
        self._shards = [_hashed(f"shard:{number}") for number in range(shards)]
        self.host_of: list[str | None] = [None] * shards
        self._best = [-1] * shards  # the weight of the host that has it
        self._place(range(shards))

    @property
    def hosts(self) -> frozenset[str]:
        return frozenset(self._hosts)

    def join(self, host: str) -> list[int]:
        """The shards that move to a host that comes; none where it is known already."""
        if host in self._hosts:
            return []
        seed = self._hosts[host] = _hashed(f"host:{host}")
        moved = []
        for shard, known in enumerate(self._shards):
            weight, holder = _weight(known, seed), self.host_of[shard]
            if holder is None or (weight, host) > (self._best[shard], holder):
                self._best[shard], self.host_of[shard] = weight, host
                moved.append(shard)
        return moved

    def leave(self, host: str) -> list[int]:
        """The shards that a host which goes leaves to others; none where it is unknown."""
        if self._hosts.pop(host, None) is None:
            return []
        left = [shard for shard, holder in enumerate(self.host_of) if holder == host]
        self._place(left)
        return left

    def _place(self, shards: Iterable[int]) -> None:
        hosts = self._hosts.items()
        for shard in shards:
            known = self._shards[shard]
            self._best[shard], self.host_of[shard] = max(
                ((_weight(known, seed), name) for name, seed in hosts), default=(-1, None)
            )


def _hashed(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


def _weight(shard: int, host: int) -> int:
    """How much a shard wants a host: 64 bits, mixed as those of splitmix64."""
    mixed = ((shard ^ host) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return mixed ^ (mixed >> 31)
