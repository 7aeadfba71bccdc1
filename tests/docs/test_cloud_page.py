"""docs/cloud.md: its table of codes is that of the adapter, and its command prints the second factor that it uses."""

import os
import re
import subprocess
from pathlib import Path

from tests.channels.accounts import chatapp_account

from recado.channels.chatapp.cloud import Cloud
from recado.channels.chatapp.cloud_codes import MEANINGS
from recado.channels.core.provider import ACCOUNT_BLOCKED, Down, Refused, Retry, SlowDown, SlowPair
from recado.engine.clock import SystemClock

PAGE = (Path(__file__).parents[2] / "docs" / "cloud.md").read_text("utf-8")


def rows() -> list[tuple[list[int], str]]:
    """The codes of each row, and what happens."""
    table = PAGE.partition("| Codes |")[2].partition("\n\n")[0].splitlines()[2:]
    found = []
    for line in table:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        codes: list[int] = []
        for part in cells[0].split(", "):
            first, _, last = part.partition(" to ")
            codes += range(int(first), int(last or first) + 1)
        found.append((codes, cells[2]))
    return found


def kind(code: int) -> str:
    """How the page would tell of the meaning of a code."""
    match MEANINGS[code]:
        case SlowDown():
            return "the number pauses"
        case SlowPair():
            return "pair_limit"
        case Retry():
            return "tried again"
        case Down(code=reason):
            return "circuit opens" if reason == ACCOUNT_BLOCKED else "the same"
        case Refused(code=failure):
            return f"`{failure}`"
        case other:
            raise AssertionError(other)


def test_the_table_lists_every_code_once_with_what_the_adapter_makes_of_it() -> None:
    listed = [code for codes, _ in rows() for code in codes]
    assert sorted(listed) == sorted(MEANINGS)
    wrong = {code: happens for codes, happens in rows() for code in codes if kind(code) not in happens}
    assert wrong == {}


def test_the_command_prints_the_second_factor() -> None:
    command = re.search(r"```sh\n(python3 -c .*?)```", PAGE, re.DOTALL)
    assert command is not None
    script = command[1].replace("PHONE_NUMBER_ID", "106540352242922")
    environment = {**os.environ, "RECADO_CLOUD_APP_SECRET": "app-secret"}
    done = subprocess.run(["bash", "-euc", script], env=environment, capture_output=True, text=True, check=True)
    cloud = Cloud(url="https://graph.example.com/v24.0", app_secret="app-secret", clock=SystemClock())
    account = chatapp_account(phone_number_id="106540352242922", business_account_id="102290129340398")
    assert done.stdout.strip() == cloud._pin(account)
