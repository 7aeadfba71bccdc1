"""Domains that a provider is told for senders: when, how many, and taken back with the last of them (C10.4)."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from tests.captured import capture_logs
from tests.waiting import until

from recado.actors.jobs.email_sender_checks import EmailSenderChecks
from recado.channels.core.errors import NothingDoneError, ProviderError
from recado.channels.email.dns_proof import DnsProof
from recado.domain.core.errors import Unavailable
from recado.domain.email.sender import IDENTITIES_A_DAY, DnsRecord, SenderLook, parents_of
from recado.storage.email import identities

PATH = "/v2/email/senders"
DAY = 86_400.0  # seconds
LOST = ProviderError("unreachable", "no_answer", "nobody answers")


@dataclass
class Provider:
    """An account at a provider. `there`: whether it sends from a domain that it knows; `failing`: what calls raise.

    `calls`: those that change it. `entered`: tokens at the name server are found for these domains.
    """

    there: dict[str, bool] = field(default_factory=dict)
    failing: Exception | None = None
    allowed: bool = True
    calls: list[tuple[str, str]] = field(default_factory=list)
    entered: set[str] = field(default_factory=set)
    before_answer: Any = None
    place: str = "account"
    only_looks: bool = True

    async def identity(self, domain: str, owner: str, *, address: str | None = None) -> SenderLook | None:
        proven = any(self.there.get(each) for each in (domain, *parents_of(domain)))
        known = domain in self.there
        if self.before_answer is not None:
            await self.before_answer()
        return SenderLook(wanted(domain) if known else (), proven, untold=not known and not proven)

    async def make(self, domain: str, owner: str) -> SenderLook | None:
        self.calls.append(("make", domain))
        if isinstance(self.failing, NothingDoneError):
            raise self.failing
        if domain in self.there or not self.allowed:
            return None
        self.there[domain] = False
        if self.failing is not None:
            raise self.failing
        return SenderLook(wanted(domain), False)

    async def remove(self, domain: str, owner: str) -> None:
        self.calls.append(("remove", domain))
        if self.failing is not None:
            raise self.failing
        self.there.pop(domain, None)

    async def texts(self, name: str, owner: str) -> list[str]:
        return [value for domain, value in self.tokens if f"_svc.{domain}" == name and domain in self.entered]

    tokens: set[tuple[str, str]] = field(default_factory=set)


def wanted(domain: str) -> tuple[DnsRecord, ...]:
    return (DnsRecord("CNAME", f"k._domainkey.{domain}", "k.dkim.example.net"),)


@pytest.fixture
def provider(api: Any) -> Provider:
    made = Provider()
    records: Any = made
    api.verifiers["live"] = DnsProof(records, made, made)
    return made


async def make(api: Any, provider: Provider, domain: str, *, owned: bool = True, **how: Any) -> Any:
    named = {"address": domain} if "@" in domain else {"domain": domain}
    sender = (await api.post(PATH, named, env="live", **how)).body
    provider.tokens.add((domain.rpartition("@")[2], sender["dnsRecords"][0]["value"]))
    if owned:
        provider.entered.add(domain.rpartition("@")[2])
    return sender


async def verify(api: Any, sender: Any, **how: Any) -> Any:
    api.clock.shift(61)
    return await api.post(f"{PATH}/{sender['id']}/verify", env="live", **how)


async def delete(api: Any, sender: Any, **how: Any) -> None:
    assert (await api.delete(f"{PATH}/{sender['id']}", env="live", **how)).status == 204
    await api.sender_verification.remove_forsaken()


async def notes(api: Any) -> list[str]:
    rows = await api.database.fetch("select domain from email_identities where removed_at is null order by domain")
    return [row["domain"] for row in rows]


async def test_all_records_are_shown_at_once_and_a_domain_is_told_once(api: Any, provider: Provider) -> None:
    sender = await make(api, provider, "example.com", owned=False)
    assert provider.calls == []
    missing = await verify(api, sender)
    kinds = [(each["type"], each["found"]) for each in missing.body["dnsRecords"]]
    assert (missing.body["status"], kinds) == ("failed", [("TXT", False), ("CNAME", False)])

    provider.entered.add("example.com")
    assert (await verify(api, sender)).body["status"] == "failed"
    provider.there["example.com"] = True
    assert (await verify(api, sender)).body["status"] == "verified"
    assert provider.calls == [("make", "example.com")]


async def test_a_verified_domain_above_verifies_and_nothing_is_told(api: Any, provider: Provider) -> None:
    provider.there["example.com"] = True
    sender = await make(api, provider, "news.example.com", owned=False)
    assert (await verify(api, sender)).body["status"] == "failed"  # it may be somebody else's
    provider.entered.add("news.example.com")
    assert (await verify(api, sender)).body["status"] == "verified"
    for _ in range(4):
        api.clock.shift(DAY)
        await api.sender_verification.check_due()
    assert (await api.get(PATH, env="live")).body["items"][0]["status"] == "verified"
    await delete(api, sender)
    assert provider.calls == []


async def test_a_daily_look_tells_nothing(api: Any, provider: Provider) -> None:
    provider.there["example.com"] = True
    sender = await make(api, provider, "example.com")
    assert (await verify(api, sender)).body["status"] == "verified"
    provider.there.clear()
    for _ in range(3):
        api.clock.shift(DAY)
        await api.sender_verification.check_due()
    assert (await api.get(PATH, env="live")).body["items"][0]["status"] == "failed"
    assert (provider.calls, await notes(api)) == ([], [])


async def test_what_a_caller_may_not_be_told_changes_no_status(api: Any, provider: Provider) -> None:
    sender = await make(api, provider, "example.com")

    async def not_told(domain: str, owner: str, *, address: str | None = None) -> SenderLook:
        return SenderLook(wanted(domain), None)

    provider.identity = not_told  # type: ignore[method-assign]
    answer = await verify(api, sender)
    assert (answer.body["status"], len(answer.body["dnsRecords"])) == ("pending", 2)


async def test_a_domain_is_taken_back_with_the_last_sender_of_all_organizations(api: Any, provider: Provider) -> None:
    first = await make(api, provider, "example.com")
    await verify(api, first)
    others = [
        await make(api, provider, "Ana@example.com"),
        await make(api, provider, "a.example.com", organization=1),
        await make(api, provider, "example.com", organization=1),
    ]
    await make(api, provider, "notexample.com")
    await delete(api, first)
    await delete(api, others[0])
    await delete(api, others[1], organization=1)
    assert provider.there == {"example.com": False}
    await delete(api, others[2], organization=1)
    assert (provider.there, await notes(api)) == ({}, [])
    assert provider.calls == [("make", "example.com"), ("remove", "example.com")]


async def test_a_domain_that_somebody_else_told_stays(api: Any, provider: Provider) -> None:
    provider.there["example.com"] = False
    sender = await make(api, provider, "example.com")
    await verify(api, sender)
    await delete(api, sender)
    assert (provider.calls, provider.there) == ([], {"example.com": False})


async def test_a_domain_that_somebody_told_meanwhile_stays(api: Any, provider: Provider) -> None:
    sender = await make(api, provider, "example.com")

    async def told_meanwhile() -> None:
        provider.there["example.com"] = True

    provider.before_answer = told_meanwhile
    assert (await verify(api, sender)).body["status"] == "verified"
    await delete(api, sender)
    assert provider.calls == [("make", "example.com")]


async def test_who_may_tell_no_domain_hears_that_it_does_not_send(api: Any, provider: Provider) -> None:
    provider.allowed = False
    sender = await make(api, provider, "example.com")
    assert (await verify(api, sender)).body["status"] == "failed"
    assert await notes(api) == []


async def test_what_a_lost_answer_made_is_taken_back_and_told_no_second_time(api: Any, provider: Provider) -> None:
    sender = await make(api, provider, "example.com")
    provider.failing = LOST
    lost = await verify(api, sender)
    assert (lost.status, lost.code) == (502, "DEPENDENCY_FAILED")
    assert (await api.get(PATH, env="live")).body["items"][0]["status"] == "pending"
    provider.failing = None
    assert (await verify(api, sender)).body["status"] == "failed"
    await delete(api, sender)
    assert provider.calls == [("make", "example.com"), ("remove", "example.com")]


async def test_what_a_provider_did_not_do_leaves_no_note(api: Any, provider: Provider) -> None:
    sender = await make(api, provider, "example.com")
    provider.failing = NothingDoneError("unreachable", "provider_error", "too fast")
    assert (await verify(api, sender)).code == "DEPENDENCY_FAILED"
    assert await notes(api) == []
    await delete(api, sender)
    assert provider.calls == [("make", "example.com")]


async def test_a_domain_is_told_by_one_at_a_time(api: Any, provider: Provider) -> None:
    first = await make(api, provider, "example.com")
    second = await make(api, provider, "example.com", organization=1)
    provider.failing = LOST
    await verify(api, first)
    provider.there.clear()
    answer = await api.post(f"{PATH}/{second['id']}/verify", env="live", organization=1)
    assert (answer.status, answer.code) == (503, "SERVICE_UNAVAILABLE")
    provider.failing = None
    await verify(api, second, organization=1)
    assert provider.calls == [("make", "example.com")] * 2


@pytest.mark.parametrize(
    "failing", [LOST, ProviderError("refused", "not_allowed", "no"), NothingDoneError("unreachable", "x", "no")]
)
async def test_a_removal_that_fails_is_tried_again_after_a_day(
    api: Any, provider: Provider, failing: ProviderError
) -> None:
    sender = await make(api, provider, "example.com")
    await verify(api, sender)
    provider.failing = failing
    with capture_logs() as logs:
        await delete(api, sender)
        await api.sender_verification.remove_forsaken()
    assert [entry["event"] for entry in logs if entry["log_level"] == "warning"] == ["email_identity_not_removed"]
    assert "example.com" not in str(logs)
    assert provider.there == {"example.com": False}
    provider.failing = None
    api.clock.shift(DAY)
    await api.sender_verification.remove_forsaken()
    assert provider.there == {}
    api.clock.shift(2 * DAY)
    await api.sender_verification.remove_forsaken()
    assert await api.database.fetchval("select count(*) from email_identities") == 0


async def test_a_domain_goes_with_the_last_sender_under_it(api: Any, provider: Provider) -> None:
    above = await make(api, provider, "example.com")
    await verify(api, above)
    provider.there["example.com"] = True
    under = await make(api, provider, "news.example.com")
    assert (await verify(api, under)).body["status"] == "verified"
    await delete(api, above)
    assert provider.there == {"example.com": True}
    await delete(api, under)
    assert (provider.there, await notes(api)) == ({}, [])


async def test_a_domain_that_was_removed_by_hand_is_told_again_when_a_caller_asks(api: Any, provider: Provider) -> None:
    sender = await make(api, provider, "example.com")
    await verify(api, sender)
    provider.there.clear()
    await verify(api, sender)
    assert (provider.there, await notes(api)) == ({"example.com": False}, ["example.com"])


async def test_a_look_that_saw_what_is_taken_back_meanwhile_says_nothing(api: Any, provider: Provider) -> None:
    first = await make(api, provider, "example.com")
    await verify(api, first)
    provider.there["example.com"] = True
    provider.entered.add("a.example.com")

    async def taken_back() -> None:
        await api.database.execute(
            "update email_identities set removing_until = $1", api.clock.now().replace(year=2100)
        )

    provider.before_answer = taken_back
    second = await make(api, provider, "a.example.com")
    answer = await verify(api, second)
    assert (answer.status, answer.code) == (503, Unavailable().code)


async def test_an_organization_has_so_many_domains_told_in_a_day(api: Any, provider: Provider) -> None:
    organization = api.organizations[0].organization.id
    await api.database.execute(
        """insert into email_identities (place, domain, organization_id, told_at, removed_at)
        select 'account', 'd' || n || '.example.org', $1, $2, $2 from generate_series(1, $3::int) n""",
        organization, api.clock.now(), IDENTITIES_A_DAY,
    )  # fmt: skip
    sender = await make(api, provider, "example.com")
    refused = await verify(api, sender)
    assert (refused.status, refused.code, refused.headers["Retry-After"]) == (429, "RATE_LIMITED", str(86_400 - 61))
    assert (provider.calls, await notes(api)) == ([], [])
    other = await make(api, provider, "example.com", organization=1)
    assert (await verify(api, other, organization=1)).status == 200
    api.clock.shift(DAY)
    await verify(api, sender)
    assert provider.calls == [("make", "example.com")]


async def test_the_background_work_takes_back_what_is_due(api: Any, provider: Provider) -> None:
    sender = await make(api, provider, "example.com")
    await verify(api, sender)
    assert (await api.delete(f"{PATH}/{sender['id']}", env="live")).status == 204
    checks = EmailSenderChecks(api.sender_verification, clock=api.clock)
    await checks.start()
    await until(lambda: not provider.there, "the domain is taken back")
    await checks.stop()
    assert provider.calls[-1] == ("remove", "example.com")


async def test_a_domain_stays_while_what_was_found_of_it_is_written(api: Any, provider: Provider) -> None:
    sender = await make(api, provider, "example.com")
    await verify(api, sender)
    async with api.database.transaction() as connection:
        now = api.clock.now()
        await identities.forsake(api.database, "example.com", now)
        assert not await identities.is_going(connection, provider.place, ["example.com"], now, since=now)
        due = await identities.begin_removals(api.database, provider.place, now, again=timedelta(days=1), limit=9)
        assert due == ([], False)
