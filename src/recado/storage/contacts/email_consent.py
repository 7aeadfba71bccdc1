"""What the contacts with an e-mail address consented to, as a part of the statements that ask for it (C12.5.4)."""

from collections.abc import Mapping

from recado.domain.contacts.consent import ConsentStatus
from recado.storage.core.statements.sql import fragments

SQL = fragments("email_consent")


def by_address(
    *, organization: str = "g.organization_id", env: str = "g.env", email: str = "g.email"
) -> Mapping[str, str]:
    """The conditions `{denied}` and `{granted}`: anyone with the address is so. `email`: how a statement names that."""
    named = SQL.anyone.replace("{organization}", organization).replace("{env}", env).replace("{email}", email)
    return {status.value: named.replace("{status}", status) for status in (ConsentStatus.DENIED, ConsentStatus.GRANTED)}
