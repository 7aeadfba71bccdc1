"""The collector of garbage in cycles, as a service wants it that makes next to none."""

import gc

# New objects between two looks. Requests and messages make next to no cycles, so the interpreter's own 700 spend a
# sixth of the processor's time on looking through what is in flight.
COLLECT_EVERY = 50_000


def spare_the_collector() -> None:
    """What is there now stays: it is set aside for good, and the rest is looked through less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_EVERY, *gc.get_threshold()[1:])
