"""A cluster by simulation: what moves when hosts come and go, how long senders pause, and what renewals there are.

`python -m bench.simulate_cluster --help` says how to choose its size; `python -m bench simulate_cluster` has that of
its defaults, and takes half a minute; 65,536 shards take minutes. Ends with status 1 when the pace of a sender was
not kept, or a shard found no host.
"""

import argparse
import asyncio
import math
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from random import Random
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench.cluster_model import MOST_SAMPLES, RATES, Rules, Seen, World
from bench.harness import Figure, Say
from recado.cli.progress import progress_bar
from recado.domain.dispatch.leases import MOST_OFFSET, TOLERANCE, WINDOW, endless
from recado.domain.dispatch.placement import SHARDS, Placement, shard_of
from recado.domain.senders.sender import SenderKey
from recado.engine.clock import VirtualClock

HOSTS, SENDERS = 1_000, 1_000_000
STEADY: Final = 5.0  # seconds before anything happens, in which renewals are counted
SETTLED: Final = 10.0  # seconds after which everything has its place again
RESTART: Final = 4.0  # seconds from a stop in order until the host takes part again
WAVES: Final = 20  # in which all hosts are restarted
RACK: Final = 0.05  # of the hosts
PATIENCE: Final = 2.5  # seconds
USUAL_OFFSET: Final = 0.005  # seconds that clocks are apart
APART: Final = 0.080  # seconds: too far
EVEN: Final = 0.5  # more than its share, that the fullest host has where there are enough shards
WIDTH: Final = 180  # characters: a table that is narrower cannot be read
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)

WITHOUT: Final[dict[str, Rules]] = {
    "wait": Rules(opens_in=lambda busy_for, offset: 0.0 if busy_for is None else busy_for),
    "deadline": Rules(lease=lambda elapsed: endless()),
    "offset": Rules(opens_in=lambda busy_for, offset: 0.0 if busy_for is None else busy_for + WINDOW + TOLERANCE),
}
"""Rules that may be left out, to see what they are for."""

