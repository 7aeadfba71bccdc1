"""E-mails as the npm package smtp-server takes them, and mailparser reads them."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.channels.email.conftest import ACCOUNT, Made, an_email, sending
from tests.domain.email.emails import lines_of, shown, some_email
from tests.domain.email.test_mime import AT, read
from tests.examples import examples, seeds

from recado.channels.core.provider import Accepted, Down
from recado.channels.email.composing import CONTENT
from recado.domain.email.content import EmailContent
from recado.domain.email.mime import Origin, compose, wire_address

NODE = Path(__file__).parents[2] / "node"
EMAILS = examples(500)
AT_ONCE = 5

pytestmark = pytest.mark.node


@dataclass
class NodeServer:
    process: asyncio.subprocess.Process
    port: int

    async def taken(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(await asyncio.wait_for(self.process.stdout.readline(), 20))
        return found


@pytest.fixture
async def node_server() -> AsyncIterator[NodeServer]:
    node = shutil.which("node")
    if node is None or not (NODE / "node_modules" / "smtp-server").exists():
        pytest.skip("smtp-server for Node.js is not installed: `make test` installs it where nodejs and npm are")
    process = await asyncio.create_subprocess_exec(
        node, str(NODE / "mail.mjs"), stdout=asyncio.subprocess.PIPE, limit=2**24
    )
    assert process.stdout is not None
    yield NodeServer(process, int(await asyncio.wait_for(process.stdout.readline(), 20)))
    process.kill()
    await process.wait()


def compare(taken: dict[str, Any], content: EmailContent, to: str, message_id: str) -> None:
    """What mailparser read, with what Python's parser reads, and with what was given."""
    ours = read(compose(content, to, Origin(message_id, "org", AT)).data)
    # Both packages show domains as people read them.
    told = [wire_address(address, "to").text for address in (taken["sender"], *taken["recipients"])]
    assert told == [ours["from"].addresses[0].addr_spec, ours["to"]]
    assert shown(taken["subject"]) == shown(ours["subject"]) == shown(content.subject)
    (sender,) = taken["from"]
    assert wire_address(sender["address"], "from").text == told[0]
    assert shown(sender["name"]) == shown(content.from_name or "")
    for kind, given in (("text", content.text), ("html", content.html)):
        if given or (given is not None and content.html is None):
            part = ours.get_body(("plain" if kind == "text" else kind,))
            assert part is not None
            assert lines_of(taken[kind] or "") == lines_of(part.get_content()) == lines_of(given)
    assert taken["names"] == [name.lower() for name in ours.keys()]  # noqa: SIM118 - one name may come twice
    assert [line.split(": ", 1)[1] for line in taken["unsubscribe"]] == [
        value for name, value in content.headers if name == "List-Unsubscribe"
    ]
    assert taken["feedback"][0].endswith(":recado")


@pytest.mark.parametrize("seed", seeds(4))
async def test_random_emails_are_read_alike_by_python_and_by_node(
    node_server: NodeServer, made: Made, seed: int
) -> None:
    random, adapter = Random(seed), await made(node_server.port)
    emails = {f"msg_{number:021}": some_email(random) for number in range(EMAILS)}
    left = iter(list(emails.items()))

    async def send() -> None:
        for message_id, (content, to) in left:
            message = an_email(to)
            message.id = message_id
            message.details = {CONTENT: content}
            found = await adapter.send(message, ACCOUNT, 1)
            assert isinstance(found, Accepted), found

    async def read_each() -> None:
        for _ in range(EMAILS):
            taken = await node_server.taken()
            message_id = taken["id"].strip("<>").partition("@")[0]
            compare(taken, *emails.pop(message_id), message_id)

    async with asyncio.TaskGroup() as group:
        group.create_task(read_each())
        for _ in range(AT_ONCE):
            group.create_task(send())
    assert not emails


async def test_a_server_for_which_nobody_vouches_is_told_nothing(node_server: NodeServer, made: Made) -> None:
    assert await sending(await made(node_server.port, starttls=True)) == Down("tls_failed")
