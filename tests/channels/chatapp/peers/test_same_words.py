"""Webhooks of our simulator: another's client reads the same in them as our parser does."""

from pywa.types import AccountUpdate, CallbackButton, Message
from pywa.types import templates as peer_templates
from pywa.types.user_preferences import UserMarketingPreferences
from tests.channels.chatapp.peers.conftest import ACCOUNT, BUSINESS, NUMBER, Stage

from recado.channels.core.events import Inbound, NumberNews, Preference, TemplateVerdict
from recado.channels.core.provider import TemplateSubmission


async def test_both_read_the_same_in_what_people_write(stage: Stage) -> None:
    person = {"from": "5511987654321", "number": NUMBER, "name": "Ana"}
    await stage.control("inbound", **person, text="Oi")
    image = {"type": "image", "image": {"id": "77", "mime_type": "image/png", "sha256": "x", "caption": "c"}}
    await stage.control("inbound", **person, message=image)
    button = {"type": "interactive", "interactive": {"type": "button_reply", "button_reply": {"id": "1", "title": "S"}}}
    await stage.control("inbound", **person, message=button, quoted="sim_1")
    reply = {"type": "button", "button": {"payload": "yes", "text": "Sim"}}
    await stage.control("inbound", **person, message=reply, quoted="sim_1")
    reaction = {"type": "reaction", "reaction": {"message_id": "sim_1", "emoji": "👍"}}
    await stage.control("inbound", **person, message=reaction)
    place = {"type": "location", "location": {"latitude": 1.5, "longitude": 2.5, "name": "Casa"}}
    await stage.control("inbound", **person, message=place)

    read = await stage.read(6)
    ours = stage.receiver.events()

    assert [type(each) for each in read] == [Message, Message, CallbackButton, CallbackButton, Message, Message]
    for theirs, event in zip(read, ours, strict=True):
        assert isinstance(event, Inbound)
        assert (theirs.id, theirs.timestamp, theirs.from_user.wa_id) == (
            event.provider_message_id,
            event.at,
            event.sender,
        )
        assert (theirs.from_user.name, theirs.metadata.phone_number_id) == (event.profile_name, event.account)
        quoted = theirs.reply_to_message
        assert (quoted.id if quoted else None) == event.quoted
    text, picture, chosen, pressed, reacted, placed = zip(read, ours, strict=True)
    assert text[0].text == text[1].payload["text"]["body"]
    assert (picture[0].image.id, picture[0].caption) == (picture[1].media_ref, picture[1].payload["media"]["caption"])
    assert (chosen[0].data, chosen[0].title) == ("1", chosen[1].payload["interactive"]["title"])
    assert pressed[0].data == pressed[1].payload["interactive"]["payload"]
    assert reacted[0].reaction.emoji == reacted[1].payload["text"]["body"]
    assert placed[0].location.latitude == placed[1].payload["raw"]["location"]["latitude"]


async def test_both_read_the_same_in_news_of_templates_people_and_accounts(stage: Stage) -> None:
    made = await stage.cloud.submit_template(
        ACCOUNT,
        TemplateSubmission(id="t", name="nosso", language="en-US", category="utility", components=[{"type": "BODY"}]),
    )
    await stage.receiver.has(1)
    path = f"templates/{made.provider_template_id}"
    await stage.control(path, status="PAUSED")
    await stage.control(path, category="MARKETING", quality="RED")
    await stage.control("preferences", number=NUMBER, value="stop", **{"from": "5511987654321"})
    await stage.control(
        "accounts/9", event="PARTNER_REMOVED", waba_info={"waba_id": BUSINESS, "owner_business_id": "8"}
    )

    read = await stage.read(5)
    approved, paused, category, preference, removal = stage.receiver.events()

    assert [type(each) for each in read] == [
        peer_templates.TemplateStatusUpdate,
        peer_templates.TemplateStatusUpdate,
        peer_templates.TemplateCategoryUpdate,
        peer_templates.TemplateQualityUpdate,
        UserMarketingPreferences,
        AccountUpdate,
    ]
    for theirs, event in zip(read[:3], (approved, paused, category), strict=True):
        assert isinstance(event, TemplateVerdict)
        assert (theirs.template_id, theirs.timestamp, theirs.id) == (
            event.provider_template_id,
            event.at,
            event.business_account,
        )
    assert [each.new_status.value.lower() for each in read[:2]] == [approved.status, paused.status]
    assert read[2].new_category.value.lower() == category.category
    assert isinstance(preference, Preference)
    assert (read[4].from_user.wa_id, bool(read[4])) == (preference.phone, not preference.stopped)
    assert isinstance(removal, NumberNews)
    assert (read[5].event.value, read[5].waba_info.id) == (removal.partner_removed, removal.business_account)
