"""What the installation's administrator decides of a number: whether the customer brings its own account (C14.1)."""

from dataclasses import replace

from recado.domain.core.ids import NUMBER, ORGANIZATION
from recado.http.api.call import Call
from recado.http.api.route import Route
from recado.http.problems.missing import found
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.groups import ADMINISTRATION
from recado.http.routes.senders.number_models import NumberAdminPatch, NumberOut, number_view
from recado.http.routes.senders.numbers import number_resource
from recado.http.wire.reply import Reply
from recado.storage.senders import numbers
from recado.storage.senders.numbers import Number


def number_administration_routes(dependencies: Dependencies) -> tuple[Route, ...]:
    """`byo` decides the price of each message of the number: a customer cannot set it."""
    resource = number_resource(dependencies)

    async def find(call: Call) -> Number:
        return found(await numbers.of_organization(resource.database, call.path["id"], call.path["numberId"]))

    async def patch(call: Call) -> Reply:
        changes = call.body.changes()
        async with resource.locked(call) as (connection, before):
            after = await numbers.save(connection, before, replace(before, **changes), call.now)
            if after is not before:
                await resource.note(connection, call, "number.update", after, {"byo": after.byo})
        if after is not before:
            resource.tell(after)
        return Reply(200, number_view(after, False), revision=after.revision)

    return (
        ADMINISTRATION.route(
            "PATCH /v2/admin/organizations/{id}/numbers/{numberId}", "administerNumber",
            "Decide whether a number is the customer's own at the provider", patch,
            load=find, path_ids={"id": ORGANIZATION, "numberId": NUMBER},
            body=NumberAdminPatch, responses={200: NumberOut}, versioned=True,
            description="With `byo` only the platform's price is charged for its messages. Those that are accepted "
            "already keep their price.",
        ),
    )  # fmt: skip
