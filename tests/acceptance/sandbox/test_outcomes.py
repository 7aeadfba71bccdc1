"""What becomes of a message by the last digits of its recipient (C29.4), from acceptance to its last report."""

from datetime import timedelta
from typing import Any

import pytest
from tests.acceptance.sandbox.conftest import TIME_SCALE
from tests.acceptance.sandbox.customer import Customer, moment, phone
from tests.waiting import until


@pytest.mark.parametrize("suffix", ["0000", "9009", "9010"])
async def test_most_messages_are_delivered_and_read(suffix: str, regular: Customer) -> None:
    message = await regular.send(phone(suffix))

    read = await regular.reaches(message, "read")

    assert message["status"] == "queued"
    assert read["sentAt"] <= read["deliveredAt"] <= read["readAt"]
    assert (read["attempts"], "waiting" in read, "lastError" in read) == (1, False, False)
    assert read["providerMessageId"]


@pytest.mark.parametrize(("suffix", "code"), [("9001", "recipient_unreachable"), ("9011", "policy_blocked")])
async def test_a_refused_message_failed_and_never_left(suffix: str, code: str, regular: Customer) -> None:
    failed = await regular.reaches(await regular.send(phone(suffix)), "failed")

    assert failed["lastError"].startswith(f"{code}: ")
    assert failed["failedAt"]
    assert "sentAt" not in failed


@pytest.mark.parametrize(("suffix", "code"), [("9002", "provider_error"), ("9012", "expired")])
async def test_a_message_may_leave_and_be_reported_failed(suffix: str, code: str, regular: Customer) -> None:
    failed = await regular.reaches(await regular.send(phone(suffix)), "failed")

    assert failed["lastError"].startswith(f"{code}: ")
    assert failed["sentAt"] <= failed["failedAt"]
    assert "deliveredAt" not in failed


async def test_a_message_without_reports_stays_sent_and_one_without_the_second_delivered(regular: Customer) -> None:
    silent, unread = await regular.send(phone("9003")), await regular.send(phone("9004"))
    await regular.reaches(silent, "sent")
    await regular.reaches(unread, "delivered")
    for _ in range(2):  # reports are applied in the order of their moments: theirs would have come before these
        await regular.reaches(await regular.send(phone()), "read")

    assert (await regular.read(silent))["status"] == "sent"
    assert (await regular.read(unread))["status"] == "delivered"


async def test_an_unknown_outcome_says_so_until_its_report_comes(regular: Customer) -> None:
    seen: Any = {}
    while (seen.get("waiting") or {}).get("reason") != "uncertain":
        if seen.get("status") in (None, "delivered"):  # its report comes after three seconds: who looks later sees that
            message = await regular.send(phone("9006"))
        seen = await regular.read(message)
    assert seen["waiting"] == {"reason": "uncertain"}
    delivered = await regular.reaches(message, "delivered")

    assert delivered["attempts"] == 1
    assert delivered["sentAt"] <= delivered["deliveredAt"]


async def test_an_unknown_outcome_without_a_report_stays_uncertain_and_is_not_sent_again(regular: Customer) -> None:
    message = await regular.send(phone("9014"))
    await regular.waits(message, "uncertain")
    await regular.reaches(await regular.send(phone("9006")), "delivered")  # three times the longest report

    latest = await regular.read(message)

    assert (latest["status"], latest["attempts"], latest["waiting"]) == ("sending", 1, {"reason": "uncertain"})


@pytest.mark.parametrize(("suffix", "status", "text"), [("9007", "read", "OK"), ("9008", "delivered", "SAIR")])
async def test_a_person_may_answer(suffix: str, status: str, text: str, regular: Customer) -> None:
    to = phone(suffix)
    message = await regular.send(to)

    async def answers() -> list[Any]:
        page = regular.api.pages("/messages", numberId=regular.number_id, direction="inbound")
        return [each async for each in page if each["to"] == to]

    (answer,) = await until(answers, "the answer has come", every=0.05)
    assert (await regular.reaches(message, status))["status"] == status
    assert (answer["to"], answer["payload"], answer["status"]) == (to, {"text": {"body": text}}, "delivered")
    reply = {"type": "text", "templateId": None, "templateVars": None, "payload": {"text": {"body": "thank you"}}}
    await regular.reaches(await regular.send(to, **reply), status)  # the window is open


async def test_a_slow_down_costs_time_and_no_attempt(regular: Customer) -> None:
    read = await regular.reaches(await regular.send(phone("9013")), "read")

    assert read["attempts"] == 1
    assert moment(read["sentAt"]) - moment(read["createdAt"]) >= timedelta(seconds=2 * TIME_SCALE)
