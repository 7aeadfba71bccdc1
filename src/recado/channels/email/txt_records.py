"""What a name server says under a name: its TXT records, asked for over UDP.

One question, one datagram: whatever a name server sends, what is read of it is bounded.
"""

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Final

import dns.asyncquery
import dns.exception
import dns.message
import dns.rcode
import dns.rdatatype
import dns.resolver

from recado.channels.core.errors import ProviderError
from recado.channels.http.outbound_guard import Turn

ANSWER_BYTES: Final = 1_232  # of a datagram that no network cuts up
EACH_SECONDS: Final = 2.0  # for one name server
MOST_SERVERS: Final = 3
_TOLD = (dns.rcode.NOERROR, dns.rcode.NXDOMAIN)


class TxtRecords:
    """Asks the name servers of the machine. `turn`: shares the questions among organizations.

    `servers`, `port`: others to ask. Those of the machine are read with the first question.
    """

    def __init__(self, *, turn: Turn | None = None, servers: Sequence[str] = (), port: int = 53) -> None:
        self._turn: Turn = turn or (lambda _: nullcontext())
        self._servers = tuple(servers)
        self._port = port

    async def texts(self, name: str, owner: str) -> list[str]:
        """The texts under a name; of a truncated answer, what came. Raises `ProviderError` when nobody answers."""
        question = dns.message.make_query(name, dns.rdatatype.TXT, use_edns=0, payload=ANSWER_BYTES)
        async with self._turn(owner):
            for server in self._servers or await asyncio.to_thread(_servers_of_the_machine):
                answer = await self._ask(question, server)
                if answer is not None and answer.rcode() in _TOLD:
                    return _texts(answer)
        raise ProviderError("unreachable", "dns_unavailable", "no name server answered")

    async def _ask(self, question: dns.message.Message, server: str) -> dns.message.Message | None:
        try:
            return await dns.asyncquery.udp(
                question, server, timeout=EACH_SECONDS, port=self._port, ignore_unexpected=True, ignore_trailing=True,
            )  # fmt: skip
        except (dns.exception.DNSException, OSError, ValueError):
            return None


def _servers_of_the_machine() -> tuple[str, ...]:
    try:
        servers = dns.resolver.Resolver().nameservers
    except (dns.exception.DNSException, OSError):
        return ()
    return tuple(str(server) for server in servers[:MOST_SERVERS])


def _texts(answer: dns.message.Message) -> list[str]:
    return [
        b"".join(data.strings).decode("ascii", "replace")
        for rrset in answer.answer
        if rrset.rdtype == dns.rdatatype.TXT
        for data in rrset
    ]
