"""The table of rules: each request that shows no key has a row of its own."""

import pytest

from recado.entry.rules import RULES, Way, rule_of, shown_by_text, shown_by_token
from recado.storage.cells.whereabouts import Shows

ID = "0Vc" + "x" * 18


@pytest.mark.parametrize(
    ("method", "path", "way", "shown"),
    [
        ("GET", "/l/abcdEFG1", Way.PATH, (Shows.LINK, "abcdEFG1")),
        ("GET", "/l/abcdEFG12", Way.ANY, None),
        ("GET", "/c/abcdEFG1", Way.PATH, (Shows.CHAT, "abcdEFG1")),
        ("GET", f"/o/t{ID}{ID}{'s' * 22}.gif", Way.PATH, (Shows.ORGANIZATION, f"org_{ID}")),
        ("GET", f"/o/t{ID}", Way.ANY, None),
        ("POST", f"/u/l{ID}{ID}{ID}{'s' * 65}", Way.PATH, (Shows.ORGANIZATION, f"org_{ID}")),
        ("GET", f"/storage/org_{ID}/test/media/2026/11/n", Way.PATH, (Shows.ORGANIZATION, f"org_{ID}")),
        ("POST", "/v2/sessions", Way.BODY, None),
        ("GET", "/v2/sessions", Way.CREDENTIAL, None),
        ("DELETE", "/v2/sessions/current", Way.CREDENTIAL, None),
        ("POST", "/v2/accounts/accept-invite", Way.BODY, None),
        ("POST", "/v2/callbacks/sms/smpp", Way.ALL, None),
        ("POST", "/v2/callbacks/payments/bridge", Way.ALL, None),
        ("GET", "/v2/callbacks/chatapp/cloud", Way.ANY, None),
        ("GET", "/console/build/app.js", Way.ANY, None),
        ("GET", "/healthz", Way.HERE, None),
        ("GET", "/metrics", Way.HERE, None),
        ("PATCH", "/v2/admin/organizations/x", Way.NOWHERE, None),
        ("GET", "/a\nb", Way.CREDENTIAL, None),
        ("CONNECT", "/v2/numbers", Way.NOWHERE, None),
        ("CONNECT", "/a\nb", Way.NOWHERE, None),
    ],
)
def test_a_request_goes_where_its_row_says(method: str, path: str, way: Way, shown: tuple[Shows, str] | None) -> None:
    rule, text = rule_of(method, path)
    assert rule.way is way
    assert (None if text is None else shown_by_text(rule, text)) == shown


def test_what_can_be_nobodys_is_not_looked_for() -> None:
    sign_in, _ = rule_of("POST", "/v2/sessions")
    assert shown_by_text(sign_in, " Ana@A.example ") == (Shows.EMAIL, "ana@a.example")
    for text in (None, 7, "a\x00b@c.example", "\ud800@c.example", "x" * 400):
        assert shown_by_text(sign_in, text) is None
    assert shown_by_token("svc_test_" + "a" * 43) is None
    assert [rule.way for rule in RULES if rule.strangers is False] == [Way.CREDENTIAL]
    assert rule_of("POST", "/v2/callbacks/payments/bridge")[0].held
