"""What the social adapters need to know of an account besides what every channel has."""

from dataclasses import dataclass, field

from recado.channels.core.provider import Account


@dataclass(frozen=True, slots=True, kw_only=True)
class SocialDetails:
    """Of an `Account` whose `provider_id` is the platform's account id."""

    platform: str
    access_token: str | None = field(default=None, repr=False)


def social_details(account: Account) -> SocialDetails:
    assert isinstance(account.details, SocialDetails)  # noqa: S101 - made by whoever reads the account
    return account.details
