"""A model whose bodies ask for trouble by name: no real one can, but a fault in a parser is no better.

It stands alone because a worker process imports it.
"""

import os
import signal
import time
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from recado.http.api.models import ApiModel


def _harm(how: str) -> Any:
    if how == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "raise":
        raise RuntimeError("+55 11 98765-4321")
    elif how == "swell":
        return len(bytearray(2**32))
    elif how == "hang":
        time.sleep(3600)
    elif how == "environment":
        return dict(os.environ)
    elif how == "process":
        return os.getpid()
    return how


class Body(ApiModel):
    """Found by the worker under its name."""

    names: list[str] = Field(default_factory=list, fail_fast=True)
    others: list[dict[str, Any]] = Field(default_factory=list)
    how: Annotated[Any, AfterValidator(_harm)] = ""
