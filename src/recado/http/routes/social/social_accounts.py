"""Social accounts: register, read, change, connect, disconnect, delete (C26)."""

from contextlib import suppress
from dataclasses import dataclass, replace

from recado.channels.core.adapters import ConnectorFor, SenderConnector
from recado.channels.core.errors import ProviderError
from recado.domain.channels.policies import ACCOUNTS_CHANNEL
from recado.domain.core.errors import conflict, no_provider
from recado.domain.core.ids import SOCIAL_ACCOUNT
from recado.domain.messages.changes import SocialAccountChanged
from recado.domain.senders.social_account import (
    SOCIAL_ACCOUNT_MACHINE,
    SocialAccountEvent,
    SocialAccountStatus,
    how_to_connect,
)
from recado.http.api.call import Call
from recado.http.api.route import Route, as_modelled
from recado.http.problems.provider_failures import answered_with_502
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.groups import Group
from recado.http.routes.core.resource import Resource, each
from recado.http.routes.social.social_account_models import (
    SocialAccountCreate,
    SocialAccountOut,
    SocialAccountPage,
    SocialAccountPatch,
    SocialAccountQuery,
    social_account_view,
)
from recado.http.wire.reply import Reply
from recado.services.senders.accounts import ACCESS_TOKEN
from recado.services.senders.social_accounts import provider_account
from recado.storage.core.crypto import KeyRing
from recado.storage.senders import social_accounts
from recado.storage.senders.social_accounts import SOCIAL_ACCOUNTS, SocialAccount


@dataclass(frozen=True, slots=True)
class SocialAccountOperations:
    """The provider is called outside of transactions; the row is looked at again inside.

    `provider_for`: who connects accounts in an environment, None where nobody does.
    """

    accounts: Resource[SocialAccount]
    keys: KeyRing
    provider_for: ConnectorFor

    async def create(self, call: Call) -> Reply:
        body, born = call.body, self.accounts.born(call)
        new = SocialAccount(
            **born,
            platform=body.platform,
            external_account_id=body.external_account_id,
            display_name=body.display_name,
            access_token_cipher=self._sealed(born["organization_id"], born["env"], born["id"], body.access_token),
        )
        return await self.accounts.reply(call, await self.accounts.add(new, social_accounts.insert), 201)

    async def patch(self, call: Call) -> Reply:
        found: SocialAccount = call.resource
        changes = call.body.changes()
        call.check_revision(found.revision)
        fields = {name: value for name, value in changes.items() if name != "access_token"}
        if "access_token" in changes:
            token = changes["access_token"]
            if token is not None and found.status is SocialAccountStatus.CONNECTED:
                with answered_with_502():
                    await self._provider(found.env).connect(provider_account(found, self.keys, token=token))
            fields["access_token_cipher"] = self._sealed(found.organization_id, found.env, found.id, token)
        return await self.accounts.reply(call, await self.accounts.change(call, lambda was: replace(was, **fields)))

    async def connect(self, call: Call) -> Reply:
        found: SocialAccount = call.resource
        call.check_revision(found.revision)
        if found.status not in SOCIAL_ACCOUNT_MACHINE.sources(SocialAccountEvent.CONNECT):
            what = how_to_connect(found.status, found.id)
            detail = f"The social account {found.id} is {found.status.value}: {what}."
            raise conflict("INVALID_STATE", detail, status=found.status.value)
        with answered_with_502():
            await self._provider(found.env).connect(provider_account(found, self.keys))

        def connected(account: SocialAccount) -> SocialAccount:
            status = SOCIAL_ACCOUNT_MACHINE.move(account.status, SocialAccountEvent.CONNECT)
            return replace(account, status=status, connected_at=call.now)

        return await self.accounts.reply(call, await self.accounts.change(call, connected))

    async def disconnect(self, call: Call) -> Reply:
        def disconnected(account: SocialAccount) -> SocialAccount:
            return replace(account, status=SOCIAL_ACCOUNT_MACHINE.move(account.status, SocialAccountEvent.DISCONNECT))

        changed = await self.accounts.change(call, disconnected)
        provider = self.provider_for(call.principal.env)
        if provider is not None:
            # Sending has stopped here already; whether the provider hears of it now changes nothing about that.
            with suppress(ProviderError):
                await provider.disconnect(provider_account(changed, self.keys))
        return await self.accounts.reply(call, changed)

    async def delete(self, call: Call) -> Reply:
        return await self.accounts.delete(call, social_accounts.delete)

    def _provider(self, env: str) -> SenderConnector:
        provider = self.provider_for(env)
        if provider is None:
            raise no_provider(ACCOUNTS_CHANNEL)
        return provider

    def _sealed(self, organization_id: str, env: str, account_id: str, token: str | None) -> str | None:
        """The encrypted access token. The sandbox asks for none, so test keeps none."""
        if token is None or env == "test":
            return None
        return self.keys.encrypt(token, organization_id=organization_id, record_id=account_id, field=ACCESS_TOKEN)


def social_account_routes(dependencies: Dependencies, *, provider_for: ConnectorFor) -> tuple[Route, ...]:
    """`provider_for`: who connects accounts in an environment, None where nobody does."""
    resource = Resource(
        dependencies=dependencies,
        table=SOCIAL_ACCOUNTS,
        path="/v2/social/accounts/{id}",
        prefix=SOCIAL_ACCOUNT,
        name="social_account",
        group=Group("Social", "social:read", "social:write"),
        out=SocialAccountOut,
        page=SocialAccountPage,
        views=each(social_account_view),
        tell=lambda account: dependencies.changed(
            SocialAccountChanged(account.organization_id, account.env, account.id)
        ),
    )
    operations = SocialAccountOperations(resource, dependencies.keys, provider_for)
    return (
        resource.route(
            "GET /v2/social/accounts", "listSocialAccounts", "List social accounts, newest first",
            resource.listing(lambda query: (query.status, query.platform)), query=SocialAccountQuery,
        ),
        resource.route(
            "POST /v2/social/accounts", "createSocialAccount", "Register a social account", operations.create,
            body=SocialAccountCreate, errors=("SOCIAL_ACCOUNT_TAKEN", "LIMIT_REACHED"), examine=as_modelled,
            description="It is pending until it is connected.",
        ),
        resource.route("GET /v2/social/accounts/{id}", "getSocialAccount", "Read a social account", resource.read),
        resource.route(
            "PATCH /v2/social/accounts/{id}", "updateSocialAccount", "Name a social account, or renew its access token",
            operations.patch, body=SocialAccountPatch, errors=("DEPENDENCY_FAILED",),
        ),
        resource.route(
            "DELETE /v2/social/accounts/{id}", "deleteSocialAccount", "Delete a social account", operations.delete,
            errors=("RESOURCE_IN_USE",),
        ),
        resource.route(
            "POST /v2/social/accounts/{id}/connect", "connectSocialAccount", "Put a social account into service",
            operations.connect, errors=("INVALID_STATE", "DEPENDENCY_FAILED"),
        ),
        resource.route(
            "POST /v2/social/accounts/{id}/disconnect", "disconnectSocialAccount",
            "Take a social account out of service", operations.disconnect, errors=("INVALID_STATE",),
        ),
    )  # fmt: skip
