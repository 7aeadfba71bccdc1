"""Keeps the fuzzer from sawing off the branch it sits on: its own key, and the organization that the key belongs to."""

import os
from typing import Any

import schemathesis

_OWN = {os.environ["FUZZ_KEY_ID"], os.environ["FUZZ_ORGANIZATION_ID"]}


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Ids that answers gave are used again; a change of our own records is turned to ones that do not exist."""
    if case.method != "GET" and case.path_parameters.get("id") in _OWN:
        case.path_parameters["id"] = case.path_parameters["id"][:4] + "0" * 21
