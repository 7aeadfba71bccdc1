"""What tests of numbers begin with: numbers that are registered, available or connected."""

from typing import Any

from recado.channels.core.errors import ProviderError

NEW = {"phoneNumberId": "pn-1", "businessAccountId": "ba-1", "displayPhone": "+55 (11) 98765-1234"}
AWAY = ProviderError("unreachable", "connect_failed", "the provider cannot be reached")
REFUSED = ProviderError("refused", "not_yours", "the provider refused")


async def register(api: Any, env: str = "live", **fields: Any) -> Any:
    answer = await api.post("/numbers", NEW | fields, env=env)
    assert answer.status == 201, answer.body
    return answer.body


async def available(api: Any, env: str = "live", **fields: Any) -> Any:
    """A number that its provider has verified."""
    number = await register(api, env, **fields)
    api.clock.shift(2)
    await api.refresh.run(env)
    return (await api.get(f"/numbers/{number['id']}", env=env)).body


async def connected(api: Any) -> Any:
    number = await available(api)
    return (await api.post(f"/numbers/{number['id']}/connect", env="live")).body
