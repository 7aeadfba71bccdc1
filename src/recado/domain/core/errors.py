"""The catalogue of problem codes and the one exception that carries them.

Every refusal that a caller can see is a `Problem` with a code of this file (C4.2); the HTTP layer renders it, nobody
else decides statuses. Detail texts never contain personal data (C4.1).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from recado.domain.core.counting import counted

MAX_FIELD_ERRORS = 50
_MOST_TOLD: Final = 3
_LONGEST_TOLD: Final = 200  # characters of one message, which `errors` holds too
_PLAIN_PATH: Final = re.compile(r"[A-Za-z0-9/_.-]{0,120}")

KINDS: dict[int, str] = {
    400: "BAD_REQUEST",
    401: "UNAUTHORIZED",
    402: "PAYMENT_REQUIRED",
    403: "FORBIDDEN",
    404: "NOT_FOUND",
    405: "BAD_REQUEST",
    408: "BAD_REQUEST",
    409: "CONFLICT",
    412: "PRECONDITION_FAILED",
    413: "BAD_REQUEST",
    415: "BAD_REQUEST",
    416: "BAD_REQUEST",
    422: "VALIDATION_ERROR",
    429: "RATE_LIMITED",
    500: "INTERNAL_ERROR",
    502: "DEPENDENCY_FAILED",
    503: "SERVICE_UNAVAILABLE",
}


@dataclass(frozen=True, slots=True)
class Code:
    """One entry of the catalogue: the HTTP status, the kind of that status, and the fixed English title."""

    status: int
    kind: str
    title: str


_TITLES: dict[int, dict[str, str]] = {
    400: {
        "BAD_REQUEST": "The request is not valid",
        "MALFORMED_JSON": "The body is not valid JSON",
        "INVALID_PARAMETER": "A parameter is not valid",
        "INVALID_CURSOR": "The cursor is not valid for this list",
        "INVALID_PERIOD": "The period is not valid",
        "IDEMPOTENCY_KEY_REQUIRED": "An Idempotency-Key header is required",
        "IDEMPOTENCY_KEY_INVALID": "The Idempotency-Key header is not valid",
        "NUMBER_NOT_OWNED": "The number is not one of this organization",
        "WEB_PUSH_KEYS_REQUIRED": "A web push registration needs both of its keys",
    },
    401: {
        "UNAUTHORIZED": "A valid credential is required",
        "API_KEY_EXPIRED": "The API key has expired",
        "API_KEY_REVOKED": "The API key was revoked",
        "SESSION_EXPIRED": "The session has expired",
        "INVALID_LOGIN": "The e-mail address or the password is wrong",
        "INVALID_SIGNATURE": "The signature is not valid",
    },
    402: {"PAYMENT_REQUIRED": "The balance is not sufficient"},
    403: {
        "FORBIDDEN": "The operation is not allowed",
        "SCOPE_REQUIRED": "The credential lacks a scope",
        "SESSION_ONLY": "The operation needs a dashboard session",
        "ORGANIZATION_SUSPENDED": "The organization is suspended",
        "IP_NOT_ALLOWED": "The API key is not allowed from this address",
        "SCOPE_ESCALATION": "A credential grants only scopes that it holds",
    },
    404: {
        "NOT_FOUND": "The resource does not exist",
        "ROUTE_NOT_FOUND": "The route does not exist",
        "MEDIA_EXPIRED": "The media is no longer stored",
    },
    405: {"METHOD_NOT_ALLOWED": "The method is not allowed on this route"},
    409: {
        "CONFLICT": "The request conflicts with the present state",
        "LIST_NAME_TAKEN": "Another list has this name",
        "SEGMENT_NAME_TAKEN": "Another segment has this name",
        "PHONE_TAKEN": "Another contact has this phone",
        "EXTERNAL_ID_TAKEN": "Another contact has this external id",
        "TEMPLATE_NAME_TAKEN": "Another template of the number has this name and language",
        "EMAIL_TEMPLATE_NAME_TAKEN": "Another e-mail template has this name",
        "FLOW_NAME_TAKEN": "Another flow has this name",
        "NUMBER_TAKEN": "The number is registered already",
        "SENDER_TAKEN": "The sender is registered already",
        "SOCIAL_ACCOUNT_TAKEN": "The social account is registered already",
        "SOCIAL_IDENTITY_TAKEN": "Another contact has this social identity",
        "ACCOUNT_EMAIL_TAKEN": "Another account has this e-mail address",
        "CNPJ_JA_CADASTRADO": "Another company has this CNPJ",
        "RESOURCE_IN_USE": "The resource is in use",
        "INVALID_STATE": "The state of the resource does not allow this",
        "LIMIT_REACHED": "A limit on the number of resources is reached",
        "ALREADY_REPLACED": "The message was replaced already",
        "IDEMPOTENCY_IN_PROGRESS": "The first request with this Idempotency-Key is still running",
        "CONSENTIMENTO_ANTERIOR_A_RECUSA": "The consent is older than the refusal",
        "JORNADA_NAO_E_RASCUNHO": "The journey is not a draft",
        "JORNADA_NAO_ATIVA": "The journey is not active",
        "JORNADA_ARQUIVADA": "The journey is archived",
        "ENTRADAS_ENCERRADAS": "The journey takes no more entries",
        "LIMITE_DE_JORNADAS": "The limit of journeys is reached",
        "VERSAO_EM_RASCUNHO": "The journey has a version in draft already",
        "GATILHO_NAO_E_API": "The trigger of the journey is not the API",
    },
    412: {
        "VERSION_MISMATCH": "The resource has another version",
        "SENDER_NOT_VERIFIED": "The sender is not verified",
    },
    413: {
        "BODY_TOO_LARGE": "The body is too large",
        "MEDIA_TOO_LARGE": "The media is too large",
    },
    415: {
        "UNSUPPORTED_MEDIA_TYPE": "The content type is not supported",
        "MEDIA_TYPE_NOT_ALLOWED": "The media type is not allowed",
        "MEDIA_TYPE_MISMATCH": "The media is not of the declared type",
    },
    416: {"RANGE_NOT_SATISFIABLE": "The range lies outside the media"},
    422: {
        "VALIDATION_ERROR": "The request has invalid fields",
        "INVALID_CHARACTER": "A text contains a character that is not allowed",
        "PHONE_INVALID": "The phone is not a valid international number",
        "PHONE_IMMUTABLE": "The phone of a contact cannot change",
        "CPF_INVALID": "The CPF is not valid",
        "CNPJ_INVALID": "The CNPJ is not valid",
        "URL_NOT_ALLOWED": "The URL is not allowed",
        "TOO_MANY_IDENTIFIERS": "The call names too many identifiers",
        "NO_MEMBER_MATCHED": "No contact matched",
        "METADATA_INVALID": "The metadata is not valid",
        "DATA_DO_CONSENTIMENTO_NO_FUTURO": "The date of the consent lies in the future",
        "CONSENTIMENTO_SEM_ORIGEM": "The consent has no source",
        "CONTACT_OPTED_OUT": "The contact opted out",
        "CONSENT_REQUIRED": "The contact has not granted consent",
        "RECIPIENT_SUPPRESSED": "The recipient is suppressed",
        "RECIPIENT_MISMATCH": "The recipient is not the phone of the contact",
        "RECIPIENT_MISSING": "The message has no recipient",
        "REFERENCE_NOT_FOUND": "The request refers to something that does not exist",
        "NUMBER_UNAVAILABLE": "The number cannot send now",
        "TEMPLATE_NOT_APPROVED": "The template is not approved",
        "TEMPLATE_VARS_MISMATCH": "The variables do not fit the template",
        "TEMPLATE_RULES": "The template breaks rules of the provider",
        "VARIABLE_NOT_DECLARED": "A variable is not declared",
        "WINDOW_CLOSED": "The recipient has no open conversation window",
        "MEDIA_NOT_FOUND": "The media does not exist",
        "PRIORITY_NOT_ALLOWED": "The priority is not allowed for this message",
        "SCHEDULE_TOO_FAR": "The message is scheduled too far ahead",
        "TEXT_TOO_LONG": "The text is too long",
        "ROUTE_NOT_AVAILABLE": "The route is not available",
        "CONTENT_REJECTED": "The content was rejected",
        "EMPTY_AUDIENCE": "The audience is empty",
        "AUDIENCE_INVALID": "The audience is not valid",
        "PERIOD_TOO_LONG": "The period is too long",
        "EVENT_IN_FUTURE": "The event lies in the future",
        "EVENT_TOO_OLD": "The event is too old",
        "FILTER_INVALID": "The filter is not valid",
        "FLOW_JSON_INVALID": "The flow definition is not valid",
        "MJML_INVALID": "The MJML is not valid",
        "IDEMPOTENCY_KEY_REUSED": "The Idempotency-Key was used with another request",
        "JORNADA_COM_PROBLEMAS": "The journey has problems",
        "IMPORT_INVALID": "The import is not valid",
    },
    429: {
        "RATE_LIMITED": "Too many requests",
        "TOO_MANY_ATTEMPTS": "Too many failed attempts",
    },
    500: {"INTERNAL_ERROR": "An internal error occurred"},
    502: {
        "DEPENDENCY_FAILED": "A provider failed",
        "PROVIDER_TIMEOUT": "The provider did not answer in time",
        "STORAGE_FAILED": "The media storage failed",
    },
    503: {"SERVICE_UNAVAILABLE": "The service cannot take the request now"},
}

CODES: dict[str, Code] = {
    code: Code(status, KINDS[status], title) for status, titles in _TITLES.items() for code, title in titles.items()
}
"""Every code of C4.2 under its status. `AUDIENCE_INVALID` stands under two: 422, and 400 from the push preview."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one field: a JSON pointer (`/metadata/key`) or a parameter name, a code, and a sentence."""

    path: str
    code: str
    message: str


