"""An authority of the tests, and certificates that it vouches for."""

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.x509.oid import NameOID

NOW = datetime.now(UTC)  # a handshake asks the machine's clock
PEM = serialization.Encoding.PEM


class Authority:
    """`file`: its own certificate, by which a client knows the others."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = generate_private_key(65_537, 2_048)
        self._name = _name("authority")
        certificate = self._signed(self._name, self._key, authority=True)
        self.file = folder / "authority.pem"
        self.file.write_bytes(certificate.public_bytes(PEM))

    def server(self, host: str, *, until: datetime = NOW + timedelta(days=1)) -> ssl.SSLContext:
        """What a server with a certificate of that host, or address, speaks TLS with."""
        key = generate_private_key(65_537, 2_048)
        certificate = self._signed(_name(host), key, host=host, until=until)
        file = self._folder / f"{host}-{until.timestamp():.0f}.pem"
        plain = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        file.write_bytes(plain + certificate.public_bytes(PEM))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context

    def _signed(
        self,
        subject: x509.Name,
        key: RSAPrivateKey,
        *,
        host: str | None = None,
        authority: bool = False,
        until: datetime = NOW + timedelta(days=1),
    ) -> x509.Certificate:
        made = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(NOW - timedelta(days=2))
            .not_valid_after(until)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        )
        if host is not None:
            made = made.add_extension(x509.SubjectAlternativeName([_alternative(host)]), critical=False)
        return made.sign(self._key, hashes.SHA256())


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
