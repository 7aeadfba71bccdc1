"""Devices: registered and opted out by apps, listed and counted (C22.2)."""

from collections.abc import Callable
from dataclasses import dataclass

from recado.domain.access.scopes import PII
from recado.domain.core.ids import PUSH_DEVICE
from recado.http.api.call import Call
from recado.http.api.operation import organization_suspended
from recado.http.api.route import Idempotency, Route
from recado.http.problems.missing import found
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.groups import Group
from recado.http.routes.core.resource import Resource
from recado.http.routes.push.device_models import (
    DeviceOptedOut,
    DeviceOptOut,
    DeviceOut,
    DevicePage,
    DeviceQuery,
    DeviceRegister,
    DeviceRegistered,
    DeviceSums,
    device_view,
    registered_view,
    sums_view,
)
from recado.http.wire.reply import Reply
from recado.services.push.registrations import DeviceRegistrations, Registration
from recado.storage.core.statements.rows import Executor
from recado.storage.push import devices
from recado.storage.push.devices import PUSH_DEVICES, PushDevice


async def _views(call: Call, _: Executor, records: list[PushDevice]) -> list[dict[str, object]]:
    unmasked = call.can(PII)
    return [device_view(each, unmasked) for each in records]


@dataclass(frozen=True, slots=True)
class DeviceOperations:
    """The handlers that apps call. `opted_out`: told after the commit of an organization's device that left."""

    devices: Resource[PushDevice]
    registrations: DeviceRegistrations
    opted_out: Callable[[str, str], None]

    async def register(self, call: Call) -> Reply:
        body, principal = call.body, call.principal
        if principal.suspended and body.opted_in is not False:  # who leaves may always
            raise organization_suspended()
        made = await self.registrations.register(
            Registration(
                organization_id=principal.organization_id,
                env=principal.env,
                app_id=body.app_id,
                token=body.token,
                platform=body.platform,
                p256dh=body.p256dh,
                auth=body.auth,
                external_id=body.external_id,
                contact_id=body.contact_id,
                user_name=body.user_name,
                user_email=body.user_email,
                user_phone=body.user_phone,
                device_name=body.device_name,
                topics=None if body.topics is None else tuple(dict.fromkeys(body.topics)),
                opted_in=body.opted_in,
            )
        )
        if body.opted_in is False:
            self.opted_out(principal.organization_id, made.device.id)
        return Reply(200, registered_view(made))

    async def opt_out(self, call: Call) -> Reply:
        principal = call.principal
        key = (principal.organization_id, principal.env, call.body.app_id, devices.hash_of(call.body.token))
        async with self.devices.database.transaction() as connection:
            device = found(await devices.opt_out(connection, key, call.now))
        self.opted_out(principal.organization_id, device.id)
        view = {"id": device.id, "status": device.status.value, "optedOutAt": device.opted_out_at or call.now}
        return Reply(200, view)

    async def sums(self, call: Call) -> Reply:
        principal, database = call.principal, self.devices.database
        return Reply(200, sums_view(await devices.sums(database.searches, principal.organization_id, principal.env)))


def device_routes(
    dependencies: Dependencies, *, registrations: DeviceRegistrations, opted_out: Callable[[str, str], None]
) -> tuple[Route, ...]:
    """The operations on devices."""
    resource = Resource(
        dependencies=dependencies,
        table=PUSH_DEVICES,
        path="/v2/push/devices/{id}",
        prefix=PUSH_DEVICE,
        name="push_device",
        group=Group("Push", "push:read", "push:register"),
        out=DeviceOut,
        page=DevicePage,
        views=_views,
    )
    operations = DeviceOperations(resource, registrations, opted_out)
    return (
        resource.route(
            "POST /v2/push/tokens", "registerDevice", "Register a device, at each start of its app",
            operations.register, body=DeviceRegister, responses={200: DeviceRegistered}, rate_class="device",
            bad_body_status=400, idempotency=Idempotency.NONE,
            errors=("WEB_PUSH_KEYS_REQUIRED", "NOT_FOUND", "ORGANIZATION_SUSPENDED"), while_suspended=True,
            description=(
                "Once for each token of an app, however often it is called. Without `optedIn` a device that opted out "
                "stays so; `contactId`, or else `externalId`, links it to a contact. "
                "A suspended organization takes only those with `optedIn` false."
            ),
        ),
        resource.route(
            "POST /v2/push/tokens/opt-out", "optOutDevice", "Let a device leave all later sends", operations.opt_out,
            body=DeviceOptOut, responses={200: DeviceOptedOut}, rate_class="device", bad_body_status=400,
            idempotency=Idempotency.NONE, errors=("NOT_FOUND",), while_suspended=True,
        ),
        resource.route(
            "GET /v2/push/devices", "listDevices", "List devices, newest first",
            resource.listing(lambda query: (query.app_id, query.platform, query.status, query.contact_id)),
            query=DeviceQuery,
        ),
        resource.route(
            "GET /v2/push/devices/summary", "sumDevices", "Count devices by platform and status", operations.sums,
            responses={200: DeviceSums},
        ),
    )  # fmt: skip
