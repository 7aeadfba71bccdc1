"""The requests of a load test."""

import json
import re
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from recado.loadtest.channels import CHANNELS, CHATAPP
from recado.loadtest.preparation import template_sender
from recado.loadtest.workload import MixedWorkload, Sender, Workload, recipient, turns

LOAD = CHANNELS[CHATAPP]


def sender(digit: str, text: str) -> Sender:
    number = {"id": "num_" + digit * 21, "rateLimit": {"perSecond": 80}}
    template = {"id": "tpl_" + digit * 21, "components": [{"type": "BODY", "payload": {"text": text}}]}
    return template_sender(number, template)


FIRST, SECOND = sender("1", "This is {{1}}."), sender("2", "This is plain.")


def parts(request: bytes) -> tuple[str, dict[str, str], dict[str, object]]:
    head, _, body = request.partition(b"\r\n\r\n")
    line, *fields = head.decode().split("\r\n")
    headers = dict(field.split(": ", 1) for field in fields)
    assert int(headers["Content-Length"]) == len(body)
    return line, headers, json.loads(body)


def test_a_request_is_a_template_message_of_the_run() -> None:
    workload = Workload("http://127.0.0.1:8080/base/", "svc_test_x", "run-1", [FIRST], LOAD)

    line, headers, body = parts(workload.request(7))

    assert line == "POST /base/messages HTTP/1.1"
    assert headers["Host"] == "127.0.0.1:8080"
    assert headers["Authorization"] == "Bearer svc_test_x"
    assert body == {
        "numberId": FIRST.name,
        "to": "+5511900000007",
        "type": "template",
        "templateId": "tpl_" + "1" * 21,
        "templateVars": ["variable 1"],
        "campaignId": "run-1",
    }


def test_the_numbers_take_turns() -> None:
    workload = Workload("http://localhost:1", "t", "run-1", [FIRST, SECOND], LOAD)

    bodies = [parts(workload.request(number))[2] for number in range(4)]

    assert [body["numberId"] for body in bodies] == [FIRST.name, SECOND.name] * 2
    assert [body["templateVars"] for body in bodies[:2]] == [["variable 1"], []]
    assert len({body["to"] for body in bodies}) == 4


def test_channels_are_mixed_by_their_shares_and_each_goes_on_by_itself() -> None:
    chatapp = Workload("http://localhost:1", "t", "run-1", [FIRST, SECOND], LOAD)
    sms = CHANNELS["sms"]
    texts = Workload("http://localhost:1", "t", "run-1", [Sender("sms", None, sms.body or {})], sms)
    mixed = MixedWorkload([(chatapp, 80), (texts, 20)])

    requests = [mixed.request(number) for number in range(20)]

    assert [each for each in requests if b"POST /messages" in each] == [chatapp.request(each) for each in range(16)]
    assert [each for each in requests if b"POST /v2/sms" in each] == [texts.request(each) for each in range(4)]


@given(shares=st.lists(st.integers(1, 30), min_size=1, max_size=4))
def test_at_no_moment_is_a_channel_more_than_one_message_ahead_of_its_share(shares: list[int]) -> None:
    order, seen = turns(shares), Counter[int]()
    for issued, chosen in enumerate(order, 1):
        seen[chosen] += 1
        assert seen[chosen] < issued * shares[chosen] / sum(shares) + 1
    assert seen == dict(enumerate(shares))


@given(number=st.integers(0, 89_999_999))
def test_a_recipient_is_a_mobile_that_the_sandbox_treats_like_any_other(number: int) -> None:
    phone = recipient(LOAD.recipients, number).decode()

    assert re.fullmatch(r"\+55119\d{8}", phone)
    assert int(phone[-4:]) < 9000


@given(first=st.integers(0, 89_999_999), second=st.integers(0, 89_999_999))
def test_recipients_repeat_after_90_million_only(first: int, second: int) -> None:
    assert (recipient(LOAD.recipients, first) == recipient(LOAD.recipients, second)) == (first == second)
