"""Media that a message names is checked alike whether its records are read first or at hand (C8.2.4, C15.2.1)."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from recado.domain.core.errors import Problem
from recado.domain.core.ids import MEDIA
from recado.domain.media.media_types import MIB
from recado.services.media.media_use import MediaUse
from recado.services.messages.chatapp_rules import ChatAppRules
from recado.services.messages.draft import MessageDraft
from recado.storage.media import media
from recado.storage.media.media import KeptMedia, MediaDirectory

UNUSED: Any = None  # nothing is given to a provider here


@pytest.fixture
def rules(house: Any) -> ChatAppRules:
    known = house.directories
    use = MediaUse(
        house.db, blobs=UNUSED, senders=UNUSED, directory=MediaDirectory(house.db, clock=house.clock),
        media_for=lambda channel, env: None, clock=house.clock,
    )  # fmt: skip
    return ChatAppRules(
        numbers=known.numbers, organizations=known.organizations, templates=known.templates, flows=known.flows,
        windows=UNUSED, ids=house.ids, clock=house.clock, sends_in={"test"}, media=use, prices=known.prices,
    )  # fmt: skip


async def picture(house: Any, size: int) -> KeptMedia:
    """An image that the number's provider has got."""
    made = KeptMedia(
        organization_id=house.organization.id, env="test", id=house.ids.new(MEDIA), number_id=house.number.id,
        social_account_id=None, kind="image", mime_type="image/png", filename="menu.png", size=size,
        sha256="0" * 64, voice=False, blob_key="menu", provider_ids={house.number.id: "theirs"},
        expires_at=house.clock.now() + timedelta(days=30),
    )  # fmt: skip
    await media.insert(house.db, made)
    return made


async def refused_alike(rules: ChatAppRules, draft: MessageDraft) -> tuple[str, str]:
    """Code and pointer, the same both ways."""
    with pytest.raises(Problem) as read:
        await rules.read(replace(draft))
    with pytest.raises(Problem) as at_once:
        rules.at_once(replace(draft))
    assert (at_once.value.code, at_once.value.errors) == (read.value.code, read.value.errors)
    return read.value.code, read.value.errors[0].path


async def test_a_picture_that_left_as_a_document_is_still_too_large_as_a_picture(
    house: Any, rules: ChatAppRules
) -> None:
    made = await picture(house, 7 * MIB)  # as a social account takes

    def sent_as(kind: str) -> MessageDraft:
        draft: MessageDraft = house.free_form(type="media", payload={"kind": kind, "media": {"id": made.id}})
        return draft

    await rules.read(sent_as("document"))
    assert rules.at_once(sent_as("document")) is not None
    assert await refused_alike(rules, sent_as("image")) == ("VALIDATION_ERROR", "/payload/media/id")


async def test_a_template_without_media_takes_none_that_is_at_hand_either(house: Any, rules: ChatAppRules) -> None:
    payload = {"header": {"media": {"id": (await picture(house, MIB)).id}}}
    header = {"type": "HEADER", "payload": {"format": "DOCUMENT"}}
    takes_one = house.draft(
        template_id=(await house.add_template(components=(header, *house.template.components))).id, payload=payload
    )
    await rules.read(takes_one)
    assert rules.at_once(takes_one) is not None
    refusal = await refused_alike(rules, house.draft(payload=payload))
    assert refusal == ("TEMPLATE_VARS_MISMATCH", "/payload/header/media/id")
