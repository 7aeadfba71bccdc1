"""Server-sent events, read as they come: https://html.spec.whatwg.org/multipage/server-sent-events.html."""

from collections.abc import Iterator

_END = b"\n\n"


class ServerEvents:
    """Takes pieces of a stream. `last_id`: of the last event that had one. `retry`: seconds before one comes back."""

    def __init__(self, last_id: str | None = None) -> None:
        self.last_id = last_id
        self.retry: float | None = None
        self._buffer = bytearray()

    def feed(self, piece: bytes) -> Iterator[tuple[str, bytes]]:
        """The name and the data of each event that is whole by now. An event without data is none."""
        looked_at = max(0, len(self._buffer) - 1)
        self._buffer += piece
        while (end := self._buffer.find(_END, looked_at)) >= 0:
            block = bytes(self._buffer[:end])
            del self._buffer[: end + len(_END)]
            looked_at = 0
            event = self._event(block)
            if event is not None:
                yield event

    def _event(self, block: bytes) -> tuple[str, bytes] | None:
        name, data = "message", []
        for line in block.split(b"\n"):
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            match field:
                case b"event":
                    name = value.decode(errors="replace")
                case b"data":
                    data.append(value)
                case b"id":
                    self.last_id = value.decode(errors="replace")
                case b"retry" if value.isdigit():
                    self.retry = int(value) / 1_000
        return (name, b"\n".join(data)) if data else None
