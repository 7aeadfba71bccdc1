"""POST /contacts/import and its progress: a file of contacts in JSON, NDJSON or CSV (C12.7)."""

from collections.abc import Mapping
from typing import IO, Annotated, Any, Final

import orjson
from pydantic import BaseModel, Field, ValidationError

from recado.domain.contacts.contact import tags_united
from recado.domain.contacts.contact_import import Country, ImportFormat, ImportMode, ImportOptions, MatchBy
from recado.domain.core.errors import FieldError
from recado.domain.core.ids import CONTACT_IMPORT, IdSource
from recado.http.api.audit import actor_of
from recado.http.api.call import Call
from recado.http.api.models import ApiModel, QueryBool, QueryModel, Timestamp
from recado.http.api.route import MIB, Idempotency, Route
from recado.http.bodies.field_errors import from_body
from recado.http.bodies.known_names import UNSAID
from recado.http.bodies.parsing import invalid_body, refuse_nul
from recado.http.bodies.unknown_fields import is_strict, misplaced, name_in, refuse, unknown_fields, unknown_parameters
from recado.http.problems.missing import found
from recado.http.routes.contacts.contact_models import ContactCreate, Id, Tags
from recado.http.routes.contacts.contacts import CONTACTS
from recado.http.routes.core.views import view_of
from recado.http.wire.reply import Reply
from recado.services.imports.contact_files import ContactFile
from recado.services.imports.contact_imports import ContactImports, Draft, OptionsOf
from recado.services.imports.contact_rows import FIELD_COLUMNS, unread_columns
from recado.storage.contacts import contact_imports
from recado.storage.contacts.contact_imports import PROCESSING, ContactImport
from recado.storage.core.connections.postgres import Database

BODY_LIMIT: Final = 50 * MIB
FORMATS: Final = {
    "application/json": ImportFormat.JSON,
    "application/x-ndjson": ImportFormat.NDJSON,
    "text/csv": ImportFormat.CSV,
}
_LONGEST_AGENT: Final = 512

_MATCH = Field(description="What tells whose row it is.")
_LIST = Field(description="Every contact of the file becomes a member of this list.")
_TAGS = Field(description="Added to every contact.")
_COUNTRY = Field(description="`BR`: phones of 10 or 11 digits receive `+55`.")
_EVENTS = Field(description="Whether `contact.created` is told of each new contact.")


class _Options(BaseModel):
    mode: ImportMode = ImportMode.UPSERT
    match_by: Annotated[MatchBy, _MATCH] = MatchBy.PHONE
    list_id: Annotated[Id | None, _LIST] = None
    tags: Annotated[Tags | None, _TAGS] = None
    default_country: Annotated[Country | None, _COUNTRY] = None


class ImportQuery(_Options, QueryModel):
    """The options of NDJSON and CSV."""

    emit_events: Annotated[QueryBool, _EVENTS] = False


class ImportOptionsIn(_Options, ApiModel):
    """The options of JSON."""

    emit_events: Annotated[bool, _EVENTS] = False


class ImportDocument(ApiModel):
    """Contacts in one JSON document. Whatever else stands in the list is a row that fails alone."""

    contacts: list[ContactCreate | Any]
    options: ImportOptionsIn | None = None


class ImportErrorOut(ApiModel):
    """What is wrong with a row: the first one after a header is 1."""

    row: int
    field: str = ""
    code: str
    message: str


class ImportOut(ApiModel):
    """An import. Every row is in one of `created`, `updated`, `unchanged` and `failed` once it is processed."""

    id: str
    status: Annotated[str, Field(json_schema_extra={"enum": ["processing", "completed", "failed"]})]
    format: ImportFormat
    total: int
    processed: int
    created: int
    updated: int
    unchanged: int
    failed: int
    consent_ignored: Annotated[int, Field(description="Rows whose consent would have undone a refusal.")]
    errors: Annotated[list[ImportErrorOut], Field(description="Of the first 1,000 bad rows.")]
    created_at: Timestamp
    finished_at: Timestamp | None = None


import_view = view_of(ContactImport, ImportOut)


