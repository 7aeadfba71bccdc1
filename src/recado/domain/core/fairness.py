"""Whose turn it is: smooth weighted round robin over the classes that have something to send (C14.5.1)."""

from collections.abc import Collection, Sequence


class SmoothRoundRobin:
    """Shares turns by weight and spreads them evenly: 16, 4 and 1 give the last one every 21st turn, never a run.

    Classes come and go between turns, which would let the plain algorithm postpone a light class beyond its share. So a
    class that has something to send is never passed over longer than its share allows: with the weights above, `bulk`
    has one of every 21 turns, whatever the others do.
    """

    __slots__ = ("_credit", "_patience", "_waited", "_weights")

    def __init__(self, weights: Sequence[int]) -> None:
        self._weights = tuple(weights)
        total = sum(weights)
        self._patience = tuple(-(-total // weight) - 1 for weight in weights)
        self._credit = [0] * len(weights)
        self._waited = [0] * len(weights)

    def pick(self, nonempty: Collection[int]) -> int:
        """The index of the class whose turn it is, one of `nonempty` (indices). ValueError when that is empty."""
        if not nonempty:
            raise ValueError("no class has anything to send")
        credit, waited = self._credit, self._waited
        total = 0
        best = -1
        overdue = -1
        for index, weight in enumerate(self._weights):
            if index not in nonempty:
                continue
            total += weight
            credit[index] += weight
            if best < 0 or credit[index] > credit[best]:
                best = index
            if waited[index] >= self._patience[index] and (overdue < 0 or weight < self._weights[overdue]):
                overdue = index
            waited[index] += 1
        if overdue >= 0:
            best = overdue
        credit[best] -= total
        waited[best] = 0
        return best
