"""Says how many there are of something, in the singular for one."""


def counted(count: int, one: str, many: str | None = None) -> str:
    """Return `1 message`, `2 messages`, `1,000 messages`; `many`: the plural that is not `one` and an s."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
