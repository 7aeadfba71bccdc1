"""What docs/wallet.md shows is so."""

import re
from pathlib import Path
from typing import get_args

import orjson

from recado.channels.payments.payments import payments_of
from recado.http.routes.billing.wallet_models import Kind, WalletOut

PAGE = (Path(__file__).parents[2] / "docs" / "wallet.md").read_text("utf-8")


def test_the_callback_of_the_page_is_one() -> None:
    (example,) = re.findall(r"<!-- example: payments -->\n```json\n(.*?)```", PAGE, re.DOTALL)
    payments = payments_of(example.encode())
    assert [(payment.status, payment.amount_cents) for payment in payments] == [("paid", 5_000), ("canceled", None)]
    assert all(len(payment.reference) == 27 for payment in payments)


def test_the_wallet_of_the_page_is_one() -> None:
    shown = orjson.loads(re.findall(r"```json\n(\{\n  \"id\": \"wal_.*?)```", PAGE, re.DOTALL)[0])
    assert set(shown) == {info.alias for info in WalletOut.model_fields.values()}
    assert shown["availableCoins"] == shown["balanceCoins"] - shown["heldCoins"]


def test_every_kind_of_entry_is_in_the_table() -> None:
    table = PAGE.partition("| `kind` | `coins` | |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)) == set(get_args(Kind))
