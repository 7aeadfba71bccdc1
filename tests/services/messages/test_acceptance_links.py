"""A message whose link has a code of another: others are drawn, and its content names the message that is stored."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from tests.channels.example.policy import URGENT, URGENT_PAGES

from recado.domain.channels.policies import POLICIES
from recado.domain.core.errors import Unavailable
from recado.domain.messages.message import Priority
from recado.services.messages.acceptance import Acceptance, AcceptedMessage
from recado.services.messages.draft import MessageDraft
from recado.storage.links.tracked_links import CodeTaken
from recado.storage.messages.messages import STORED, NewMessage

NOW = datetime(2026, 11, 20, tzinfo=UTC)


def page(number: int) -> NewMessage:
    fields: dict[str, Any] = {
        "organization_id": "org_1", "env": "test", "channel": URGENT, "id": f"msg_{number}", "sender_id": "s",
        "type": "text", "recipient": "ana@example.com", "recipient_hash": 1, "klass": 1, "force": False,
        "template_id": None, "payload": None, "template_vars": None, "metadata": None, "campaign_id": None,
        "scheduled_at": None, "due_at": NOW, "ttl": timedelta(hours=1), "held_base_ms": 0, "accepted_at": NOW,
        "content": f"content of msg_{number}",
    }  # fmt: skip
    return NewMessage(**fields)


class Rules:
    """Makes another message each time."""

    channel = URGENT
    sends_in: Sequence[str] = ("test",)

    def __init__(self) -> None:
        self.made = 0

    def at_once(self, draft: MessageDraft) -> NewMessage | None:
        return None

    async def read(self, draft: MessageDraft) -> NewMessage:
        self.made += 1
        return page(self.made)

    async def check_window(self, new: NewMessage) -> None: ...


class Direct:
    """Takes a message after so many whose codes are taken."""

    def __init__(self, taken: int) -> None:
        self.taken = taken
        self.sent: list[tuple[str, object]] = []

    def has_turn(self, new: NewMessage) -> bool:
        return True

    async def send(self, new: NewMessage) -> Any:
        self.sent.append((new.id, new.content))
        if len(self.sent) <= self.taken:
            raise CodeTaken
        return STORED, None


def acceptance(direct: Direct) -> Acceptance:
    parts: dict[str, Any] = dict.fromkeys(("organizations", "recipients", "sending", "ids", "clock"), Mock())
    return Acceptance(Mock(), rules=[Rules()], direct=direct, **parts)


def draft() -> MessageDraft:
    return MessageDraft(
        organization_id="org_1", env="test", channel=URGENT, sender_id="s", to="ana@example.com", type="text",
        priority=Priority.NORMAL,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def _entered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(POLICIES, URGENT, URGENT_PAGES)  # type: ignore[arg-type]


async def test_what_is_stored_is_named_by_its_content() -> None:
    direct = Direct(taken=1)
    accepted = await acceptance(direct).accept(draft())
    assert isinstance(accepted, AcceptedMessage)
    assert (accepted.message.id, accepted.message.content) == ("msg_2", "content of msg_2")
    assert direct.sent == [("msg_1", "content of msg_1"), ("msg_2", "content of msg_2")]


async def test_codes_are_drawn_a_few_times_only() -> None:
    direct = Direct(taken=9)
    with pytest.raises(Unavailable):
        await acceptance(direct).accept(draft())
    assert len(direct.sent) == 3
