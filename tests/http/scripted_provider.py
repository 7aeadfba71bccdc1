"""A clock that is set forward at will, and a provider that does as it is told and remembers what it was asked."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from recado.channels.chatapp.sandbox import Sandbox
from recado.channels.core.errors import ProviderError
from recado.channels.core.provider import Account, NumberHealth, ProviderTemplate, Submission
from recado.engine.clock import SystemClock


class ShiftedClock(SystemClock):
    """The machine's clock, set forward at will."""

    __slots__ = ("_ahead",)

    def __init__(self) -> None:
        super().__init__()
        self._ahead = 0.0
        machine = self.now
        self.now = lambda: machine() + timedelta(seconds=self._ahead)

    def shift(self, seconds: float) -> None:
        self._ahead += seconds

    def monotonic(self) -> float:
        return SystemClock.monotonic() + self._ahead

    def call_at(self, when: float, callback: Any) -> Any:
        return super().call_at(when - self._ahead, callback)


class ScriptedProvider(Sandbox):
    """The sandbox's manners, a record of what was asked, and failures on demand: `failures[operation] = error`."""

    def __init__(self, clock: ShiftedClock) -> None:
        super().__init__(clock)
        self.asked: list[tuple[str, Any]] = []
        self.failures: dict[str, ProviderError] = {}
        self.health = NumberHealth(verified=True)
        self.templates: list[ProviderTemplate] = []
        self.submission = Submission("provider-template-1")

    async def number_health(self, account: Account) -> NumberHealth:
        self._ask("number_health", account)
        return self.health

    async def update_profile(self, account: Account, profile: Mapping[str, str]) -> None:
        self._ask("update_profile", dict(profile))

    async def connect(self, account: Account) -> None:
        self._ask("connect", account)

    async def disconnect(self, account: Account) -> None:
        self._ask("disconnect", account)

    async def submit_template(self, account: Account, template: Any) -> Submission:
        self._ask("submit_template", template)
        return self.submission

    async def delete_template(self, account: Account, name: str, provider_template_id: str | None) -> None:
        self._ask("delete_template", (name, provider_template_id))

    async def list_templates(self, account: Account) -> list[ProviderTemplate]:
        self._ask("list_templates", account)
        return self.templates

    def asked_for(self, operation: str) -> list[Any]:
        return [what for name, what in self.asked if name == operation]

    def _ask(self, operation: str, what: Any) -> None:
        self.asked.append((operation, what))
        if operation in self.failures:
            raise self.failures[operation]
