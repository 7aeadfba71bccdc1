"""The page on one message's life names all that can hold a message, and all that a call can come to."""

import re
from pathlib import Path
from typing import get_args

from recado.channels.core.provider import Outcome
from recado.domain.channels.chatapp import GATES
from recado.domain.messages.message import WaitReason

PAGE = (Path(__file__).parents[2] / "docs/one-message.md").read_text("utf-8")


def first_cells(heading: str) -> list[str]:
    """The codes in the first column of the table under a heading."""
    section = PAGE.partition(f". {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)


def test_every_reason_of_a_wait_has_its_line() -> None:
    # What is uncertain has left: it stands with the settlement.
    assert sorted(first_cells("Its turn")) == sorted(reason.value for reason in WaitReason if reason != "uncertain")
    reasons = [*dict.fromkeys(gate.reason for gate in GATES.gates)]
    assert [reason for reason in first_cells("Its turn") if reason in reasons] == reasons
    assert "waiting.reason: uncertain" in PAGE


def test_every_outcome_of_a_call_has_its_line() -> None:
    assert sorted(first_cells("Settlement")) == sorted(outcome.__name__ for outcome in get_args(Outcome))
