"""Identities at SES: whether it sends from a domain, and the records by which it learns whose that is (C10.4)."""

from collections.abc import Mapping
from typing import Any, Final

import structlog

from recado.channels.core.errors import ProviderError
from recado.domain.email.sender import DnsRecord, SenderLook

ZONE: Final = "dkim.amazonses.com"
MOST_TOKENS: Final = 10
_NOT_THERE: Final = "NotFoundException"
_NOT_ALLOWED: Final = frozenset({"AccessDenied", "AccessDeniedException"})

log = structlog.get_logger()


async def identity_of(client: Any, domain: str) -> SenderLook | None:
    """How the identity of a domain stands. One that is not there is made, for its records to be entered.

    None where the access key may not ask. Raises `ProviderError` when nothing is told.
    """
    from botocore import exceptions

    try:
        try:
            return _look(await client.get_email_identity(EmailIdentity=domain), domain)
        except exceptions.ClientError as error:
            if _code(error) != _NOT_THERE:
                raise
        return _look(await client.create_email_identity(EmailIdentity=domain), domain)
    except exceptions.ClientError as error:
        code = _code(error)
        if code not in _NOT_ALLOWED:
            raise ProviderError("unreachable", "provider_error", f"SES answered {code}") from None
        log.warning("ses_identity_not_told", operation=error.operation_name)
        return None
    except (exceptions.BotoCoreError, OSError, ValueError):
        raise ProviderError("unreachable", "no_answer", "SES did not answer") from None


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _look(told: Mapping[str, Any], domain: str) -> SenderLook:
    dkim = told.get("DkimAttributes") or {}
    signs = dkim.get("Status") == "SUCCESS"
    zone = dkim.get("SigningHostedZone") or ZONE
    # With a key of the account's own the record of that key is wanted, which nobody tells.
    tokens = [] if dkim.get("SigningAttributesOrigin") == "EXTERNAL" else (dkim.get("Tokens") or [])[:MOST_TOKENS]
    records = [DnsRecord("CNAME", f"{each}._domainkey.{domain}", f"{each}.{zone}", signs) for each in tokens]
    return SenderLook(tuple(records), told.get("VerifiedForSendingStatus") is True)
