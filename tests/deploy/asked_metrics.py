"""Whether dashboard and alerts ask for what a scraped text has, and show all of its own."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from prometheus_client.parser import text_string_to_metric_families
from tests.deploy import promtool

ENDS: Final[Mapping[str, tuple[str, ...]]] = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}
OURS: Final = re.compile(r"\b(recado_\w+)(?:{([^}]*)})?")
MATCHER: Final = re.compile(r'(\w+)(=~|!~|!=|=)"([^"]*)"')
GROUPED: Final = re.compile(r"\b(?:by|on) \(([^)]*)\)")
ADDED: Final = {"instance", "job"}  # by Prometheus


def all_stand_in(text: str, *, of_entry: bool, values: Mapping[str, Iterable[str]], least: int) -> None:
    """Each metric, label and value that is asked for is there, at least so many; and each metric is asked for.

    `of_entry`: the expressions of the entry of cells are meant, else all others; `values`: that labels may have.
    """
    families = list(text_string_to_metric_families(text))
    names = {family.name + end for family in families for end in ENDS.get(family.type, ("",))}
    labels: dict[str, set[str]] = {}
    for family in families:
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)
    asked = set()
    for expression in promtool.expressions():
        if ("recado_entry_" in expression) is not of_entry:
            continue
        found = OURS.findall(expression)
        asked |= {name for name, _ in found}
        assert asked <= names, expression
        for name, selected in found:
            for label, _, wanted in MATCHER.findall(selected):
                assert label in ADDED | labels[name], expression
                assert label in ADDED or set(wanted.split("|")) <= set(values[label]), expression
        known = ADDED.union(*(labels[name] for name, _ in found))
        grouped = {label.strip() for listed in GROUPED.findall(expression) for label in listed.split(",")}
        assert grouped <= known, expression
    assert len(asked) >= least
    not_shown = [
        family.name
        for family in families
        if family.name.startswith("recado_entry_") is of_entry
        and not asked & {family.name + end for end in ENDS.get(family.type, ("",))}
    ]
    assert not_shown == []