class Problem(Exception):
    """A refusal that the caller sees (C4.1).

    `code` is a key of `CODES`; `detail` tells this occurrence in English and holds no personal data. `errors` are cut
    at 50; of `meta`, what is None is left out. `status` overrides the status of the catalogue where an operation
    answers the same code under another one (C4.3); the kind follows it.
    """

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        errors: Iterable[FieldError] = (),
        meta: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(code, detail)
        entry = CODES[code]
        self.code = code
        self.detail = detail
        self.title = entry.title
        self.status = entry.status if status is None else status
        self.kind = KINDS[self.status]
        self.errors: Sequence[FieldError] = tuple(errors)[:MAX_FIELD_ERRORS]
        self.meta: Mapping[str, Any] = {name: value for name, value in (meta or {}).items() if value is not None}
        self.headers: Mapping[str, str] = headers or {}

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}"


class Unavailable(Problem):
    """503 with `Retry-After` in whole seconds: a bound is reached or the database is away; nothing was done."""

    def __init__(self, detail: str = "The service is busy: try again shortly.", *, retry_after: int = 1) -> None:
        super().__init__("SERVICE_UNAVAILABLE", detail, headers={"Retry-After": str(max(1, retry_after))})


def problem_slug(code: str) -> str:
    """The last path segment of a problem's `type`: `PHONE_INVALID` → `phone-invalid` (C4.1)."""
    return code.lower().replace("_", "-")


