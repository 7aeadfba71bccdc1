"""Why the messages of tests failed, told as callers read it: `<code>: <text>`."""

from recado.domain.messages.message import Cause, FailureCode


def cause(last_error: str) -> Cause:
    """The cause that callers read so; an unknown outcome is not certain."""
    code, _, text = last_error.partition(": ")
    return Cause(code, text, certain=code != FailureCode.OUTCOME_UNKNOWN)


FAILED_AS = "last_error = $2, failure_code = split_part($2, ':', 1), outcome_certain = $2 not like 'outcome_unknown:%'"
"""Sets the columns of a message that failed, of which $2 is what callers read."""
