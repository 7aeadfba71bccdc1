"""Consent by e-mail address: asked by the address's key and its entry in the registry, beside phones (C12.5.6)."""

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.storage.dispatch.test_claims import IDS, LATER, NOW, NUMBER, ORGANIZATION, asking, of, refuse, stored
from tests.storage.webhooks.test_events import plan_of

from recado.domain.channels import chatapp
from recado.domain.channels.address import Address, AddressKind
from recado.domain.channels.policies import POLICIES
from recado.domain.contacts.consent import CONSENT_REQUIRED, ConsentStatus
from recado.domain.contacts.consent import OPTED_OUT as CONTACT_OPTED_OUT
from recado.domain.contacts.contact import email_hash, email_key
from recado.domain.core.ids import CONTACT, MESSAGE
from recado.domain.core.phones import phone_hash
from recado.storage.core.connections.postgres import Database
from recado.storage.dispatch import dispatch, epochs
from recado.storage.dispatch.dispatch import CLAIMED, OPTED_OUT, Claim
from recado.storage.messages import messages, recipients
from recado.storage.messages.messages import STORED, ConsentCheck, NewMessage, NoConsent
from recado.storage.messages.recipients import Recipient, RecipientKey

ANA, BIA = "Ana@Example.com", "bia@example.com"


@pytest.fixture(autouse=True)
def _email(monkeypatch: pytest.MonkeyPatch) -> None:
    """A channel whose people are named by their e-mail addresses."""
    policy = replace(chatapp.POLICY, channel="email", addresses=(AddressKind.EMAIL,))
    monkeypatch.setitem(POLICIES, "email", policy)  # type: ignore[arg-type]


async def contact(db: Database, email: str, status: str, *, phone: str = "+5511987650001", env: str = "test") -> str:
    contact_id = IDS.new(CONTACT)
    await db.execute(
        "insert into contacts (organization_id, env, id, phone, phone_hash, email, email_key, source, opt_in_status, "
        "search, updated_at) values ($1, $2, $3, $4, $5, $6, $7, 'api', $8, '', $9)",
        ORGANIZATION, env, contact_id, phone, phone_hash(ORGANIZATION, phone), email, email_key(email), status, NOW,
    )  # fmt: skip
    return contact_id


async def register(db: Database, email: str, *, env: str = "test") -> None:
    hashed = email_hash(ORGANIZATION, email)
    await db.execute("insert into opt_outs values ($1, $2, 'email', $3, $4)", ORGANIZATION, env, hashed, NOW)


def asking_by_email(message_id: str, email: str, at: Any = NOW) -> Claim:
    return Claim(ORGANIZATION, message_id, 1, False, at, ("test", Address.of(AddressKind.EMAIL, email)))


async def test_whoever_opted_out_by_address_is_not_claimed_and_phones_are_asked_beside(database: Database) -> None:
    epoch = await epochs.take_epoch(database, NOW)
    await register(database, ANA)
    await register(database, BIA, env="live")
    await refuse(database, "+5511987654321", by="registry")
    ana, bia, by_phone, other, exempt = [await stored(database) for _ in range(5)]

    batch = [
        asking_by_email(ana, ANA.upper()), asking_by_email(bia, BIA), asking(by_phone),
        asking(other, "+5511987654322"), of(exempt),
    ]  # fmt: skip

    verdicts = [OPTED_OUT, CLAIMED, OPTED_OUT, CLAIMED, CLAIMED]
    assert await dispatch.claim(database, batch, epoch, NOW) == verdicts


@pytest.mark.parametrize(("second", "verdict"), [("denied", OPTED_OUT), ("unknown", CLAIMED)])
async def test_of_several_contacts_with_an_address_one_that_refused_is_enough(
    database: Database, second: str, verdict: str
) -> None:
    epoch = await epochs.take_epoch(database, NOW)
    await contact(database, ANA, "granted")
    await contact(database, ANA.lower(), second, phone="+5511987650002")
    await contact(database, ANA, "denied", phone="+5511987650003", env="live")
    message_id = await stored(database)
    assert await dispatch.claim(database, [asking_by_email(message_id, ANA, LATER)], epoch, LATER) == [verdict]


