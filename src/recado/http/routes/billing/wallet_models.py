"""Bodies and views of the wallet, its ledger, its top-ups and the prices (C25.1)."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from recado.domain.billing.top_up import LEAST_CENTS, MOST_CENTS, MOST_COINS
from recado.domain.billing.wallet import MOST_BALANCE
from recado.http.api.models import ApiModel, PatchModel, Timestamp, unset
from recado.http.api.paging import CountedPage, CursorPage, CursorQuery, PeriodQuery
from recado.http.routes.core.groups import Group
from recado.http.routes.core.views import view_of
from recado.storage.billing.ledger import LedgerEntry, WalletRecord
from recado.storage.billing.top_ups import TopUp

WALLET = Group("Wallet", "wallet:read", "wallet:write")

Kind = Literal["topup", "charge", "refund", "adjustment"]
Env = Literal["live", "test"]
Status = Literal["ok", "low", "depleted"]
Reference = Annotated[str, Field(min_length=1, max_length=128)]


class WalletPatch(PatchModel):
    """The balance below which the wallet is low; 0 turns that off."""

    low_balance_threshold_coins: Annotated[int, Field(ge=0, le=MOST_BALANCE)] = unset()


class WalletOut(ApiModel):
    """What an environment has. Coins are whole numbers; 10,000 are BRL 1.00."""

    id: str
    env: Env
    status: Status
    balance_coins: int
    held_coins: Annotated[int, Field(description="Of accepted sends that have not left.")]
    available_coins: Annotated[int, Field(description="The balance less what is held.")]
    low_balance_threshold_coins: int
    updated_at: Timestamp


class LedgerQuery(CursorQuery, PeriodQuery):
    """Filters of the ledger; `from` is included, `to` is not."""

    kind: Kind | None = None
    message_id: Annotated[str | None, Field(min_length=1, max_length=64)] = None


class LedgerEntryOut(ApiModel):
    """One change of the balance."""

    id: str
    kind: Kind
    coins: Annotated[int, Field(description="Signed: what the balance gained.")]
    balance_after: int
    channel: str | None = None
    message_id: str | None = None
    batch_id: str | None = None
    description: str | None = None
    created_at: Timestamp


class LedgerPage(CursorPage[LedgerEntryOut]):
    """Entries, newest first."""


class TopUpCreate(ApiModel):
    """In test `coins`, credited at once; in live `amountCents`, credited when they are paid."""

    coins: Annotated[int | None, Field(ge=1, le=MOST_COINS)] = None
    amount_cents: Annotated[
        int | None, Field(ge=LEAST_CENTS, le=MOST_CENTS, description="BRL cents; 100 coins each.")
    ] = None


class TopUpOut(ApiModel):
    """A top-up."""

    id: str
    status: Literal["pending", "paid", "expired", "canceled"]
    coins: int
    amount_cents: Annotated[int | None, Field(description="In live only.")] = None
    payment_reference: Annotated[str | None, Field(description="Names the top-up in its payment; in live only.")] = None
    created_by_id: str | None = None
    expires_at: Annotated[Timestamp | None, Field(description="Until then it can be paid.")] = None
    paid_at: Timestamp | None = None
    created_at: Timestamp
    updated_at: Timestamp


class TopUpPage(CountedPage[TopUpOut]):
    """Top-ups, newest first."""


class WalletCredit(ApiModel):
    """Coins for a wallet; fewer than none adjust it down. The same `reference` credits once."""

    env: Env
    coins: Annotated[int, Field(ge=-MOST_COINS, le=MOST_COINS)]
    reference: Reference

    @field_validator("coins")
    @classmethod
    def _something(cls, coins: int) -> int:
        if coins == 0:
            raise ValueError("must not be 0")
        return coins


class CreditOut(ApiModel):
    """The entry of a credit, and the wallet as it is now."""

    entry: LedgerEntryOut
    wallet: WalletOut
    replayed: bool


wallet_view = view_of(WalletRecord, WalletOut)
entry_view = view_of(LedgerEntry, LedgerEntryOut)
top_up_view = view_of(TopUp, TopUpOut)
