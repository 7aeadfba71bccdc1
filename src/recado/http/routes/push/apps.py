"""Push apps: made, listed, changed, deleted (C22.4)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from recado.domain.core.errors import conflict
from recado.domain.core.ids import PUSH_APP
from recado.http.api.call import Call
from recado.http.api.paging import PageQuery
from recado.http.api.route import Route, as_modelled
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.groups import Group
from recado.http.routes.core.resource import Resource, each
from recado.http.routes.push.app_models import (
    PushAppCreate,
    PushAppOut,
    PushAppPage,
    PushAppPatch,
    PushCredentials,
    push_app_view,
)
from recado.http.wire.reply import Reply
from recado.storage.core.crypto import KeyRing
from recado.storage.push import apps
from recado.storage.push.apps import CREDENTIALS_FIELD, PUSH_APPS, PushApp


@dataclass(frozen=True, slots=True)
class PushAppOperations:
    """What is particular to apps: their credentials are kept encrypted, and shown to nobody."""

    apps: Resource[PushApp]
    keys: KeyRing
    random_bytes: Callable[[int], bytes]
    devices_left: Callable[[], None]

    async def create(self, call: Call) -> Reply:
        body, born = call.body, self.apps.born(call)
        organization_id, app_id = born["organization_id"], born["id"]
        new = PushApp(
            **born,
            name=body.name,
            platforms=tuple(body.platforms),
            credentials_cipher=self._sealed(body.credentials, organization_id=organization_id, record_id=app_id),
            **apps.new_vapid(self.keys, organization_id=organization_id, app_id=app_id, random_bytes=self.random_bytes),
        )
        async with self.apps.database.transaction() as connection:
            made = await PUSH_APPS.insert(connection, new)
            await self.apps.note(connection, call, "push_app.create", made)
        return await self.apps.reply(call, made, 201)

    async def patch(self, call: Call) -> Reply:
        changes: dict[str, Any] = call.body.changes()
        async with self.apps.locked(call) as (connection, before):
            after = replace(before, **self._stored(before, changes))
            after = await PUSH_APPS.save(connection, before, after, call.now)
            if after is not before:
                await self.apps.note(connection, call, "push_app.update", after, {"fields": call.body.named()})
        self.apps.tell(after)
        return await self.apps.reply(call, after)

    async def delete(self, call: Call) -> Reply:
        async with self.apps.locked(call) as (connection, app):
            if await apps.in_use(connection, app):
                raise conflict("RESOURCE_IN_USE", "A message that is scheduled or on its way has devices of this app.")
            more = await apps.delete(connection, app)
            await self.apps.note(connection, call, "push_app.delete", app)
        self.apps.tell(app)
        if more:
            self.devices_left()
        return Reply(204)

    def _stored(self, app: PushApp, changes: dict[str, Any]) -> dict[str, Any]:
        stored = {name: value for name, value in changes.items() if name != "credentials"}
        if "platforms" in stored:
            stored["platforms"] = tuple(stored["platforms"])
        if "credentials" in changes:
            sealed = self._sealed(changes["credentials"], organization_id=app.organization_id, record_id=app.id)
            stored["credentials_cipher"] = sealed
        return stored

    def _sealed(self, credentials: PushCredentials | None, *, organization_id: str, record_id: str) -> str | None:
        if credentials is None or (credentials.service_account is None and credentials.apns is None):
            return None
        text = credentials.model_dump_json(by_alias=False, exclude_none=True)
        return self.keys.encrypt(text, organization_id=organization_id, record_id=record_id, field=CREDENTIALS_FIELD)


def push_app_routes(
    dependencies: Dependencies, *, tell: Callable[[PushApp], None], devices_left: Callable[[], None]
) -> tuple[Route, ...]:
    """`tell`: says to those who send for an app that it is another one now. `devices_left`: that one was deleted which
    may have devices.
    """
    resource = Resource(
        dependencies=dependencies,
        table=PUSH_APPS,
        path="/v2/push/apps/{id}",
        prefix=PUSH_APP,
        name="push_app",
        group=Group("Push", "push:read", "push:send"),
        out=PushAppOut,
        page=PushAppPage,
        views=each(push_app_view),
        tell=tell,
    )
    operations = PushAppOperations(resource, dependencies.keys, dependencies.random_bytes, devices_left)
    return (
        resource.route(
            "GET /v2/push/apps", "listPushApps", "List push apps, newest first", resource.listing(), query=PageQuery,
        ),
        resource.route(
            "POST /v2/push/apps", "createPushApp", "Make a push app", operations.create, body=PushAppCreate,
            errors=("LIMIT_REACHED",), examine=as_modelled,
            description="Its key pair for browsers is drawn here; the public half is `vapidPublicKey`.",
        ),
        resource.route("GET /v2/push/apps/{id}", "getPushApp", "Read a push app", resource.read),
        resource.route(
            "PATCH /v2/push/apps/{id}", "updatePushApp", "Change a push app", operations.patch, body=PushAppPatch,
        ),
        resource.route(
            "DELETE /v2/push/apps/{id}", "deletePushApp", "Delete a push app and its devices", operations.delete,
            errors=("RESOURCE_IN_USE",),
            description=(
                "While a message to its devices is scheduled or on its way, it stays. Of many devices the last go soon "
                "after the answer, and get nothing meanwhile."
            ),
        ),
    )  # fmt: skip
