"""What the installation's administrator decides of a number: whether the customer brings its own account (C14.1)."""

from dataclasses import replace

from recado.domain.core.errors import not_found
from recado.domain.core.ids import NUMBER, ORGANIZATION, IdSource
from recado.domain.messages.changes import NumberChanged, OnChange
from recado.http.api.audit import actor_of
from recado.http.api.call import Call
from recado.http.api.route import Access, Route
from recado.http.routes.senders.number_models import NumberAdminPatch, NumberOut, number_view
from recado.http.wire.reply import Reply
from recado.storage.core import audit
from recado.storage.core.changing import changing
from recado.storage.core.postgres import Database
from recado.storage.senders import numbers
from recado.storage.senders.numbers import Number


def number_administration_routes(*, database: Database, ids: IdSource, changed: OnChange) -> tuple[Route, ...]:
    """`byo` decides the price of each message of the number: a customer cannot set it."""

    async def find(call: Call) -> Number:
        number = await numbers.of_organization(database, call.path["id"], call.path["numberId"])
        if number is None:
            raise not_found()
        return number

    async def patch(call: Call) -> Reply:
        found: Number = call.resource
        change = NumberChanged(found.organization_id, found.env, found.id)
        changes = call.body.changes()
        async with changing(database, changed, change) as connection:
            before = await numbers.get_locked(connection, found.organization_id, found.env, found.id)
            if before is None:
                raise not_found()
            call.check_revision(before.revision)
            after = await numbers.save(connection, before, replace(before, **changes), call.now)
            if after is not before:
                await audit.write(
                    connection,
                    ids,
                    actor_of(call),
                    "number.update",
                    organization_id=after.organization_id,
                    env=after.env,
                    target_id=after.id,
                    details={"byo": after.byo},
                )
        if after is not before:
            changed(change)
        return Reply(200, number_view(after, full=False), revision=after.revision)

    return (
        Route(
            method="PATCH",
            path="/v2/admin/organizations/{id}/numbers/{numberId}",
            handler=patch,
            load=find,
            operation_id="administerNumber",
            summary="Decide whether a number is the customer's own at the provider",
            description="With `byo` only the platform's price is charged for its messages. Those that are accepted "
            "already keep their price.",
            tag="Administration",
            access=Access.ADMIN,
            body=NumberAdminPatch,
            responses={200: NumberOut},
            versioned=True,
            path_ids={"id": ORGANIZATION, "numberId": NUMBER},
        ),
    )