async def test_a_look_up_reads_no_more_of_an_address_that_very_many_contacts_have(database: Database) -> None:
    await database.execute(
        "insert into contacts (organization_id, env, id, phone, phone_hash, email, email_key, source, opt_in_status, "
        "search, updated_at) select $1, 'test', 'con_' || lpad(n::text, 21, '0'), '+55119' || 87600000 + n, "
        "sha256(convert_to(n::text, 'UTF8')), $2, $3, 'api', case n when 2999 then 'denied' else 'unknown' end, '', $4 "
        "from generate_series(1, 3000) n",
        ORGANIZATION, ANA, email_key(ANA), NOW,
    )  # fmt: skip
    explained = await database.fetchval(
        f"explain (analyze, timing off, format json) {recipients.SQL.find_by_email.rstrip().rstrip(';')}",
        [0], [ORGANIZATION], ["test"], [email_key(ANA)],
    )  # fmt: skip
    assert max(map(int, re.findall(r'"Actual Rows": ([0-9]+)', explained))) == 1_000
    (found,) = await recipients.find(database, [RecipientKey(ORGANIZATION, "test", email=ANA)])
    assert found.status is ConsentStatus.DENIED


def new(to: str, consent: ConsentCheck, channel: str = "email") -> NewMessage:
    fields: dict[str, Any] = {
        "organization_id": ORGANIZATION, "env": "test", "channel": channel, "id": IDS.new(MESSAGE), "sender_id": NUMBER,
        "type": "template", "recipient": to, "recipient_hash": 1, "klass": 1, "force": False, "template_id": None,
        "payload": None, "template_vars": None, "metadata": None, "campaign_id": None, "scheduled_at": None,
        "due_at": NOW, "ttl": timedelta(hours=1), "held_base_ms": 0, "accepted_at": NOW, "consent": consent,
    }  # fmt: skip
    return NewMessage(**fields)


async def test_what_consent_forbids_to_an_address_is_not_accepted(database: Database) -> None:
    await register(database, ANA)
    await contact(database, BIA, "granted")
    await refuse(database, "+5511987654321", by="registry")
    batch = [
        new(ANA, ConsentCheck.NOT_REFUSED),
        new(ANA, ConsentCheck.EXEMPT),
        new(BIA.upper(), ConsentCheck.GRANTED),
        new("caio@example.com", ConsentCheck.NOT_REFUSED),
        new("caio@example.com", ConsentCheck.GRANTED),
        new("+5511987654321", ConsentCheck.NOT_REFUSED, "chatapp"),
        new("+5511987654322", ConsentCheck.NOT_REFUSED, "chatapp"),
    ]
    opted_out, required = NoConsent(CONTACT_OPTED_OUT), NoConsent(CONSENT_REQUIRED)
    expected = [opted_out, STORED, STORED, STORED, required, opted_out, STORED]
    assert await messages.accept(database, batch) == expected
    undecided = {each.id: result for each, result in zip(batch, expected, strict=True) if result is not STORED}
    decided = await messages.decided(database, [each for each in batch if each.id in undecided])
    assert decided == undecided


async def test_whoever_has_an_address_is_known_by_it(database: Database) -> None:
    first = await contact(database, ANA, "granted")
    await contact(database, ANA, "denied", phone="+5511987650002")
    await register(database, BIA)
    asked = [RecipientKey(ORGANIZATION, "test", email=each) for each in (BIA, ANA, "caio@example.com")]
    by_phone = RecipientKey(ORGANIZATION, "test", phone="+5511987650001")
    assert await recipients.find(database, [*asked, by_phone]) == [
        Recipient(None, None, None, True, BIA),
        Recipient(first, None, ConsentStatus.DENIED, False, ANA),
        Recipient(None, None, None, False, "caio@example.com"),
        Recipient(first, "+5511987650001", ConsentStatus.GRANTED, False, ANA),
    ]


@pytest.mark.parametrize(
    "statement",
    [messages._accepting(by_email=True, with_links=False), dispatch.CLAIM_BY_EMAIL, recipients.SQL.find_by_email],
    ids=["accept", "claim", "find"],
)
async def test_consent_is_looked_up_by_address_and_hash_alone(database: Database, statement: str) -> None:
    """Never by reading whoever refused: tables that are empty when the plan is made are long ones later."""
    plan = await plan_of(database, statement)
    assert "Seq Scan" not in plan
    assert re.findall(r"using opt_outs_pkey on .*\n\s+Index Cond: .*organization_id.*env.*kind.*hash", plan)
    assert re.findall(r"using contacts_email on .*\n\s+Index Cond: .*organization_id.*env.*email_key", plan)
    scans = re.findall(r"using (\w+) on (?:contacts|opt_outs)\b", plan)
    assert set(scans) <= {"opt_outs_pkey", "contacts_phone", "contacts_email"}
