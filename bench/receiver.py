"""The bound that the processors set to uploads, as a process: it reads each body from its socket, hashes it, writes it
to a file until the disk has it, and does nothing else. Each connection has a thread, none of which holds the
interpreter's lock for long.
"""

import argparse
import os
import socket
import tempfile
from hashlib import sha256
from pathlib import Path
from threading import Thread

BLOCK = 1024 * 1024  # bytes


def main() -> None:
    options = argparse.ArgumentParser("python -m bench.receiver")
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--folder", type=Path, required=True)
    given = options.parse_args()
    with socket.create_server(("127.0.0.1", given.port), backlog=128) as server:
        while True:
            connection, _ = server.accept()
            Thread(target=_take, args=(connection, given.folder), daemon=True).start()


def _take(connection: socket.socket, folder: Path) -> None:
    with connection:
        head = b""
        while b"\r\n\r\n" not in head:
            head += (more := connection.recv(64 * 1024))
            if not more:
                return
        head, _, body = head.partition(b"\r\n\r\n")
        lengths = [
            int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")
        ]
        if not lengths:  # whoever asks whether it is there
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        _keep(connection, folder, body, lengths[0])
        connection.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def _keep(connection: socket.socket, folder: Path, began: bytes, length: int) -> None:
    digest, block = sha256(began), memoryview(bytearray(BLOCK))
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        file.write(began)
        left = length - len(began)
        while left:
            filled = connection.recv_into(block[: min(BLOCK, left)], 0, socket.MSG_WAITALL)
            if not filled:
                return
            digest.update(block[:filled])
            file.write(block[:filled])
            left -= filled
        os.fsync(file.fileno())


if __name__ == "__main__":
    main()