Act = Callable[[World], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Scenario:
    """What happens to a cluster that has run for a while. `refused`: hosts that have to be."""

    name: str
    act: Act
    most_offset: float = USUAL_OFFSET
    patience: float = 0.0
    refused: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """`waiting`: shards that no host had in the end, though there were hosts."""

    scenario: Scenario
    seen: Seen
    usual: float  # renewals a second
    most: int  # statements in a second
    waiting: int

    @property
    def exact(self) -> bool:
        kept = not (self.seen.broken or self.seen.over_pace or self.waiting)
        return kept and self.seen.refused == self.scenario.refused


@dataclass(frozen=True, slots=True)
class Cluster:
    """The size; and how many senders each shard has."""

    hosts: int
    senders: int
    shards: int
    seed: int
    senders_of: list[int]
    placement: Placement


def cluster(hosts: int, senders: int, shards: int, seed: int) -> Cluster:
    counted = Counter(
        shard_of(SenderKey(f"org_{number % 5_000}", "live", "chatapp", f"num_{seed}_{number}"), shards)
        for number in range(senders)
    )
    placement = Placement((_name(number) for number in range(hosts)), shards)
    return Cluster(hosts, senders, shards, seed, [counted[shard] for shard in range(shards)], placement)


def _name(number: int) -> str:
    return f"host-{number:04}"


def scenarios(hosts: int) -> list[Scenario]:
    """All of them. Whom they befall, the seed of the world draws."""
    several, rack = min(10, hosts // 2), max(1, round(hosts * RACK))
    return [
        Scenario("nothing happens", _nothing),
        Scenario("a host is killed", _kill(1)),
        Scenario(f"{several} hosts are killed at once", _kill(several)),
        Scenario(f"a rack is killed: {rack}, wherever shards are", _kill_any(rack)),
        Scenario("a host does not reach the database", _cut_off),
        Scenario("a host comes", _come),
        Scenario(f"all are restarted in order, in {min(WAVES, hosts)} waves", _restart),
        Scenario(f"clocks ±50 ms apart: {several} stop; one ±80 ms comes", _clocks(several), MOST_OFFSET, refused=1),
        Scenario("the database is away for 3 s", _away(3.0)),
        Scenario("the database is away for 10 s", _away(10.0)),
        Scenario(f"likewise, then nobody takes for {PATIENCE:g} s", _away(10.0), patience=PATIENCE),
    ]


async def _nothing(world: World) -> None:
    await world.clock.advance(SETTLED)


def _kill(count: int) -> Act:
    async def act(world: World) -> None:
        for name in _some(world, count):
            world.hosts[name].kill()
        await world.clock.advance(SETTLED)

    return act


def _kill_any(count: int) -> Act:
    async def act(world: World) -> None:
        for name in world.random.sample(sorted(world.hosts), count):
            world.hosts[name].kill()
        await world.clock.advance(SETTLED)

    return act


def _some(world: World, count: int) -> list[str]:
    """Hosts that have shards: of the others nobody would miss one."""
    there = sorted({host for host in world.server.placement.host_of if host is not None})
    return world.random.sample(there, min(count, len(there)))


async def _cut_off(world: World) -> None:
    world.cut_off(*_some(world, 1))
    await world.clock.advance(SETTLED)


async def _come(world: World) -> None:
    """One of some that would take something: most names take none where there are more hosts than shards."""
    names = (f"new-{number:04}" for number in range(1_000))
    world.start(next(name for name in names if _takes(world, name)), USUAL_OFFSET)
    await world.clock.advance(SETTLED)


def _takes(world: World, name: str) -> bool:
    placement = world.server.placement
    moved = placement.join(name)
    placement.leave(name)
    return bool(moved)


async def _restart(world: World) -> None:
    names = sorted(world.hosts)
    waves = min(WAVES, len(names))
    for wave in range(waves):
        stopped = names[wave::waves]
        for name in stopped:
            world.hosts[name].stop()
        await world.clock.advance(RESTART)
        for name in stopped:
            world.start(name, world.random.uniform(-USUAL_OFFSET, USUAL_OFFSET))
        await world.clock.advance(RESTART)
    await world.clock.advance(SETTLED)


def _clocks(count: int) -> Act:
    async def act(world: World) -> None:
        world.start("apart", world.random.choice((-APART, APART)))
        for name in _some(world, count):
            world.hosts[name].stop()
        await world.clock.advance(SETTLED)

    return act


def _away(seconds: float) -> Act:
    async def act(world: World) -> None:
        world.database_away()
        await world.clock.advance(seconds)
        world.database_back()
        await world.clock.advance(SETTLED)

    return act


async def simulate(cluster: Cluster, scenario: Scenario, rules: Rules) -> Outcome:
    """One scenario from its begin to its end, on a virtual clock of its own."""
    clock = VirtualClock(BEGAN)
    world = World(
        clock,
        cluster.placement,
        random=Random(f"{cluster.seed} {scenario.name}"),
        rules=replace(rules, patience=scenario.patience),
        most_offset=scenario.most_offset,
    )
    await clock.advance(STEADY)
    renewals = world.seen.renewals
    await scenario.act(world)
    # In the first two seconds all hosts join at once, which is no scenario.
    lasting = {second: count for second, count in world.seen.statements.items() if second > 1}
    waiting = len(world.gates.shut_since) if any(host.alive for host in world.hosts.values()) else 0
    return Outcome(scenario, world.seen, renewals / STEADY, max(lasting.values(), default=0), waiting)


async def outcomes(
    cluster: Cluster, rules: Rules, said: Callable[[str], None], chosen: Sequence[Scenario]
) -> list[Outcome]:
    found = []
    for scenario in chosen:
        said(scenario.name)
        found.append(await simulate(cluster, scenario, rules))
    return found


def spread(cluster: Cluster) -> str:
    """How the shards lie on the hosts, and how many there would have to be."""
    placed = Counter(cluster.placement.host_of)
    share = cluster.shards / cluster.hosts
    text = f"{cluster.shards:,} shards on {cluster.hosts:,} hosts: {len(placed):,} hosts have any"
    text += f", the fullest {max(placed.values())}, where the share of each is {share:.2g}."
    wanted = shards_for(cluster.hosts)
    if cluster.shards < wanted:
        text += f" For no host to have more than {1 + EVEN:g} times its share, it takes some {wanted:,} shards."
    return text


def shards_for(hosts: int) -> int:
    """Shards with which the fullest of so many hosts has half more than its share, as a power of two.

    A host has its share `m`, and a deviation of √m; the fullest of n is some √(2 ln n) deviations above.
    """
    share = 2.0 * math.log(max(2, hosts)) / EVEN**2
    return 1 << math.ceil(math.log2(share * hosts))


def table(cluster: Cluster, found: Sequence[Outcome]) -> Table:
    drawn = Table(title=_title(cluster))
    drawn.add_column("what happens")
    for name in (
        "shards moved",
        "senders that paused",
        "mean",
        "longest",
        "over all",
        "renewals/s",
        "most stmts/s",
        "gap",
    ):
        drawn.add_column(name, justify="right")
    drawn.add_column("by clocks", justify="right")
    drawn.add_column("exact")
    for each in found:
        drawn.add_row(*_cells(cluster, each), "[green]yes[/]" if each.exact else "[red]NO[/]")
    return drawn


def _title(cluster: Cluster) -> str:
    return f"{cluster.hosts:,} hosts, {cluster.senders:,} senders, {cluster.shards:,} shards, seed {cluster.seed}"


def _cells(cluster: Cluster, each: Outcome) -> list[str]:
    seen = each.seen
    paused = sum(cluster.senders_of[shard] for shard in seen.paused)
    seconds = sum(pause * cluster.senders_of[shard] for shard, pause in seen.paused.items())
    gap, stamped = ("" if shown == math.inf else f"{shown:.3f} s" for shown in (seen.least_gap, seen.least_stamped))
    return [
        each.scenario.name,
        f"{seen.moved:,}",
        f"{paused:,} ({paused / cluster.senders:.2%})",
        f"{seconds / paused:.2f} s" if paused else "",
        f"{seen.longest:.2f} s" if paused else "",
        f"{seconds / cluster.senders:.3f} s",
        f"{each.usual:,.0f}",
        f"{each.most:,}",
        gap,
        stamped,
    ]


async def run(say: Say) -> list[Figure]:
    """The size of the defaults, as lines of the page."""
    say("a simulated cluster: senders and places")
    made = cluster(HOSTS, SENDERS, SHARDS, 1)
    found = await outcomes(made, Rules(), lambda name: say(f"a simulated cluster: {name}"), scenarios(HOSTS))
    figures = [Figure(f"simulated: {_title(made)}: renewals", f"{found[0].usual:,.0f} /s")]
    for each in found[1:]:
        _, moved, paused, mean, longest, *_ = _cells(made, each)
        text = f"{moved} shards moved, {paused} senders paused: mean {mean}, longest {longest}"
        figures.append(Figure(f"– {each.scenario.name}", text, target="exact", met=each.exact))
    return figures


def main(arguments: Sequence[str]) -> int:
    """Exit status 1 when an outcome is not exact."""
    options = argparse.ArgumentParser(
        "python -m bench.simulate_cluster",
        description=__doc__,
        epilog="Example: python -m bench.simulate_cluster --hosts 20 --senders 10000 --shards 1024 --seed 7",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--hosts", type=_at_least(2), default=HOSTS, help="2 or more (default: %(default)s)")
    options.add_argument("--senders", type=_at_least(1), default=SENDERS, help="(default: %(default)s)")
    options.add_argument("--shards", type=_at_least(1), default=SHARDS, help="(default: %(default)s, as the service's)")
    options.add_argument("--seed", type=int, default=1, help="of whom it befalls, and when (default: %(default)s)")
    options.add_argument("--only", default="", help="scenarios whose name has this in it")
    options.add_argument("--without", choices=sorted(WITHOUT), help="leave a rule out, and see what it is for")
    given = options.parse_args(arguments)
    chosen = [each for each in scenarios(given.hosts) if given.only in each.name]
    if not chosen:
        options.error(f"no scenario has {given.only!r} in its name")
    rules = WITHOUT.get(given.without, Rules())
    began = time.monotonic()
    with progress_bar(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()) as bar:
        task = bar.add_task("senders and places", total=len(chosen) + 1)

        def said(name: str) -> None:
            bar.update(task, description=name, advance=1)

        made = cluster(given.hosts, given.senders, given.shards, given.seed)
        found = asyncio.run(outcomes(made, rules, said, chosen))
    out = Console(soft_wrap=True, width=max(bar.console.width, WIDTH))
    out.print(table(made, found))
    out.print(spread(made))
    samples = sum(each.seen.samples for each in found)
    out.print(
        "Pauses are of shards, counted with their senders: mean (in all) and longest of those that paused, and the mean"
        " over all senders. Gap: the least from the last call of an owner to the first of the next, in truth and by"
        " their own clocks."
    )
    out.print(
        f"Departures were made for {samples:,} senders"
        f" ({', '.join(map(str, RATES))} a second; at most {MOST_SAMPLES} a line), {time.monotonic() - began:.0f} s."
    )
    broken = [each.scenario.name for each in found if not each.exact]
    for name in broken:
        out.print(f"[red]The pace was not kept, or senders found no host: {name}[/]")
    return 1 if broken else 0


def _at_least(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if (number := int(text)) < least:
            raise argparse.ArgumentTypeError(f"{least} or more")
        return number

    return read


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
