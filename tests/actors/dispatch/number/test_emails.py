"""E-mails of journeys in the lane that all of an organization leave by: they take turns as any message (C15.4)."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from tests.journey_emails import add_email_template, departing

from recado.actors.dispatch.lane_messages import Look
from recado.actors.dispatch.shared_gateway import GatewayPlan
from recado.channels.core.provider import Account, OutboundMessage, Outcome, Retry, Unknown
from recado.domain.channels.email import EMAIL, ROUTE
from recado.domain.core.ids import JOURNEY, MESSAGE
from recado.domain.email.content import EmailContent
from recado.domain.messages.message import NORMAL
from recado.domain.senders.sender import SenderKey, route_sender
from recado.storage.messages import messages
from recado.storage.messages.messages import ConsentCheck, NewMessage

if TYPE_CHECKING:
    from tests.actors.dispatch.number.conftest import Line

FROM = "Sandbox <no-reply@sandbox.test>"


@dataclass
class Post:
    """The lane, and what its provider was given."""

    line: "Line"
    template_id: str
    journey_id: str
    given: list[EmailContent]

    @property
    def key(self) -> SenderKey:
        return SenderKey(self.line.organization.id, "test", EMAIL, route_sender(EMAIL, "test", ROUTE))

    def tell(self, message: object) -> None:
        self.line.registry.get_or_spawn(self.key, self.line.make).tell(message)

    async def queue(self, count: int = 1, *, ttl: timedelta = timedelta(hours=1), **changes: Any) -> list[str]:
        now = self.line.clock.now()
        new = [
            NewMessage(
                organization_id=self.line.organization.id, env="test", channel=EMAIL, id=self.line.ids.new(MESSAGE),
                sender_id=self.key.sender_id, type="template", recipient=f"p{place}@example.com", recipient_hash=place,
                klass=NORMAL, force=False, template_id=self.template_id,
                payload=orjson.dumps({"variables": {"name": f"P{place}"}}).decode(), template_vars=None, metadata=None,
                campaign_id=None, scheduled_at=None, due_at=now, ttl=ttl, held_base_ms=0, accepted_at=now,
                owner=self.journey_id, consent=ConsentCheck.NOT_REFUSED, details=orjson.dumps({"from": FROM}).decode(),
                **changes,
            )
            for place in range(count)
        ]  # fmt: skip
        assert await messages.accept(self.line.db, new) == [messages.STORED] * count
        self.tell(Look())
        return [each.id for each in new]

    async def states(self) -> list[tuple[str, str | None]]:
        rows = await self.line.db.fetch("select status, failure_code from messages where channel = 'email' order by id")
        return [(row["status"], row["failure_code"]) for row in rows]


@pytest.fixture
async def post(line: "Line") -> AsyncIterator[Post]:
    account = Account(sender_id="mail", organization_id="", env="test", provider_id="mail", owner="mail")
    provider: Any = line.provider
    line.context.share(
        [GatewayPlan(channel=EMAIL, env="test", name="mail", per_second=50, provider=provider, account=account)]
    )
    watched: Any = line.context.records.db
    emails = departing(watched, line.clock)
    await emails.start()
    line.contents[EMAIL] = emails.content_of
    template_id = await add_email_template(line.db, line.ids, line.organization.id)
    made = Post(line, template_id, line.ids.new(JOURNEY), [])
    answer = line.provider.answer

    def noting(message: OutboundMessage) -> Outcome:
        assert message.details is not None
        made.given.append(message.details["content"])
        return answer(message)

    line.provider.answer = noting
    yield made
    await emails.stop()


async def test_each_leaves_with_a_body_of_its_own_and_none_is_stored(post: Post) -> None:
    ids = await post.queue(20)
    await post.line.goes_on(3.0)
    assert sorted(post.line.provider.sent) == sorted(ids)
    assert sorted(each.subject for each in post.given) == sorted(f"Hi P{n}" for n in range(20))
    assert await post.states() == [("sent", None)] * 20
    stored = await post.line.db.fetch("select payload::text, details::text from messages where channel = 'email'")
    assert not [row for row in stored if "Hello" in row["payload"] + row["details"]]
    assert await post.line.db.fetchval("select count(*) from tracked_links") == 20


async def test_what_is_refused_for_now_is_tried_again_and_given_up_at_the_fifth_time(post: Post) -> None:
    post.line.provider.answer = lambda message: Retry()
    await post.queue()
    await post.line.goes_on(2.0)
    assert await post.states() == [("queued", None)]
    assert await post.line.db.fetchval("select reason from dispatch") == "retry"
    for _ in range(4):
        await post.line.db.execute("update dispatch set not_before = null, reason = null where claimed_epoch is null")
        post.tell(Look())
        await post.line.goes_on(2.0)
    assert [attempt for _, _, attempt in post.line.provider.calls] == [1, 2, 3, 4, 5]
    assert await post.states() == [("failed", "provider_error")]
    assert await post.line.db.fetchval("select count(*) from tracked_links") == 1


async def test_an_unknown_outcome_stays_queued_and_is_not_sent_again(post: Post) -> None:
    post.line.provider.answer = lambda message: Unknown()
    await post.queue()
    await post.line.goes_on(3.0)
    post.tell(Look())
    await post.line.goes_on(3.0)
    assert len(post.line.provider.calls) == 1
    assert await post.states() == [("queued", None)]
    assert await post.line.db.fetchval("select reason from dispatch") == "uncertain"


async def test_what_cannot_be_made_any_more_fails_and_nobody_is_called(post: Post) -> None:
    await post.line.db.execute("update email_templates set status = 'archived'")
    await post.queue()
    await post.line.goes_on(2.0)
    assert (await post.states(), post.line.provider.calls) == ([("failed", "template_unavailable")], [])


async def test_a_pause_of_its_journey_holds_it(post: Post) -> None:
    owners, now = post.line.context.records.owners, post.line.clock.now()
    owners.paused(post.journey_id, now)
    await post.queue(3)
    await post.line.goes_on(2.0)
    rows = await post.line.db.fetch("select distinct reason from dispatch")
    assert ([row["reason"] for row in rows], post.line.provider.calls) == (["owner_paused"], [])


async def test_who_refused_gets_nothing_of_what_was_queued(post: Post) -> None:
    await post.queue(ttl=timedelta(hours=2))
    await post.line.db.execute(
        "insert into opt_outs (organization_id, env, kind, hash, at) "
        "values ($1::text, 'test', 'email', sha256(convert_to($1::text || ':p0@example.com', 'UTF8')), now())",
        post.line.organization.id,
    )
    await post.line.goes_on(3.0)
    assert (await post.states(), post.line.provider.calls) == ([("failed", "opted_out")], [])


async def test_its_time_to_live_runs_out(post: Post) -> None:
    await post.queue(ttl=timedelta(seconds=-1))
    await post.line.goes_on(2.0)
    assert (await post.states(), post.line.provider.calls) == ([("failed", "expired")], [])
