"""Time and randomness are injected: nothing but the system's clock and the commands asks the machine for either."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from recado.storage.core.statements.sql import FILES

SOURCE = Path(__file__).parents[2] / "src" / "recado"
NO_SERVICE = {"cli", "loadtest", "simulator"}  # the commands, and what two of them run
ASK_THE_MACHINE = {
    "asyncio": {"sleep"},
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
    "random": {"random", "choice", "choices", "randint", "randrange", "uniform", "shuffle", "sample"},
    "time": {"time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "sleep"},
}
SQL_NOW = re.compile(r"\b(?:now\(\)|clock_timestamp|statement_timestamp|current_timestamp|current_date)", re.IGNORECASE)


def calls_to_the_machine(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in ASK_THE_MACHINE.get(node.value.id, ()):
                yield f"{node.lineno}: {node.value.id}.{node.attr}"
        elif isinstance(node, ast.ImportFrom) and node.module in ("time", "random"):
            yield from (
                f"{node.lineno}: from {node.module} import {name.name}"
                for name in node.names
                if name.name in ASK_THE_MACHINE[node.module]
            )


def test_only_the_clock_and_the_commands_ask_the_machine() -> None:
    found = {
        str(file.relative_to(SOURCE)): [*calls_to_the_machine(ast.parse(file.read_text("utf-8")))]
        for file in SOURCE.rglob("*.py")
        if file.relative_to(SOURCE).parts[0] not in NO_SERVICE
    }
    assert found.pop("engine/clock.py")
    assert found.pop("fronts/launcher.py")  # a process without the service's program: so it has no clock of that
    assert {file: calls for file, calls in found.items() if calls} == {}


def test_no_query_decides_by_the_servers_clock() -> None:
    """`clock.sql` asks it, to compare the two clocks; leases are by it, as all hosts see it alike (C14.5.6).

    So are moves between two databases, which no service makes.
    """
    by_design = {"cell_map.sql", "clock.sql", "epochs.sql", "holding.sql", "ownership.sql"}
    files = [file for file in FILES.values() if file.name not in by_design]
    assert files
    assert [file.name for file in files if SQL_NOW.search(file.read_text("utf-8"))] == []
