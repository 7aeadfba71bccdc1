"""The bound of Apple's push service: h2 on one TLS connection, and a server in Node.js that takes everything."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import cast

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ResponseReceived, StreamEnded

from bench.harness import ROOT, scratch

Headers = list[tuple[str, str]]


@asynccontextmanager
async def taking_all() -> AsyncIterator[tuple[int, ssl.SSLContext]]:
    """The server's port, and what its certificate is verified by."""
    async with scratch() as folder:
        key, cert = _own_certificate(folder)
        server = await asyncio.create_subprocess_exec(
            "node", str(ROOT / "bench" / "apns.mjs"), str(key), str(cert), stdout=asyncio.subprocess.PIPE
        )
        assert server.stdout is not None
        try:
            port = int(await asyncio.wait_for(server.stdout.readline(), 30))
            tls = ssl.create_default_context(cafile=str(cert))
            tls.set_alpn_protocols(["h2"])
            yield port, tls
        finally:
            server.terminate()
            await server.wait()


def _own_certificate(folder: Path) -> tuple[Path, Path]:
    """The files of a key and its certificate, of this machine's own address."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "apns")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, SHA256())
    )
    files = (folder / "key.pem", folder / "cert.pem")
    files[0].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    files[1].write_bytes(made.public_bytes(Encoding.PEM))
    return files


class BareH2(asyncio.Protocol):
    """Requests whose body fits into one frame, and the status of each answer; what goes wrong is not looked at."""

    def __init__(self) -> None:
        self._h2 = H2Connection(H2Configuration(client_side=True, header_encoding=None))
        self._status: dict[int, int] = {}
        self._waiting: dict[int, asyncio.Future[int]] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but its class
        self._h2.initiate_connection()
        self._flush()

    def data_received(self, data: bytes) -> None:
        for event in self._h2.receive_data(data):
            if isinstance(event, ResponseReceived):
                self._status[event.stream_id] = int(dict(event.headers)[b":status"])
            elif isinstance(event, StreamEnded):
                self._waiting.pop(event.stream_id).set_result(self._status.pop(event.stream_id))
        self._flush()

    async def request(self, headers: Headers, body: bytes) -> int:
        """The status."""
        stream = self._h2.get_next_available_stream_id()
        self._h2.send_headers(stream, headers)
        self._h2.send_data(stream, body, end_stream=True)
        waiting = self._waiting[stream] = asyncio.get_running_loop().create_future()
        self._flush()
        return await waiting

    def close(self) -> None:
        self._transport.close()

    def _flush(self) -> None:
        self._transport.write(self._h2.data_to_send())