NO_SUCH_RESOURCE: Final = "No such resource."


def not_found() -> Problem:
    """404, the same for a missing, a foreign and a malformed id (C2.1, C2.2). The dispatcher names the record."""
    return Problem("NOT_FOUND", NO_SUCH_RESOURCE)


def test_only() -> Problem:
    """404 of the sandbox's operations, which a live credential does not have (C29.4)."""
    return Problem("NOT_FOUND", "The sandbox works with test keys only.")


def conflict(code: str, detail: str, **meta: Any) -> Problem:
    """409 with one of the conflict codes, and its `meta`."""
    return Problem(code, detail, meta=meta)


def no_provider(channel: str) -> Problem:
    """502: this installation has nobody who sends on the channel in this environment (C33)."""
    return Problem(
        "DEPENDENCY_FAILED",
        f"This installation has no provider of {channel} for live: ask its operator, or use a test key.",
    )


def validation_error(
    errors: Sequence[FieldError], *, code: str = "VALIDATION_ERROR", status: int | None = None, **meta: Any
) -> Problem:
    """422 (or the status of the operation, C4.3) with one entry for each bad field, and `meta`."""
    return Problem(code, told(errors), errors=errors, status=status, meta=meta)


def field_refused(code: str, path: str, message: str, **meta: Any) -> Problem:
    """The refusal of one field under a code of its own: `message` is a sentence, the detail too (C4.1)."""
    return Problem(code, message, errors=[FieldError(path, code, message)], meta=meta)


def told(errors: Sequence[FieldError], what: str = "field") -> str:
    """Return one sentence on all errors: `1 invalid field: /type is required.`; a few of them when there are many.

    A message is either the rest of a sentence that begins with the path, or, with a capital or a quoted name at its
    start, a sentence of its own.
    """
    if len(errors) == 1 and _is_sentence(errors[0].message):
        return errors[0].message
    parts = [_part(error) for error in errors[:_MOST_TOLD]]
    more = f"; {len(errors) - _MOST_TOLD} more" if len(errors) > _MOST_TOLD else ""
    said = f"{counted(len(errors), f'invalid {what}')}: {'; '.join(parts)}{more}"
    return said if said.endswith("?") else f"{said}."


def _is_sentence(message: str) -> bool:
    return message.endswith(".")


def _part(error: FieldError) -> str:
    # A path may hold a name of the caller's own: it stays out of the sentence unless it looks like one of ours.
    where = error.path if _PLAIN_PATH.fullmatch(error.path) else "a member"
    if len(error.message) > _LONGEST_TOLD:
        return f"{where or 'the body'} is not valid, and `errors` says why"
    if _is_sentence(error.message):
        return f"{where}: {error.message[:-1]}"
    return f"{where or 'the body'} {error.message}"
