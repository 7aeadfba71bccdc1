"""Debian's nginx and Caddy with what `deploy/proxies` shows, on other ports and with a certificate of ours."""

import asyncio
import datetime
import ipaddress
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.program import free_port
from tests.waiting import until

SHOWN = Path(__file__).parents[2] / "deploy" / "proxies"
NAME = "api.example.com"
PATIENCE = 60.0  # seconds


@dataclass(frozen=True, slots=True)
class Certificate:
    """Of this machine, signed by itself."""

    chain: Path
    key: Path


def certificate(folder: Path) -> Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName(NAME), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .sign(key, hashes.SHA256())
    )
    chain, private = folder / "fullchain.pem", folder / "privkey.pem"
    chain.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return Certificate(chain, private)


@dataclass(frozen=True, slots=True)
class Proxy:
    """One that can be checked and run. `url`: its address, with TLS; `plain`: without."""

    url: str
    plain: str
    certificate: Certificate
    check: tuple[str, ...]
    command: tuple[str, ...]
    environment: Mapping[str, str]


def replaced(text: str, changes: Mapping[str, str]) -> str:
    """Each of them must be there: a configuration that says something else is not the one that is tried."""
    for old, new in changes.items():
        text, count = re.subn(old, new, text)
        assert count, f"{old} is not in the configuration that is shown"
    return text


def nginx(folder: Path, service_port: int) -> Proxy:
    binary = program("nginx", "/usr/sbin/nginx")
    secure, plain, made = free_port(), free_port(), certificate(folder)
    text = replaced(
        (SHOWN / "nginx.conf").read_text("utf-8"),
        {
            r"listen 80;": f"listen 127.0.0.1:{plain};",
            r"listen 443 ": f"listen 127.0.0.1:{secure} ",
            r"127\.0\.0\.1:8080;": f"127.0.0.1:{service_port};",
            r"/etc/ssl/recado/fullchain\.pem": str(made.chain),
            r"/etc/ssl/recado/privkey\.pem": str(made.key),
        },
    )
    (folder / "recado.conf").write_text(text)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "".join(f"{kind}_temp_path {folder / kind}; " for kind in kinds)
    main = folder / "nginx.conf"
    main.write_text(
        f"daemon off; pid {folder / 'pid'}; error_log stderr warn; worker_processes 1;\nevents {{}}\n"
        f"http {{ access_log off; {places} include {folder / 'recado.conf'}; }}\n"
        + ("user root;\n" if os.geteuid() == 0 else "")  # its folders are those of a test
    )
    run = (binary, "-e", "stderr", "-c", str(main))
    return Proxy(f"https://127.0.0.1:{secure}", f"http://127.0.0.1:{plain}", made, (*run, "-t"), run, {})


def caddy(folder: Path, service_port: int) -> Proxy:
    binary = program("caddy", "/usr/bin/caddy")
    secure, plain, made = free_port(), free_port(), certificate(folder)
    site = f"https://127.0.0.1:{secure} {{\n\ttls {made.chain} {made.key}\n"
    text = replaced(
        (SHOWN / "Caddyfile").read_text("utf-8"),
        {
            rf"{re.escape(NAME)} {{\n": site,
            r"reverse_proxy 127\.0\.0\.1:8080 ": f"reverse_proxy 127.0.0.1:{service_port} ",
        },
    )
    file = folder / "Caddyfile"
    file.write_text(f"{{\n\tadmin off\n\thttp_port {plain}\n\thttps_port {secure}\n}}\n{text}")
    told = ("--config", str(file), "--adapter", "caddyfile")
    home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    return Proxy(
        f"https://127.0.0.1:{secure}", f"http://127.0.0.1:{plain}", made,
        (binary, "validate", *told), (binary, "run", *told), home,
    )  # fmt: skip


PROXIES: Mapping[str, Callable[[Path, int], Proxy]] = {"nginx": nginx, "caddy": caddy}


@contextmanager
def running(proxy: Proxy, folder: Path) -> Iterator[Path]:
    """The proxy while the block runs; the file of what it says."""
    log = folder / "proxy.log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            proxy.command, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **proxy.environment},
            stdin=subprocess.DEVNULL, stdout=said, stderr=said,
        )  # fmt: skip
    try:
        yield log
        assert process.poll() is None, log.read_text()
    finally:
        process.terminate()
        process.wait(PATIENCE)


async def listening(url: str) -> None:
    """Come back when somebody accepts connections there."""
    port = int(url.rpartition(":")[2])

    async def there() -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return False
        writer.close()
        return True

    await until(there, "the proxy listens")


def program(name: str, path: str) -> str:
    found = shutil.which(name) or (path if Path(path).exists() else None)
    if found is None:
        pytest.skip(f"{name} is not installed (Debian: {name})")
    return found
