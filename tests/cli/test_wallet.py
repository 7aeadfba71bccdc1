"""`recado wallet` beside a running server's database (C35)."""

import asyncio
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from recado.engine.clock import SystemClock
from recado.storage.embedded.embedded import EmbeddedPostgres

Recado = Callable[..., "subprocess.CompletedProcess[str]"]
SANDBOX = 1_000_000_000


@pytest.fixture(scope="module")
def installed(recado: Recado, folder: str) -> Iterator[str]:
    """A folder with the demonstration, its database in use, as while the service runs."""
    made = recado("keys", "create", "--data-dir", folder, "--json")
    assert made.returncode == 0, made.stderr
    server = EmbeddedPostgres(Path(folder), clock=SystemClock())
    with asyncio.Runner() as runner:
        runner.run(server.start())
        yield folder
        runner.run(server.stop())


@pytest.fixture
def credit(recado: Recado, installed: str) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    def run(*arguments: str, **settings: str) -> "subprocess.CompletedProcess[str]":
        return recado("wallet", "credit", "--data-dir", installed, *arguments, **settings)

    return run


def printed(done: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_a_credit_and_its_repeat_and_an_adjustment_down(credit: Recado) -> None:
    first = printed(credit("--env", "test", "--coins", "500", "--reference", "gift", "--json"))
    again = printed(credit("--env", "test", "--coins", "500", "--reference", "gift", "--json"))
    down = printed(credit("--env", "test", "--coins", "-700", "--reference", "mistake", "--json"))

    assert (first["kind"], first["coins"], first["balanceCoins"], first["replayed"]) == (
        "topup", 500, SANDBOX + 500, False,
    )  # fmt: skip
    assert (again["entryId"], again["balanceCoins"], again["replayed"]) == (first["entryId"], SANDBOX + 500, True)
    assert (down["kind"], down["coins"], down["availableCoins"]) == ("adjustment", -700, SANDBOX - 200)
    assert set(first) == {
        "organizationId", "organizationName", "env", "walletId", "entryId", "kind", "coins", "replayed", "status",
        "balanceCoins", "heldCoins", "availableCoins",
    }  # fmt: skip


def test_people_read_a_sentence(credit: Recado) -> None:
    done = credit("--env", "live", "--coins", "120000", "--reference", "invoice 17", "--org", "Demonstration")
    again = credit("--env", "live", "--coins", "120000", "--reference", "invoice 17")
    less = credit("--env", "live", "--coins", "-20000", "--reference", "less")

    one = credit("--env", "live", "--coins", "1", "--reference", "one")

    again_as_json = printed(credit("--env", "live", "--coins", "1", "--reference", "one", "--json"))
    assert again_as_json["organizationName"] == "Demonstration"
    whose = f"for Demonstration ({again_as_json['organizationId']}) in live"
    assert done.stdout == f"120,000 coins credited {whose}; balance 120,000, available 120,000\n"
    assert again.stdout == f"120,000 coins were credited before {whose}; balance 120,000, available 120,000\n"
    assert less.stdout == f"20,000 coins taken away {whose}; balance 100,000, available 100,000\n"
    assert one.stdout == f"1 coin credited {whose}; balance 100,001, available 100,001\n"


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "status", "line"),
    [
        (("--coins", "1", "--reference", "r"), 2, "recado: Missing option '--env'"),
        (("--env", "prod", "--coins", "1", "--reference", "r"), 2, "recado: Invalid value for '--env'"),
        (("--env", "test", "--reference", "r"), 2, "recado: Missing option '--coins'"),
        (
            ("--env", "test", "--coins", "1.5", "--reference", "r"),
            2,
            "recado: Invalid value for '--coins': must be a whole number.",
        ),
        (("--env", "test", "--coins", "0", "--reference", "r"), 1, "recado: --coins must be a number from -1"),
        (("--env", "test", "--coins", str(10**12 + 1), "--reference", "r"), 1, "recado: --coins must be a number"),
        (("--env", "test", "--coins", "1"), 2, "recado: Missing option '--reference'"),
        (("--env", "test", "--coins", "1", "--reference", " "), 1, "recado: --reference must have 1 to 128 characters"),
        (("--env", "test", "--coins", "1", "--reference", "r", "--org", "Nobody"), 1, "recado: no organization is"),
        (("--env", "test", "--coins", "-2000000000", "--reference", "much"), 1, "recado: Only "),
    ],
)
def test_a_mistake_is_one_line_and_credits_nothing(
    credit: Recado, arguments: tuple[str, ...], status: int, line: str
) -> None:
    done = credit(*arguments)

    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.startswith(line)
    assert done.stderr.count("\n") == 1


def test_a_reference_stands_for_one_number_of_coins(credit: Recado) -> None:
    printed(credit("--env", "test", "--coins", "5", "--reference", "five", "--json"))

    other = credit("--env", "test", "--coins", "6", "--reference", "five")

    assert (other.returncode, other.stderr) == (1, "recado: This reference was used for 5 coins: use another one.\n")


def test_where_nothing_is_billed_there_is_no_wallet(credit: Recado) -> None:
    done = credit("--env", "test", "--coins", "1", "--reference", "r", BILLING_ENABLED="false")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == ("recado: nothing is billed here: there are wallets only with RECADO_BILLING_ENABLED=true\n")


def test_the_help_shows_an_example(recado: Recado) -> None:
    done = recado("wallet", "credit", "--help")

    assert done.returncode == 0
    assert "Example: recado wallet credit --env live" in done.stdout
