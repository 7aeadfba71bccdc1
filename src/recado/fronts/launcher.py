"""The launcher: holds the address of a service of several processes, and begins its owner again when that has died.

It is run as a file by an interpreter of its own, with nothing of this package: what it does not load cannot fail, nor
takes memory. No thread, no loop: it waits for signals, and does one thing after the other. It never listens, and so
opens nothing early; but what fronts listen on once stays open while it has it, and the kernel keeps who asks meanwhile.
"""

import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

FIRST, CEILING = 0.1, 10.0
"""Seconds until the next owner begins: the first, then twice as many each time, and the most."""
LIVED = 10.0
"""Seconds: after an owner that lived for so long the next one begins as after the first failure."""
NEXT_AFTER = 10.0
"""Seconds after its owner began, that has them to itself: then the next one is begun, and waits (`standby`)."""
NEXT_AGAIN_AFTER = 60.0  # seconds, where one that waited has ended
TAKES_WITHIN, LOADS_WITHIN = 10.0, 120.0
"""Seconds in which one whose turn it is says so, on a machine however busy: one that has loaded the program, and one
that loads it. Who is silent stands still, and is killed."""
SAYS_EVERY, SAYS_WITHIN = 5.0, 60.0
"""Seconds between two words of one that starts, which may take as long as a database recovers; and the most, after
which it stands still, and is killed."""
STOPS_WITHIN = 25.0
"""Seconds from a stop to the end: an owner takes 20 at most (C32), and the interpreter a moment."""

WAITS, TAKEN, STARTS, READY, FINAL = b"waits", b"taken", b"starts", b"ready", b"final"
"""What an owner says: it has loaded the program; it knows that it is its turn; it still starts (again and again); it
serves; its end is that of the service."""
GO, LAST = b"go", b"last"
"""What it is told: to serve, with its number of restarts, and the descriptors that have the address; or that nobody is
to serve any more, and that what the owner before has left is to be stopped."""
FORM = "v2"
"""Of how a process is begun, told and heard (`--launched`): another one with each change of that. What is installed
may be another program by then than its launcher."""
OTHER_LAUNCHER = 79
"""The exit status of one whose launcher has another form."""
_UNKNOWN_OPTION = 2  # the exit status of a program that knows no `--launched`

