"""What nobody released is found for every gate that nothing but a change lets go (C14.5)."""

import re

from recado.domain.channels.policies import HELD_WITHOUT_MOMENT
from recado.storage.dispatch.overtaken import SQL


def test_the_statement_knows_when_each_reason_that_only_a_change_lets_go_is_over() -> None:
    known = re.findall(r"^ *when '(\w+)' then", SQL.release, re.MULTILINE)
    assert sorted(known) == sorted(reason.value for reason in HELD_WITHOUT_MOMENT)
