"""Identities at SES: whether it sends from a domain, and the records by which it learns whose that is (C10.4)."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import structlog

from recado.channels.core.errors import NothingDoneError, ProviderError
from recado.domain.email.sender import DnsRecord, SenderLook, parents_of

ZONE: Final = "dkim.amazonses.com"
MOST_TOKENS: Final = 10
_NOT_THERE: Final = "NotFoundException"
_THERE_ALREADY: Final = "AlreadyExistsException"
_NOT_ALLOWED: Final = frozenset({"AccessDenied", "AccessDeniedException"})
_ADDRESS: Final = re.compile(r"[!-?A-~]{1,64}@[!-?A-~]{1,255}")  # of ASCII: SES knows no other

log = structlog.get_logger()


class _SaidNoError(Exception):
    """SES did nothing. `code`: why."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class _NotAllowedError(Exception):
    """The access key may not do this."""


async def identity_of(client: Any, domain: str, address: str | None = None) -> SenderLook | None:
    """How the identity of a domain stands. It sends, too, where that of a domain above it or of `address` does.

    None where the access key may not ask. Where it may not ask for one of those others, `proven` is None.
    Raises `ProviderError` when nothing is told.
    """
    try:
        there = await _get(client, domain)
    except _NotAllowedError:
        return None
    own = SenderLook((), False, untold=True) if there is None else _look(there, domain)
    if own.proven:
        return own
    not_told = False
    for name in _covering(domain, address):
        try:
            other = await _get(client, name)
        except _NotAllowedError:
            not_told = True
        else:
            if other is not None and _sends(other):
                return SenderLook((), True)
    return SenderLook(own.records, None) if not_told else own


async def make_identity(client: Any, domain: str) -> SenderLook | None:
    """As `IdentityMaker.make`."""
    try:
        async with _answered():
            return _look(await client.create_email_identity(EmailIdentity=domain), domain)
    except _NotAllowedError:
        return None
    except _SaidNoError as no:
        if no.code == _THERE_ALREADY:
            return None
        raise NothingDoneError("unreachable", "provider_error", f"SES answered {no.code}") from None


async def remove_identity(client: Any, domain: str) -> None:
    """As `IdentityMaker.remove`."""
    try:
        async with _answered():
            await client.delete_email_identity(EmailIdentity=domain)
    except _NotAllowedError:
        raise ProviderError("refused", "not_allowed", "SES does not let the access key") from None
    except _SaidNoError as no:
        if no.code != _NOT_THERE:
            raise _no_answer(no.code) from None


def _covering(domain: str, address: str | None) -> tuple[str, ...]:
    """What else may let an e-mail leave from there. SES tells the case of what stands before the `@`."""
    local = (address or "").rpartition("@")[0]
    exact = f"{local}@{domain}"
    return (exact, *parents_of(domain)) if _ADDRESS.fullmatch(exact) else parents_of(domain)


async def _get(client: Any, name: str) -> Mapping[str, Any] | None:
    """An identity; None: it is not there. Raises `_NotAllowedError`, `ProviderError`."""
    try:
        async with _answered():
            found: Mapping[str, Any] = await client.get_email_identity(EmailIdentity=name)
            return found
    except _SaidNoError as no:
        if no.code == _NOT_THERE:
            return None
        raise _no_answer(no.code) from None


@asynccontextmanager
async def _answered() -> AsyncIterator[None]:
    """Raises `_NotAllowedError`, `_SaidNoError`, and `ProviderError` where nobody knows what SES did."""
    from botocore import exceptions

    try:
        yield
    except exceptions.ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", ""))
        if code in _NOT_ALLOWED:
            log.warning("ses_identity_not_told", operation=error.operation_name)
            raise _NotAllowedError from None
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        if 400 <= status < 500 and status != 408:
            raise _SaidNoError(code) from None
        raise _no_answer(code) from None
    except (exceptions.BotoCoreError, OSError, ValueError):
        raise ProviderError("unreachable", "no_answer", "SES did not answer") from None


def _no_answer(code: str) -> ProviderError:
    return ProviderError("unreachable", "provider_error", f"SES answered {code}")


def _sends(told: Mapping[str, Any]) -> bool:
    return told.get("VerifiedForSendingStatus") is True


def _look(told: Mapping[str, Any], domain: str) -> SenderLook:
    dkim = told.get("DkimAttributes") or {}
    signs = dkim.get("Status") == "SUCCESS"
    zone = dkim.get("SigningHostedZone") or ZONE
    # With a key of the account's own the record of that key is wanted, which nobody tells.
    tokens = [] if dkim.get("SigningAttributesOrigin") == "EXTERNAL" else (dkim.get("Tokens") or [])[:MOST_TOKENS]
    records = [DnsRecord("CNAME", f"{each}._domainkey.{domain}", f"{each}.{zone}", signs) for each in tokens]
    return SenderLook(tuple(records), _sends(told))
