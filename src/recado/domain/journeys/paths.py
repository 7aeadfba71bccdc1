"""The shape of a journey's graph: what is reached, what goes in circles, and what comes before what on every path.

Steps are bits of a whole number, so that a set of them is one value; a graph has at most 50.
"""

from collections.abc import Mapping, Sequence

from recado.domain.journeys.graph import JourneyStep


class Paths:
    """The ways through steps, from the first one. Of steps with one id, the first one counts."""

    def __init__(self, steps: Sequence[JourneyStep], first: str) -> None:
        self.steps: Mapping[str, JourneyStep] = {step.id: step for step in reversed(steps)}
        ids = tuple(dict.fromkeys(step.id for step in steps))
        self._places = {step_id: place for place, step_id in enumerate(ids)}
        self._ids = ids
        self._next = [
            [self._places[way_out.target] for way_out in self.steps[step_id].exits if way_out.target in self._places]
            for step_id in ids
        ]
        self._first = self._places.get(first)
        self._finished = self._walk()
        self._before = self._on_every_path()

    def reached(self, step_id: str) -> bool:
        """Whether a path leads from the first step to this one; False for all when there is no first one."""
        return self._places[step_id] in self._before

    def always_passed(self, step_id: str, earlier: str) -> bool:
        """Whether every path from the first step to this one passes the `earlier` one before it."""
        passed, place = self._before.get(self._places[step_id], 0), self._places.get(earlier)
        return place is not None and earlier != step_id and bool(passed >> place & 1)

    def cycles(self) -> list[tuple[str, ...]]:
        """The sets of steps that lead back to each other, each in the order of the steps."""
        found = []
        back: list[list[int]] = [[] for _ in self._ids]
        for place, following in enumerate(self._next):
            for target in following:
                back[target].append(place)
        taken = 0
        for root in reversed(self._finished):
            if taken >> root & 1:
                continue
            together, left = [], [root]
            taken |= 1 << root
            while left:
                place = left.pop()
                together.append(place)
                for source in back[place]:
                    if not taken >> source & 1:
                        taken |= 1 << source
                        left.append(source)
            if len(together) > 1 or root in self._next[root]:
                found.append(sorted(together))
        return [tuple(self._ids[place] for place in places) for places in sorted(found)]

    def _walk(self) -> list[int]:
        """All steps, each after those that it leads to, unless they lead back to it."""
        finished: list[int] = []
        seen = 0
        for root in range(len(self._ids)):
            if seen >> root & 1:
                continue
            seen |= 1 << root
            stack = [(root, iter(self._next[root]))]
            while stack:
                place, following = stack[-1]
                for target in following:
                    if not seen >> target & 1:
                        seen |= 1 << target
                        stack.append((target, iter(self._next[target])))
                        break
                else:
                    finished.append(place)
                    stack.pop()
        return finished

    def _on_every_path(self) -> dict[int, int]:
        """By each step that is reached, which steps every path to it passes, itself among them.

        One round along the paths is enough unless they go in circles.
        """
        if self._first is None:
            return {}
        before = {self._first: 1 << self._first}
        changed = True
        while changed:
            changed = False
            for place in reversed(self._finished):
                if place not in before:
                    continue
                for target in self._next[place]:
                    passed = before[place] | 1 << target
                    if target in before:
                        passed &= before[target]
                    if before.get(target) != passed:
                        before[target] = passed
                        changed = True
        return before