LEVELS = ("debug", "info", "warning", "error")
WATCHED = (signal.SIGCHLD, signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
_STOPS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
_UNLOADED = "it ended before it had loaded the program: if another one was installed, restart the service"
_RESTART = "what is installed is not what this launcher was started from: restart the service"
_MOST = 64  # bytes of what is said
_LONGEST_LINE = 4096  # bytes, for which a pipe that can be written to has room
_LOOK_EVERY = 1.0  # seconds


class LaunchedOwner:
    """A process that is the owner, or waits to be it. `control`: of what it says, and is told."""

    def __init__(self, pid: int, control: socket.socket) -> None:
        self.pid = pid
        self.begun_at = time.monotonic()
        self.waits = self.taken = self.ready = self.final = False
        self.due: float | None = None  # when it is killed unless it has said something, or ended, by then
        self._stops = False
        self._control = control
        control.setblocking(False)

    def heard(self) -> None:
        """Take in what it has said so far."""
        with suppress(OSError):  # there is no more
            while said := self._control.recv(_MOST):
                self.waits = self.waits or said == WAITS
                self.taken = self.taken or said in (TAKEN, READY, FINAL)
                self.ready = self.ready or said == READY
                self.final = self.final or said == FINAL
                if self.due is not None and not self._stops:
                    self.due = None if self.ready or self.final else time.monotonic() + SAYS_WITHIN

    def go(self, restarts: int, listening: Sequence[int]) -> None:
        """It is its turn, and gets the address. One that is dead already is found by its end."""
        self.heard()
        self.begun_at = time.monotonic()
        self.due = self.begun_at + (TAKES_WITHIN if self.waits else LOADS_WITHIN)
        with suppress(OSError):
            socket.send_fds(self._control, [b"%b %d" % (GO, restarts)], listening)

    def stops(self) -> None:
        """It has been told to end, or ends by itself."""
        self._stops = True
        self.due = time.monotonic() + STOPS_WITHIN

    def last(self) -> None:
        """Nobody serves after it, nor does it."""
        self.stops()
        with suppress(OSError):
            self._control.send(LAST)

    def other_program(self, status: int) -> bool:
        """Whether it ended because what is installed by now has another form, or none."""
        self.heard()
        return not (self.waits or self.taken) and status in (OTHER_LAUNCHER, _UNKNOWN_OPTION)

    def signal(self, number: int) -> None:
        """Nobody else takes up its end: its id is its own until then."""
        os.kill(self.pid, number)

    def close(self) -> None:
        """It is no more."""
        self._control.close()


class Launcher:
    """Owner after owner, until one says that it is enough, or somebody else does."""

    def __init__(
        self,
        owner: LaunchedOwner,
        listening: Sequence[int],
        command: Sequence[str],
        *,
        standby: bool,
        as_json: bool,
        level: str,
    ) -> None:
        """`command`: of the next owners. `standby`: whether one waits, loaded, while another serves. `level`: the
        least severe line of the log.
        """
        owner.due = owner.begun_at + LOADS_WITHIN  # it was forked from the command, and loads the program
        self._owner: LaunchedOwner | None = owner
        self._listening = listening
        self._command = command
        self._standby = standby
        self._as_json = as_json
        self._quiet = LEVELS[: LEVELS.index(level)]
        self._next: LaunchedOwner | None = None
        self._next_from = 0.0  # when one may be begun to wait
        self._turn_at: float | None = None  # of the next one, while there is no owner
        self._served = self._stopping = False
        self._ends_with_terminal = has_terminal() and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
        self._status: int | None = None  # of the service, while one stops what the owner has left
        self._failures = self._restarts = 0
        self._looked_at = time.monotonic()

    def run(self) -> int:
        """The exit status of the service, which is that of the last owner that served; negative for a signal."""
        while True:
            status = self._reap()  # each time: the end of one that was as quick as this process may never be told
            if status is not None:
                return status
            self._look()
            number = self._waited()
            hung_up = number == signal.SIGHUP and self._ends_with_terminal and not has_terminal()
            if number in (signal.SIGTERM, signal.SIGINT) or hung_up:
                status = self._reap()  # an owner that is dead by now is not one that was told
                if status is None and not self._stop(number):
                    status = 0
                if status is not None:
                    return status
            elif number == signal.SIGHUP and self._owner is not None and not self._stopping:
                self._owner.heard()
                if self._owner.ready or not self._served:  # one that is not ready yet would end of it
                    self._owner.signal(number)

    def _waited(self) -> int:
        seconds = _LOOK_EVERY
        if self._turn_at is not None:
            seconds = max(0.0, min(seconds, self._turn_at - time.monotonic()))
        told = signal.sigtimedwait(WATCHED, seconds)
        return 0 if told is None else told.si_signo

    def _stop(self, number: int) -> bool:
        """Have the owner stop. False: there is none, and nothing that one has left could be stopped."""
        if self._status is not None:
            return True  # this is what is under way
        self._let_go()
        if self._owner is None:
            return self._stop_what_is_left(0)
        # One that has waited may still leave what a terminal says to others (`serve`).
        self._owner.signal(signal.SIGTERM if self._restarts else number)
        return True

    def _let_go(self) -> None:
        """No owner is to follow: the address is that of the last one alone, until it ends."""
        if self._stopping:
            return
        self._stopping = True
        for each in self._listening:
            os.close(each)
        self._listening = ()
        if self._owner is not None:
            self._owner.stops()
            self._end_next()

    def _stop_what_is_left(self, status: int) -> bool:
        """An owner that did not stop in order leaves the embedded PostgreSQL: have another one stop that, and not
        serve. `status`: what the service ends with then. False: none could be begun.
        """
        if self._next is not None:
            self._next.heard()
            if not self._next.waits:  # one that begins now need not load the program
                self._end_next()
        if self._next is None and not self._begin_next():
            return False
        self._owner, self._next, self._status, self._turn_at = self._next, None, status, None
        assert self._owner is not None  # noqa: S101 - it was begun
        self._owner.last()
        return True

    def _look(self) -> None:
        """Begin what is to begin now."""
        now, owner = time.monotonic(), self._owner
        if owner is not None and owner.due is not None:
            # While this process stood still, the owner may have done so, too: of a machine that was frozen, all do.
            owner.due += max(0.0, now - self._looked_at - _LOOK_EVERY)
            if now >= owner.due:
                self._kill_silent(owner)
        self._looked_at = now
        if self._stopping:
            return
        if owner is None:
            if self._turn_at is not None and now >= self._turn_at and (self._next or self._begin_next()):
                self._owner, self._next, self._turn_at = self._next, None, None
                self._restarts += 1
                assert self._owner is not None  # noqa: S101 - it was begun
                self._owner.go(self._restarts, self._listening)
                self._tell("info", "owner_begun", pid=self._owner.pid, restarts=self._restarts)
            return
        owner.heard()
        self._served = self._served or owner.ready
        if owner.final:
            self._let_go()  # who connects while it stops is refused, and does not wait for nobody
            return
        wanted = owner.ready and self._standby and self._next is None
        if wanted and now >= max(self._next_from, owner.begun_at + NEXT_AFTER):
            self._begin_next()

    def _kill_silent(self, owner: LaunchedOwner) -> None:
        """It had its time, unless what it has said was not heard yet."""
        owner.heard()
        if owner.due is not None and time.monotonic() >= owner.due:
            owner.due = None
            self._tell("error", "owner_silent", pid=owner.pid)
            owner.signal(signal.SIGKILL)

    def _reap(self) -> int | None:
        """Take up the ends of all that have ended; the exit status where the service is over."""
        ended = None
        while True:
            try:
                pid, how = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if self._owner is not None and pid == self._owner.pid:
                ended = os.waitstatus_to_exitcode(how)
            elif self._next is not None and pid == self._next.pid:
                status = os.waitstatus_to_exitcode(how)
                more = {"reason": _RESTART} if self._next.other_program(status) else {}
                self._next.close()
                self._next, self._next_from = None, time.monotonic() + NEXT_AGAIN_AFTER
                self._tell("warning", "standby_ended", status=status, **more)
        return None if ended is None else self._follow(ended)

    def _follow(self, status: int) -> int | None:
        """What the end of the owner means."""
        owner, self._owner = self._owner, None
        assert owner is not None  # noqa: S101 - it has just ended
        owner.heard()
        owner.close()
        self._served = self._served or owner.ready
        begun = self._restarts or self._status is not None  # by this process
        if begun and owner.other_program(status):  # so would be each that follows
            self._tell("error", "owner_of_other_program", pid=owner.pid, status=status, reason=_RESTART)
            self._end_next()
            return status
        if self._status is not None:
            if status < 0 and owner.waits and self._stop_what_is_left(self._status):
                return None  # it was there already when all were killed, or stood still: now a new one
            return self._status or status
        if self._stopping or owner.final or not self._served:
            return self._end(owner, status)
        now = time.monotonic()
        lived = now - owner.begun_at
        self._failures = 1 if lived >= LIVED else self._failures + 1
        delay = min(CEILING, FIRST * 2 ** min(self._failures - 1, 20))
        self._turn_at = now + delay
        more = {"reason": _UNLOADED} if self._restarts and not (owner.waits or owner.taken) else {}
        self._tell("error", "owner_died", pid=owner.pid, status=status, lived=round(lived, 1), next_in=delay, **more)
        self._end_fronts()
        if self._next is None:
            self._begin_next()  # it loads meanwhile
        return None

    def _end(self, owner: LaunchedOwner, status: int) -> int | None:
        """None is to follow the owner that was the last. One that did not come to its end leaves what it began."""
        if self._served:  # it was still loading when it was told to stop, or died, or stood still
            left, told = status < 0 or not owner.final, 0 if -status in _STOPS else status
        else:  # it was killed in its start; by one of these signals, before it had begun anything
            left, told = status < 0 and -status not in _STOPS, status
        if not left:
            self._end_next()
            return status
        self._let_go()
        self._end_fronts()
        return None if self._stop_what_is_left(told) else told

    def _begin_next(self) -> bool:
        """Begin a process that waits until it is its turn."""
        try:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        except OSError as error:
            return self._not_begun(error)
        try:
            # Without the address: one that is not its turn would keep it for a while when this process is killed.
            os.set_inheritable(theirs.fileno(), True)
            command = [*self._command, "--launched", f"{FORM},{os.getpid()},{theirs.fileno()}"]
            pid = os.posix_spawn(command[0], command, os.environ, setsigmask=())
        except OSError as error:
            ours.close()
            return self._not_begun(error)
        finally:
            theirs.close()
        self._next = LaunchedOwner(pid, ours)
        return True

    def _not_begun(self, error: OSError) -> bool:
        """The system has no process or descriptor for it: later, maybe."""
        self._turn_at = None if self._turn_at is None else time.monotonic() + CEILING
        self._next_from = time.monotonic() + NEXT_AGAIN_AFTER
        self._tell("error", "owner_not_begun", errno=error.errno)
        return False

    def _end_next(self) -> None:
        if self._next is not None:
            self._next.signal(signal.SIGKILL)
            self._next.close()
            self._next = None

    def _end_fronts(self) -> None:
        """The kernel ends fronts with their owner; whoever is left is this process's child by now."""
        children: list[int] = []
        with suppress(OSError), open(f"/proc/self/task/{os.getpid()}/children") as file:
            children += [int(each) for each in file.read().split()]
        for each in children:
            with suppress(OSError):  # it has ended meanwhile
                if _is_front(each):
                    os.kill(each, signal.SIGKILL)

    def _tell(self, level: str, event: str, **more: object) -> None:
        """A line of the log, as the service writes it."""
        if level in self._quiet:
            return
        at = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        if self._as_json:
            line = json.dumps({"message": event, "level": level, "timestamp": at, **more})
        else:
            told = (f"{name}={value!r}" if " " in str(value) else f"{name}={value}" for name, value in more.items())
            line = f"{at} [{level:<9}] {event:<30} {' '.join(told)}"
        with suppress(OSError):  # of one that nobody reads
            log = select.poll()
            log.register(2, select.POLLOUT)
            if log.poll(0):  # who reads may stand still; this process must not
                os.write(2, line.encode()[: _LONGEST_LINE - 1] + b"\n")


def has_terminal() -> bool:
    """Whether the terminal is there from which this process was started."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _is_front(pid: int) -> bool:
    """By the name that it takes, or, before it has loaded its program, by its command."""
    with open(f"/proc/{pid}/comm", "rb") as name, open(f"/proc/{pid}/cmdline", "rb") as command:
        return name.read().strip() == b"recado-front" or b"recado.fronts.front" in command.read()


def end_as(status: int) -> int:
    """End as another process did, whose status this is."""
    if status >= 0:
        return status
    if -status != signal.SIGKILL:
        signal.signal(-status, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {-status})
    os.kill(os.getpid(), -status)
    return 128 - status  # the first process of a container does not end of its own signals


def main() -> int:
    """Arguments: a JSON of what `Launcher` is made with. All signals of `WATCHED` are blocked already."""
    told = json.loads(sys.argv[1])
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, it would say of no end how it was
    control = told.pop("control")
    for each in (control, *told["listening"]):
        os.set_inheritable(each, False)
    return end_as(Launcher(LaunchedOwner(told.pop("owner"), socket.socket(fileno=control)), **told).run())


if __name__ == "__main__":
    sys.exit(main())
