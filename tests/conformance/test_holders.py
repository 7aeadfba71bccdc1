"""Whoever may not read a record is not told, by a refusal, that it holds a unique value (C12.1)."""

import sys

import recado.assembly  # noqa: F401 - it imports every table of the program
from recado.http.problems.holders import _HOLDERS
from recado.storage.core.statements.tables import Table


def test_every_unique_value_of_a_table_has_the_scope_that_reads_its_holder() -> None:
    modules = [module for name, module in sys.modules.items() if name.startswith("recado.storage.")]
    tables = [each for module in modules for each in vars(module).values() if isinstance(each, Table)]
    unique = {table._unique.code: table._unique.holder for table in tables if table._unique is not None}
    assert "LIST_NAME_TAKEN" in unique
    for code, holder in unique.items():
        assert code in _HOLDERS, f"{code}: name {holder} and its scope in http/problems/holders.py"
        assert _HOLDERS[code][0] == holder
