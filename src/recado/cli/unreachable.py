"""What a command says when the service that it calls over HTTP does not answer."""

import aiohttp

from recado.cli.errors import CommandError


def unreachable(url: str, error: Exception) -> CommandError:
    """The refusal of a command that found no Recado at `url`."""
    if isinstance(error, aiohttp.ClientConnectorError) and not isinstance(error, aiohttp.ClientSSLError):
        return CommandError(f"nothing answers at {error.host}:{error.port}: 'recado serve' starts the service")
    reason = str(error) or type(error).__name__
    return CommandError(f"{url} does not answer as Recado does ({reason}): is it up?")
