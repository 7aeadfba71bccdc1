"""Sentences about records that do not exist."""

import pytest

from recado.domain.core import ids
from recado.domain.core.references import KINDS, no_such, reference_not_found


def test_every_kind_of_record_has_a_name() -> None:
    prefixes = {value for value in vars(ids).values() if isinstance(value, str) and value.endswith("_")}
    assert set(KINDS) == prefixes - {"__", ids.REQUEST}


@pytest.mark.parametrize(
    ("prefix", "value", "env", "sentence"),
    [
        (ids.TEMPLATE, "tpl_x", "test", "No template tpl_x in test."),
        (ids.ACCOUNT, "acc_1", "live", "No account acc_1."),
        (ids.ORGANIZATION, "org_1", "", "No organization org_1."),
        (
            ids.TEMPLATE, "num_1", "test",
            "num_1 is not a template id: those begin with tpl_. This looks like a number id.",
        ),
        (ids.TEMPLATE, "xyz_1", "test", "xyz_1 is not a template id: those begin with tpl_."),
    ],
)  # fmt: skip
def test_a_missing_record_is_named_with_its_environment(prefix: str, value: str, env: str, sentence: str) -> None:
    assert no_such(prefix, value, env) == sentence


@pytest.mark.parametrize("value", ["+5511987654321", "ana@example.com", "", "tpl_" + "x" * 41, "tpl_ana silva"])
def test_what_is_no_id_is_not_repeated(value: str) -> None:
    sentence = no_such(ids.TEMPLATE, value, "test")
    assert sentence == "The given text is not a template id: those are tpl_ and 21 letters or digits."


def test_a_wrong_reference_names_field_value_and_environment() -> None:
    problem = reference_not_found("filter.batchId", ids.BATCH, "btc_x", "live")
    assert (problem.status, problem.detail) == (422, "filter.batchId: no batch btc_x in live.")
    assert problem.meta == {"field": "filter.batchId"}
    assert [(error.path, error.message) for error in problem.errors] == [("/filter/batchId", "No batch btc_x in live.")]
