"""What must be true of the wallet after the crashes: it balances to the coin (C25.2). Pure."""

from collections import Counter
from collections.abc import Iterable

from tests.crash.evidence import Evidence
from tests.crash.rows import CHARGE, Wallet


def wallet_violations(evidence: Evidence) -> Iterable[str]:
    """Everything that is wrong, one line each."""
    wallet = evidence.rows.wallet
    if wallet is not None:
        yield from _unbalanced(wallet)
        yield from _wrong_charges(evidence, wallet)


def _unbalanced(wallet: Wallet) -> Iterable[str]:
    total = 0
    for entry in wallet.ledger:
        total += entry.coins
        if entry.balance_after != total:
            yield f"{entry.id} says that {entry.balance_after} coins were left, not {total}"
    if wallet.balance != total:
        yield f"the balance is {wallet.balance} coins, the ledger's sum {total}"
    if wallet.held != (rows := sum(wallet.held_by_rows.values())):
        yield f"{wallet.held} coins are held, by rows of the queue {rows}"
    if wallet.balance < wallet.held:
        yield f"{wallet.held} coins are held of a balance of {wallet.balance}"


def _wrong_charges(evidence: Evidence, wallet: Wallet) -> Iterable[str]:
    """Exactly one charge, of its price, for each message that was sent; a hold for each that may still be."""
    charged = Counter(entry.message_id for entry in wallet.ledger if entry.kind == CHARGE)
    for message_id, count in charged.items():
        if count > 1:
            yield f"{message_id} was charged {count} times"
    paid = {entry.message_id: -entry.coins for entry in wallet.ledger if entry.kind == CHARGE}
    for message_id, message in evidence.messages.items():
        price, coins = wallet.prices.get(message_id), paid.pop(message_id, None)
        held = wallet.held_by_rows.get(message_id)
        if not price:
            yield f"{message_id} has no price"
        sent = message["status"] in ("sent", "delivered", "read") or bool(message.get("sentAt"))
        if message["status"] in ("queued", "sending"):
            if (coins, held) != (None, price):
                yield f"{message_id} is {message['status']}, was charged {coins} and holds {held} of {price} coins"
        elif (coins, held) != (price if sent else None, None):
            end = f"{message['status']}{'' if sent else ' and never sent'}"
            yield f"{message_id} is {end}, was charged {coins} and holds {held} of {price} coins"
    yield from (f"{message_id} was charged, and does not exist" for message_id in paid)
    # A unit is a message, or a part of an SMS, as the provider got them.
    parts = {request.id: request.parts for request in evidence.requests}
    counted = sum(count * parts.get(message_id, 1) for message_id, count in charged.items())
    if wallet.units != counted:
        yield f"{wallet.units} units count for the tier, and {counted} were charged"
