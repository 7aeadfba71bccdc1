"""Which branch of a split an execution takes: always the same one, without anything being stored (C9.4.2)."""

from hashlib import sha256

from recado.domain.journeys.steps import Branch, Split


def branch_of(split: Split, execution_id: str) -> Branch:
    """The branch; its share of all executions is its weight's share of all weights."""
    digest = sha256(f"{execution_id}:{split.id}".encode()).digest()
    place = int.from_bytes(digest[:8], "big") % sum(branch.weight for branch in split.branches)
    for branch in split.branches:
        if place < branch.weight:
            return branch
        place -= branch.weight
    raise AssertionError("the place is below the sum of the weights")
