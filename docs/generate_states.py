"""Writes docs/states.md from the state tables of the domain: `python docs/generate_states.py` (part of `make docs`)."""

from enum import StrEnum
from pathlib import Path
from typing import Any

from recado.domain.access.account import ACCOUNT_MACHINE
from recado.domain.batches.batch import BATCH_MACHINE
from recado.domain.batches.campaign import CAMPAIGN_MACHINE
from recado.domain.billing.top_up import TOP_UP_MACHINE
from recado.domain.billing.wallet import WALLET_MACHINE
from recado.domain.channels.installed import INSTALLED
from recado.domain.channels.policy import Policy
from recado.domain.contacts.consent import CONSENT_MACHINE
from recado.domain.core.machine import Machine, mermaid
from recado.domain.email.sender import EMAIL_SENDER_MACHINE
from recado.domain.flows.flow import FLOW_MACHINE
from recado.domain.journeys.execution import EXECUTION_MACHINE
from recado.domain.journeys.journey import JOURNEY_MACHINE
from recado.domain.messages.message import MessageEvent, MessageStatus
from recado.domain.push.device import DEVICE_MACHINE
from recado.domain.push.message import DISPATCH_MACHINE, PUSH_MACHINE
from recado.domain.senders.number import NUMBER_MACHINE
from recado.domain.senders.social_account import SOCIAL_ACCOUNT_MACHINE
from recado.domain.templates.template import TEMPLATE_MACHINE
from recado.domain.webhooks.webhook import SUBSCRIPTION_MACHINE

PAGE = Path(__file__).with_name("states.md")

HEAD = """\
# States

What a message, an SMS, an e-mail, a social message, a batch, a number, a social account, a template, a flow, \
a sender of e-mail, a webhook subscription, a campaign, a journey, an execution, a wallet, a top-up, \
an account and a consent can be, and what moves them. The
diagrams and tables are written by `make docs` from the literal tables in `src/recado/domain/`; the comments there say
who causes each event. A pair of state and event that is not listed cannot happen: through the API it answers 409
`INVALID_STATE`, and SQL updates have the same guard.
"""


def of_channel(policy: Policy) -> tuple[str, str, Machine[Any, Any]]:
    """The section on the messages of a channel."""
    waiting = {MessageStatus.QUEUED, policy.machine.move(MessageStatus.QUEUED, MessageEvent.CLAIM)}
    known = [f"`{state}`" for state in MessageStatus if state in waiting]
    has = "have" if len(known) > 1 else "has"
    text = f"{' and '.join(known)} {has} a row in the dispatch table; every other state is settled."
    if policy.late_reports:
        causes = [policy.unanswered, *(due.cause for due in policy.after_sent.values() if due.cause is not None)]
        codes = " or ".join(dict.fromkeys(f"`{cause.code}`" for cause in causes if not cause.certain))
        text += (
            f" The events `late_…` revive only a\nfailure by {codes}: a report that comes after the day of waiting is "
            "believed."
        )
    for state, shown in policy.shown.items():
        text += f" In the generic view `{state}` shows as `{shown}`."
    name = policy.machine.name
    return name[0].upper() + name[1:], text, policy.machine


SECTIONS: tuple[tuple[str, str, Machine[Any, Any]], ...] = (
    *map(of_channel, INSTALLED),
    (
        "Batch",
        "Messages of a `paused` one wait; the last one that leaves or ends completes it.",
        BATCH_MACHINE,
    ),
    (
        "Number",
        "Only a `connected` number sends everything; a `flagged` one sends critical messages and replies.",
        NUMBER_MACHINE,
    ),
    ("Social account", "Only a `connected` one sends.", SOCIAL_ACCOUNT_MACHINE),
    ("Template", "Only an `approved` template is sendable; messages of a `paused` one wait.", TEMPLATE_MACHINE),
    (
        "Flow",
        "Only an `active` flow is sendable; the customer resumes a `paused` one, or the provider clears it.",
        FLOW_MACHINE,
    ),
    (
        "E-mail sender",
        "Only a `verified` one sends; `lost` is the third daily look in a row without its record.",
        EMAIL_SENDER_MACHINE,
    ),
    (
        "Push device",
        "Only a `registered` one is reached; apps register at each start, which undoes no opt-out.",
        DEVICE_MACHINE,
    ),
    ("Push message", "After a day what is left of it fails, and it is over.", PUSH_MACHINE),
    ("Push dispatch", "Of one device; a day without an outcome is a refusal.", DISPATCH_MACHINE),
    (
        "Webhook subscription",
        "Events are queued for an `active` or `failing` one; of a `failing` one a single delivery is tried at a time.",
        SUBSCRIPTION_MACHINE,
    ),
    (
        "Consent",
        "A contact's; [C12.5](contract.md#C12.5) says what a change needs, and how one that is not listed is answered.",
        CONSENT_MACHINE,
    ),
    (
        "Campaign",
        "A campaign exists from its first accepted message on; one that is accepted later opens it again.",
        CAMPAIGN_MACHINE,
    ),
    (
        "Wallet",
        "What is available against the threshold. A wallet recovers at 110 % of it.",
        WALLET_MACHINE,
    ),
    (
        "Journey",
        "Only an `ativa` one takes contacts along; of a `pausada` one all stands still. An `arquivada` one stays so.",
        JOURNEY_MACHINE,
    ),
    (
        "Execution",
        "A contact's way through a journey. What ends it is its `motivo`; only an `ativa` one moves.",
        EXECUTION_MACHINE,
    ),
    ("Top-up", "Coins are credited when one becomes `paid`.", TOP_UP_MACHINE),
    ("Account", "Only an `active` account signs in; one that is disabled loses its sessions.", ACCOUNT_MACHINE),
)


def render() -> str:
    """The whole page."""
    return HEAD + "".join(_section(title, text, machine) for title, text, machine in SECTIONS)


def _section(title: str, text: str, machine: Machine[Any, Any]) -> str:
    rows = [_row("", how, state) for how, state in machine.initial.items()]
    rows += [_row(state, event.value, target) for state, event, target in machine.transitions()]
    table = "\n".join(["| From | Event | To |", "|---|---|---|", *rows])
    return f"\n## {title}\n{text}\n\n```mermaid\n{mermaid(machine)}\n```\n\n{table}\n"


def _row(source: StrEnum | str, event: str, target: StrEnum) -> str:
    return f"| {source or 'new'} | {event} | {target} |"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
