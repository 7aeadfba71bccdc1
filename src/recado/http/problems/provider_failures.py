"""What callers see when a provider fails: 502, with the provider's code and nothing else of its answer."""

from collections.abc import Iterator
from contextlib import contextmanager

from recado.channels.core.errors import ProviderError
from recado.domain.core.errors import Problem


@contextmanager
def answered_with_502() -> Iterator[None]:
    """Turn a `ProviderError` inside into `Problem` DEPENDENCY_FAILED."""
    try:
        yield
    except ProviderError as error:
        did = "refused the request" if error.kind == "refused" else "could not be reached"
        raise Problem("DEPENDENCY_FAILED", f"The provider {did}.", meta={"providerCode": error.code}) from error