class ImportOperations:
    """The handlers."""

    def __init__(self, database: Database, ids: IdSource, imports: ContactImports) -> None:
        self._database = database
        self._ids = ids
        self._imports = imports

    async def examine(self, call: Call) -> None:
        """Read the file, and keep nothing. Raises `Problem` 422."""
        draft, file, options_of, _ = self._handed_in(call)
        await self._imports.examine(draft, file, options_of)

    async def create(self, call: Call) -> Reply:
        draft, file, options_of, unknown = self._handed_in(call)
        accepted = await self._imports.accept(draft, file, options_of)
        reply = Reply(202 if accepted.status == PROCESSING else 200, import_view(accepted))
        if unknown:
            # Here, not with those of the query: a repeat with the key is answered without reading the file again.
            name_in(reply, unknown, writes=True)
        return reply

    def _handed_in(self, call: Call) -> tuple[Draft, IO[bytes], OptionsOf, list[FieldError]]:
        """The import with its file, what finds its options there, and what that finds which no import reads."""
        spool = call.spool
        assert spool is not None  # noqa: S101 - the route is spooled
        agent = call.user_agent
        draft = Draft(
            call.principal.organization_id,
            call.principal.env,
            self._ids.new(CONTACT_IMPORT),
            FORMATS[spool.media_type],
            actor_of(call),
            agent[:_LONGEST_AGENT] if agent else None,
        )
        unknown: list[FieldError] = []

        def options_of(file: ContactFile) -> ImportOptions:
            unknown[:] = _unknown_in(file, draft.format, call.query)
            if unknown and is_strict(call.headers.get("Prefer")):
                refuse(unknown)
            return _options_in(file.members) if draft.format is ImportFormat.JSON else _options(call.query)

        return draft, spool.file, options_of, unknown

    async def read(self, call: Call) -> Reply:
        return Reply(200, import_view(call.resource))

    async def find(self, call: Call) -> ContactImport:
        principal = call.principal
        key = (principal.organization_id, principal.env, call.path["id"])
        return found(await contact_imports.get(self._database, *key))


def _unknown_in(file: ContactFile, form: ImportFormat, query: ImportQuery) -> list[FieldError]:
    """What no import of this format reads: columns, members beside the contacts, options in the wrong place.

    A row answers for itself.
    """
    if form is ImportFormat.JSON:
        given = [str(ImportQuery.model_fields[name].alias) for name in sorted(query.model_fields_set)]
        return [
            *unknown_fields(ImportDocument, {**file.members, "contacts": []}),
            *(misplaced(name, f"options.{name}") for name in given),
        ]
    columns = [name for name in unread_columns(file.columns or ()) if name not in UNSAID]
    return unknown_parameters(columns, FIELD_COLUMNS)


def _options_in(members: Mapping[str, Any]) -> ImportOptions:
    """The member `options` of a document; the problem of a body that does not fit points into it."""
    refuse_nul(members)
    document = members.get("options")
    if document is None:
        return ImportOptions()
    try:
        return _options(ImportOptionsIn.model_validate_json(orjson.dumps(document)))
    except (ValidationError, orjson.JSONEncodeError) as error:
        found = from_body(error, document) if isinstance(error, ValidationError) else []
        errors = [FieldError(f"/options{each.path}", each.code, each.message) for each in found]
        raise invalid_body(errors, 422) from None


def _options(given: ImportQuery | ImportOptionsIn) -> ImportOptions:
    return ImportOptions(**given.model_dump(exclude={"tags"}), tags=tags_united(given.tags or ()))


def contact_import_routes(*, database: Database, ids: IdSource, imports: ContactImports) -> tuple[Route, ...]:
    """Hand in, and look how far it is."""
    operations = ImportOperations(database, ids, imports)
    return (
        Route(
            method="POST",
            path="/contacts/import",
            handler=operations.create,
            operation_id="importContacts",
            summary="Create and update contacts from a file",
            description=(
                "Up to 200,000 rows. Up to 2,000 are written in the call; more answer 202 when all of them are stored, "
                "and are written by and by. A later row of the same contact wins; what a row leaves empty stays as it "
                "is; a row that is not valid fails alone. CSV: a header of field names, `attributes.<key>`, "
                "`optIn.status`, `optIn.at`; `tags` separated by `|`; `,` or `;` between cells."
            ),
            query=ImportQuery,
            spooled={"application/json": ImportDocument, "application/x-ndjson": None, "text/csv": None},
            body_limit=BODY_LIMIT,
            responses={200: ImportOut, 202: ImportOut},
            errors=("IMPORT_INVALID", "INVALID_CHARACTER", "REFERENCE_NOT_FOUND"),
            idempotency=Idempotency.ACCEPTED,
            creates=True,
            examine=operations.examine,
            tag=CONTACTS.tag,
            scope=CONTACTS.writes,
            rate_class="bulk",
        ),
        CONTACTS.route(
            "GET /contacts/imports/{id}", "getContactImport", "See how far an import is", operations.read,
            responses={200: ImportOut}, load=operations.find, path_ids={"id": CONTACT_IMPORT},
        ),
    )  # fmt: skip
