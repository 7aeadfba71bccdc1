"""Work in steps: a generator that yields where others may have a turn, and returns what it found."""

from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Steps: TypeAlias = Generator[None, None, T]
