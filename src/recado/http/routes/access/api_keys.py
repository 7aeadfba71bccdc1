"""The operations on API keys (C24.4)."""

from collections.abc import Callable, Mapping
from typing import Any

from recado.domain.core.ids import API_KEY, IdSource
from recado.domain.messages.changes import OnChange
from recado.http.api.paging import PageQuery
from recado.http.api.rate_limits import Limit
from recado.http.api.route import Idempotency, Route
from recado.http.routes.access.api_key_models import (
    ApiKeyCreate,
    ApiKeyOut,
    ApiKeyPage,
    ApiKeyPatch,
    IssuedKey,
    Rotation,
)
from recado.http.routes.access.api_key_operations import ApiKeyOperations
from recado.storage.access.key_directory import KeyDirectory
from recado.storage.core.postgres import Database


def api_key_routes(
    *,
    database: Database,
    ids: IdSource,
    keys: KeyDirectory,
    ceilings: Mapping[str, Limit],
    random_bytes: Callable[[int], bytes],
    changed: OnChange,
) -> tuple[Route, ...]:
    """`ceilings`: what a key may ask for by class (C6.1). `random_bytes`: unpredictable ones, for the tokens."""
    operations = ApiKeyOperations(database, ids, keys, ceilings, random_bytes, changed)
    one: dict[str, Any] = {
        "load": operations.find,
        "path_ids": {"id": API_KEY},
        "tag": "API keys",
    }
    return (
        Route(
            method="GET",
            path="/v2/api-keys",
            handler=operations.list,
            operation_id="listApiKeys",
            summary="List the keys of the environment",
            tag="API keys",
            scope="apikeys:read",
            rate_class="read",
            query=PageQuery,
            responses={200: ApiKeyPage},
        ),
        Route(
            method="POST",
            path="/v2/api-keys",
            handler=operations.create,
            operation_id="createApiKey",
            summary="Issue a key",
            description="The token is shown in this answer and never again.",
            tag="API keys",
            scope="apikeys:write",
            rate_class="write",
            body=ApiKeyCreate,
            responses={201: IssuedKey},
            errors=("SCOPE_ESCALATION", "LIMIT_REACHED"),
            idempotency=Idempotency.ACCEPTED,
            creates=True,
        ),
        Route(
            method="GET",
            path="/v2/api-keys/{id}",
            handler=operations.read,
            operation_id="getApiKey",
            summary="Read a key",
            scope="apikeys:read",
            rate_class="read",
            responses={200: ApiKeyOut},
            **one,
        ),
        Route(
            method="PATCH",
            path="/v2/api-keys/{id}",
            handler=operations.patch,
            operation_id="updateApiKey",
            summary="Change a key",
            scope="apikeys:write",
            rate_class="write",
            body=ApiKeyPatch,
            responses={200: ApiKeyOut},
            errors=("SCOPE_ESCALATION", "INVALID_STATE", "LIMIT_REACHED"),
            **one,
        ),
        Route(
            method="POST",
            path="/v2/api-keys/{id}/rotate",
            handler=operations.rotate,
            operation_id="rotateApiKey",
            summary="Give a key a new token",
            description="The former token holds for the grace; any older one ends now.",
            scope="apikeys:write",
            rate_class="write",
            body=Rotation,
            responses={200: IssuedKey},
            errors=("SCOPE_ESCALATION", "INVALID_STATE"),
            idempotency=Idempotency.ACCEPTED,
            rotates=True,
            **one,
        ),
        Route(
            method="DELETE",
            path="/v2/api-keys/{id}",
            handler=operations.revoke,
            operation_id="revokeApiKey",
            summary="Revoke a key at once",
            scope="apikeys:write",
            rate_class="write",
            responses={204: None},
            **one,
        ),
    )
