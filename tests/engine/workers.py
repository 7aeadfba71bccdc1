"""What tests of supervision begin with: workers that tell of their life, and a supervisor over some of them."""

import asyncio

from recado.engine.actor import Actor
from recado.engine.backoff import Backoff
from recado.engine.supervisor import Supervisor

STEADY = Backoff(first=1.0, ceiling=8.0, jitter=0.0)


class Worker(Actor):
    """Writes its life into a shared diary."""

    def __init__(self, diary, name="worker"):
        super().__init__()
        self.diary = diary
        self.name = name
        self.count = 0

    async def started(self):
        self.diary.append(f"{self.name} started")

    async def stopping(self):
        self.diary.append(f"{self.name} stopping")

    async def handle(self, message):
        if message == "break":
            raise LookupError("text of the customer")
        if message == "count":
            self.count += 1
            return self.count
        if isinstance(message, asyncio.Event):
            await message.wait()
            return None
        self.diary.append(message)
        return None


def supervise(runtime, diary, strategy, names="abc", **limits):
    root = Supervisor("root", strategy, runtime=runtime, backoff=STEADY, **limits)
    refs = {name: root.spawn(name, lambda name=name: Worker(diary, name)) for name in names}
    return root, refs


def states(root):
    return {node.key: node.state for node in root.tree()}
