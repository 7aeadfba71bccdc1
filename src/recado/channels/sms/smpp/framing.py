"""Cuts the stream of a connection into PDUs by the length that each begins with: linear, and bounded in memory."""

from typing import Final

from recado.channels.sms.smpp.pdu import HEADER_LENGTH

LONGEST_PDU: Final = 64 * 1024  # octets


class Framer:
    """Holds what has come of the PDU under way, and no more.

    `broken`: a length came that no PDU has. Where the next one begins nobody knows then: the connection is over.
    """

    def __init__(self, longest: int = LONGEST_PDU) -> None:
        self._longest = longest
        self._rest = bytearray()
        self.broken = False

    def feed(self, data: bytes) -> list[bytes]:
        """The PDUs that are whole by now, each with its header; none once it is broken."""
        if self.broken:
            return []
        rest = self._rest
        if rest:
            if len(rest) + len(data) < self._needed():
                rest += data
                return []
            data = bytes(rest + data)
            rest.clear()
        pdus: list[bytes] = []
        at, end = 0, len(data)
        while end - at >= HEADER_LENGTH:
            length = int.from_bytes(data[at : at + 4], "big")
            if not HEADER_LENGTH <= length <= self._longest:
                self.broken = True
                return pdus
            if end - at < length:
                break
            pdus.append(data[at : at + length])
            at += length
        rest += data[at:]
        return pdus

    def _needed(self) -> int:
        """How much there must be before anything can be whole, or wrong; what is kept has been looked at."""
        if len(self._rest) < HEADER_LENGTH:
            return HEADER_LENGTH
        return int.from_bytes(self._rest[:4], "big")
