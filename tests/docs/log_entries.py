"""The names of the entries that the program logs, as its source has them."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "recado"
LEVELS = {"debug", "info", "warning", "error", "critical", "exception", "log"}
GIVEN = {
    "_drop": "channels/sms/smpp/smpp.py",
    "_tell": "fronts/launcher.py",
    "report_error": "",
    "told_as": "",
}
"""What is given the name of an entry and has it logged: a function, or a keyword; and the one file where it is so."""
LOGS = re.compile("|".join(["get_?[lL]ogger", *(f"{given}[(=]" for given in GIVEN)]))


def names(argument: ast.expr) -> Iterator[str]:
    """What the entry may be called: of a text with places, which are `…`, what stands before its details."""
    for node in ast.walk(argument):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield re.split(r":| \(%", node.value)[0].replace("%s", "…")


def logged(file: str, tree: ast.Module) -> Iterator[tuple[int, list[str]]]:
    """Each line that logs, or has something logged, with the names of its entries; none where they are not there."""
    nodes = [*ast.walk(tree)]
    loggers = {
        ast.unparse(node.targets[0])
        for node in nodes
        if isinstance(node, ast.Assign) and re.search(r"get_?[lL]ogger\((__name__)?\)$", ast.unparse(node.value))
    }
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    for call in calls:
        way = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if (way in LEVELS and _of(call.func) in loggers) or GIVEN.get(way) in (file, ""):
            yield call.lineno, [*names(call.args[way in ("log", "_tell")])]  # these have the level first
        for keyword in call.keywords:
            if GIVEN.get(keyword.arg or "") == "" and (found := [*names(keyword.value)]):
                yield call.lineno, found
    called = {call.func for call in calls}
    for node in nodes:
        if isinstance(node, ast.Attribute) and node not in called and node.attr in LEVELS and _of(node) in loggers:
            yield node.lineno, []  # somebody else calls it


def _of(node: ast.expr) -> str:
    return ast.unparse(node.value) if isinstance(node, ast.Attribute) else ""


@cache
def logged_entries() -> tuple[dict[str, str], set[str]]:
    """Each entry with a line that logs it, and the files that log one which is given to them."""
    entries: dict[str, str] = {}
    unnamed: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        text, file = path.read_text("utf-8"), str(path.relative_to(SOURCE))
        if LOGS.search(text):
            for line, found in logged(file, ast.parse(text)):
                entries |= dict.fromkeys(found, f"{file}:{line}")
                unnamed |= {file} if not found else set()
    return entries, unnamed
