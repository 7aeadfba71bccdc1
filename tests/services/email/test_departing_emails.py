"""Queued e-mails as they leave: made of a template and values, with links that are stored before (C10.2.5, C10.2.9)."""

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest
from tests.acme import acme
from tests.journey_emails import LINK_BASE, SIMULATOR, TOKENS, add_email_template, departing

from recado.domain.contacts.contact import email_hash
from recado.domain.core.ids import MESSAGE, IdSource
from recado.domain.email.content import EmailContent
from recado.domain.email.public_tokens import EmailKey
from recado.domain.messages.message import Cause
from recado.engine.clock import SystemClock
from recado.services.email import departing as module
from recado.services.email.departing import DepartingEmails
from recado.storage.core.connections.postgres import Database
from recado.storage.email import senders
from recado.storage.links import tracked_links

FROM = "Sandbox <no-reply@sandbox.test>"
SUPPRESS = """
insert into email_suppressions (organization_id, env, id, email, reason, hash, updated_at)
values ($1, 'test', 'sup_1', 'x', 'manual', $2, now())
"""


@dataclass
class Queued:
    """As the lane has it in memory."""

    organization_id: str
    id: str
    template_id: str | None
    env: str = "test"
    recipient: str = "Ana@example.com"
    contact_id: str | None = None
    payload: str | None = None
    details: Any = field(default_factory=lambda: {"from": FROM})


@dataclass
class Post:
    """An organization with a template, and who makes its e-mails."""

    db: Database
    ids: IdSource
    organization_id: str
    template_id: str
    emails: DepartingEmails

    def message(self, **changes: Any) -> Queued:
        given = {"payload": orjson.dumps({"variables": {"name": "Ana & Bo"}}).decode(), **changes}
        given.setdefault("template_id", self.template_id)
        return Queued(self.organization_id, self.ids.new(MESSAGE), **given)

    async def made(self, message: Queued) -> EmailContent | Cause:
        async with self.emails.content_of(message) as content:
            return content

    async def links(self, message: Queued) -> list[tuple[str, str]]:
        found = await tracked_links.of_messages(self.db, [message.id])
        return [tuple(link) for link in found.get(message.id, [])]


@pytest.fixture
async def post(database: Database) -> AsyncIterator[Post]:
    clock = SystemClock()
    ids = IdSource(clock, random.Random(3))
    made = await acme(database, clock, ids)
    organization_id = made.organization.id
    template_id = await add_email_template(database, ids, organization_id)
    emails = departing(database, clock)
    await emails.start()
    try:
        yield Post(database, ids, organization_id, template_id, emails)
    finally:
        await emails.stop()


async def test_it_is_rendered_tracked_and_can_be_unsubscribed_from(post: Post) -> None:
    message = post.message()
    content = await post.made(message)
    assert isinstance(content, EmailContent)
    ((code, url),) = await post.links(message)
    assert url == "https://example.com/go"
    image = TOKENS.of_open(EmailKey(post.organization_id, "test", message.id))
    assert content.html == (
        f'<p>Hello Ana &amp; Bo, <a href="{LINK_BASE}/l/{code}">go</a></p>'
        f'<img src="{LINK_BASE}/o/{image}.gif" width="1" height="1" alt="" style="border:0">'
    )
    assert (content.subject, content.text) == ("Hi Ana & Bo", None)
    assert content.text_source is not None
    assert content.text_source.text(content.html) == f"Hello Ana & Bo, go ({LINK_BASE}/l/{code})"
    assert (content.from_address, content.from_name) == ("no-reply@sandbox.test", "Sandbox")
    assert [name for name, _ in content.headers] == ["List-Unsubscribe", "List-Unsubscribe-Post"]
    assert not content.transactional


async def test_made_once_more_it_has_the_links_that_it_had(post: Post) -> None:
    message = post.message()
    first = await post.made(message)
    links = await post.links(message)
    assert await post.made(message) == first
    assert await post.links(message) == links


async def test_many_at_once_share_their_looks(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    of_messages = tracked_links.of_messages

    async def counted(executor: Any, ids: Any) -> Any:
        looks.append(len(ids))
        return await of_messages(executor, ids)

    monkeypatch.setattr(tracked_links, "of_messages", counted)
    messages = [post.message() for _ in range(60)]
    made = await asyncio.gather(*map(post.made, messages))
    assert all(isinstance(each, EmailContent) for each in made)
    assert sum(looks) == 60
    assert len(looks) < 10


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"recipient": f"suppressionlist@{SIMULATOR}"}, "suppressed"),
        ({"template_id": "etpl_" + "0" * 21}, "template_unavailable"),
        ({"details": {"from": "Else <else@elsewhere.test>"}}, "no_verified_sender"),
        ({"details": None}, "no_verified_sender"),
        ({"payload": "{}"}, "content_rejected"),
        ({"payload": orjson.dumps({"variables": {"name": "a" * 300}}).decode()}, "content_rejected"),
    ],
)
async def test_why_it_cannot_be_made(post: Post, changes: dict[str, Any], code: str) -> None:
    message = post.message(**changes)
    cause = await post.made(message)
    assert isinstance(cause, Cause)
    assert cause.code == code
    assert await post.links(message) == []


async def test_an_address_that_was_suppressed_since_gets_nothing(post: Post) -> None:
    await post.db.execute(SUPPRESS, post.organization_id, email_hash(post.organization_id, "ana@example.com"))
    cause = await post.made(post.message())
    assert isinstance(cause, Cause)
    assert cause.code == "suppressed"
    other = await post.made(post.message(recipient="bo@example.com"))
    assert isinstance(other, EmailContent)


async def test_a_sender_that_is_verified_no_more_sends_nothing(post: Post) -> None:
    await post.db.execute("update email_senders set status = 'failed', is_default = false")
    assert await senders.sending(post.db, post.organization_id, "test", None) is None
    cause = await post.made(post.message())
    assert isinstance(cause, Cause)
    assert cause.code == "no_verified_sender"


async def test_few_long_ones_are_in_memory_at_a_time(post: Post) -> None:
    html = "<p>{{name}}</p>" + "a" * 20_000
    long = await add_email_template(post.db, post.ids, post.organization_id, name="long", html=html)
    held = [post.emails.content_of(post.message(template_id=long)) for _ in range(module.LONG_EACH)]
    for each in held:
        assert isinstance(await each.__aenter__(), EmailContent)
    one_more = asyncio.create_task(post.made(post.message(template_id=long)))
    short = await post.made(post.message())
    assert isinstance(short, EmailContent)
    assert not one_more.done()
    for each in held:
        await each.__aexit__(None, None, None)
    assert isinstance(await one_more, EmailContent)
