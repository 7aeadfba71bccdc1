"""Evidence of a sound round, and the changes that make it a faulty one, for the tests of the judge."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.crash.endpoint import Arrival
from tests.crash.evidence import Evidence, Kill
from tests.crash.rows import CHARGE, Counts, Entry, Event, Rows, Wallet
from tests.crash.traffic import Letter, Mailing, Sender

from recado.simulator.behaviour import Given
from recado.simulator.record import Request

Change = Callable[[Evidence], Evidence]

START = datetime(2026, 11, 20, 12, tzinfo=UTC)
SENDER = Sender("num_1", "line-1", "tpl_1", 10)
BOTH = ("delivered", "read")


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def letter(index: int) -> Letter:
    return Letter(f"letter-{index}", f"+55119{index:08}", f"marker-{index}", SENDER, "normal", [f"msg_{index}"], 1)


def message(index: int, status: str = "read", **fields: Any) -> dict[str, Any]:
    stamps = {name: at(index / 10).isoformat() for name in ("sentAt", "deliveredAt", "readAt")}
    return {"status": status, "to": letter(index).recipient, "templateVars": [f"marker-{index}"], **stamps, **fields}


def request(index: int, seconds: float | None = None, **fields: Any) -> Request:
    moment = at(index / 10 if seconds is None else seconds)
    name = f"msg_{index}"
    made = Request(
        name, moment, "line-1", Given.ACCEPTED, name, f"person-{index}", f"sim_{index}", BOTH, True, moment
    )  # fmt: skip
    return replace(made, **fields)


def sound(count: int = 30) -> Evidence:
    """Thirty messages, ten a second, all read."""
    return Evidence(
        [letter(index) for index in range(count)],
        {f"msg_{index}": message(index) for index in range(count)},
        [request(index) for index in range(count)],
        [],
        [SENDER],
        rows=Rows(sound_events(count), wallet=sound_wallet(count)),
        arrivals=[Arrival(it.id, it.type, it.message_id) for it in sound_events(count)],
    )


def events(index: int, *names: str) -> list[Event]:
    return [Event(f"evt_{index}_{name}", f"message.{name}", f"msg_{index}") for name in names or ("sent", "read")]


def sound_events(count: int = 30) -> tuple[Event, ...]:
    return tuple(event for index in range(count) for event in events(index))


def sound_wallet(count: int = 30) -> Wallet:
    """A credit of 10,000 coins, and a charge of 6 for each message."""
    credit = Entry("led_000", "topup", 10_000, 10_000)
    charges = [Entry(f"led_{at + 1:03}", CHARGE, -6, 9_994 - 6 * at, f"msg_{at}") for at in range(count)]
    prices = {f"msg_{index}": 6 for index in range(count)}
    return Wallet(10_000 - 6 * count, 0, (credit, *charges), prices, {}, count)


def with_wallet(**fields: Any) -> Change:
    return lambda it: replace(it, rows=replace(it.rows, wallet=replace(it.rows.wallet or sound_wallet(), **fields)))


def uncharged(index: int, **held: int) -> Change:
    """As if the message had never been charged; `held`: what its row holds instead."""

    def changed(it: Evidence) -> Evidence:
        ledger, balance = [], 0
        for entry in sound_wallet().ledger:
            if entry.message_id != f"msg_{index}":
                balance += entry.coins
                ledger.append(replace(entry, balance_after=balance))
        rows = dict(held)
        return with_wallet(ledger=tuple(ledger), balance=balance, held=sum(rows.values()), held_by_rows=rows, units=29)(
            it
        )

    return changed


def batch(*indices: int, status: str = "completed", orders: tuple[str, ...] = (), **counts: int) -> Change:
    """As if these messages had been one batch of a campaign. `counts`: what its totals say instead of the truth."""

    def changed(it: Evidence) -> Evidence:
        letters = [one for one in it.letters if one.ids[0] not in {f"msg_{index}" for index in indices}]
        people = {letter(index).recipient: letter(index).marker for index in indices}
        mailing = Mailing("mailing", people, SENDER, "spring", ["btc_1"], 1, orders)
        tagged = {
            name: {**each, "batchId": "btc_1", "campaignId": "spring"}
            for name, each in it.messages.items()
            if name in {f"msg_{index}" for index in indices}
        }
        true = Counts(accepted=len(indices), read=len(indices), charged_coins=6 * len(indices))
        rows = replace(it.rows, batches={"btc_1": status}, totals={"btc_1": replace(true, **counts), "spring": true})
        return replace(it, letters=letters, mailings=[mailing], messages={**it.messages, **tagged}, rows=rows)

    return changed


def without_message(index: int) -> Change:
    return lambda it: replace(it, messages={name: each for name, each in it.messages.items() if name != f"msg_{index}"})


def unasked(it: Evidence) -> Evidence:
    return replace(it, mailings=[])


def with_events(index: int, *names: str) -> Change:
    """The message has these events and no others, and they arrived."""

    def changed(it: Evidence) -> Evidence:
        others = [event for event in it.rows.events if event.message_id != f"msg_{index}"]
        written = [*others, *(events(index, *names) if names else ())]
        arrivals = [Arrival(event.id, event.type, event.message_id) for event in written]
        return replace(it, rows=replace(it.rows, events=tuple(written)), arrivals=arrivals)

    return changed


def with_rows(**fields: Any) -> Change:
    return lambda it: replace(it, rows=replace(it.rows, **fields))


def with_arrivals(change: Callable[[list[Arrival]], list[Arrival]]) -> Change:
    return lambda it: replace(it, arrivals=change(list(it.arrivals)))


def provider_died(seconds: float, **claimed: float) -> Change:
    """At that moment; `claimed`: what stayed claimed since when."""
    rows = Rows(claimed={name: at(since) for name, since in claimed.items()})
    return lambda it: replace(it, provider_kills=[at(seconds)], rows=replace(it.rows, claimed=rows.claimed))


def with_message(index: int, **fields: Any) -> Change:
    return lambda it: replace(it, messages={**it.messages, f"msg_{index}": message(index, **fields)})


def with_requests(change: Callable[[Request], list[Request]]) -> Change:
    return lambda it: replace(it, requests=[made for each in it.requests for made in change(each)])


def of_third(change: Callable[[Request], list[Request]]) -> Change:
    return with_requests(lambda it: change(it) if it.id == "msg_3" else [it])


def killed(*claimed: str, seconds: float = 1.0, since: float = 0.0) -> Change:
    return lambda it: replace(it, kills=[Kill(at(seconds), dict.fromkeys(claimed, at(since)))])
