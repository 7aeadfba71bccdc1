"""The one error of a configuration that cannot be used."""

from collections.abc import Sequence


class SettingsError(Exception):
    """The installation cannot start as it is configured; `lines` says, one line each, what to fix."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__("; ".join(lines))
        self.lines = tuple(lines)
