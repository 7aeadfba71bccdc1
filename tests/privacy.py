"""Looks through real log output for what must not be there (C30.5): phones, texts, keys, tokens."""

from collections.abc import Iterable
from pathlib import Path


def found_in_logs(logs: Iterable[Path], secrets: Iterable[str]) -> list[str]:
    """The lines that hold one of the secrets. AssertionError for a log that is empty: nothing would be proven."""
    wanted = [secret.encode() for secret in secrets]
    found = []
    for log in logs:
        content = log.read_bytes()
        assert content, f"{log.name} is empty"
        if any(secret in content for secret in wanted):
            found += [
                f"{log.name}: {line[:500]!r}"
                for line in content.splitlines()
                if any(secret in line for secret in wanted)
            ]
    return found
