"""How many processes a service is where no setting says it: by the cores it may use, and what its database allows."""

import os
from pathlib import Path
from typing import Final

CORES_EACH: Final = 2
"""One for the process, and one for PostgreSQL."""
MOST: Final = 4
"""More seldom helps: then the owner is what is full."""
CONNECTIONS_OF_OWNER, CONNECTIONS_OF_FRONT, CONNECTIONS_BESIDE = 33, 17, 15
"""To the database; beside: for commands, and what the server keeps."""
_GROUPS: Final = Path("/sys/fs/cgroup")
_GROUP_OF_THIS: Final = Path("/proc/self/cgroup")


def usable_cores(groups: Path = _GROUPS, group: Path = _GROUP_OF_THIS) -> float:
    """Cores that this process may use: those it is bound to, and no more than its control groups give it time for."""
    return min([float(len(os.sched_getaffinity(0))), *_quotas(groups, group)])


def workers_by_cores(cores: float) -> int:
    """One for each two cores, at least one."""
    return min(MOST, max(1, int(cores // CORES_EACH)))


def workers_by_connections(allowed: int) -> int:
    """So many as have their connections where a database allows so many in all; at least one, which may have fewer."""
    return max(1, (allowed - CONNECTIONS_OF_OWNER - CONNECTIONS_BESIDE) // CONNECTIONS_OF_FRONT + 1)


def _quotas(groups: Path, group: Path) -> list[float]:
    """Of the group of this process and of all that it is in, where they have one (`cpu.max` of cgroup v2)."""
    found = []
    try:
        lines = group.read_text().splitlines()
    except OSError:
        return []
    own = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), None)
    if own is None:
        return []
    folder = groups / own
    for each in (folder, *folder.parents):
        try:
            quota, period = (each / "cpu.max").read_text().split()
            found.append(int(quota) / int(period))
        except (OSError, ValueError):  # it has none, or "max"
            pass
        if each == groups:
            break
    return found
