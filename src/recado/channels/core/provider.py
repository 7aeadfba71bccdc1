"""What the service and a provider say to each other: messages and accounts out, outcome values back (C29.2).

Every outcome of a send is a value, matched in one place by the caller; a send never raises.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

from recado.channels.core.events import CAMEL, Category, Followup, Verdict
from recado.channels.core.fields import Text16, Text256, Text512, Tree


@dataclass(slots=True, eq=False)
class TemplateContent:
    """The approved template that a message sends; `variables`: the values of its body. `repr` holds no content."""

    name: str
    category: str
    language: str
    components: Sequence[Mapping[str, Any]] = field(repr=False)
    variables: Sequence[str] = field(default=(), repr=False)


@dataclass(slots=True, kw_only=True, eq=False)
class OutboundMessage:
    """One message as the provider needs it. `repr` holds no recipient and no content.

    Not frozen only because a frozen one takes twice as long to make, and one is made for each send.
    """

    id: str
    organization_id: str
    env: str
    channel: str
    sender_id: str
    to: str = field(repr=False)
    type: str  # as the channel has them
    payload: Mapping[str, Any] | None = field(default=None, repr=False)
    template: TemplateContent | None = None
    details: Mapping[str, Any] | None = field(default=None, repr=False)  # what its channel alone knows of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What messages leave from, as its provider knows it. `provider_id`: what it is called there, also in reports.

    `owner`: whose share of an adapter's connections its calls take (C31); `details`: what the adapters of its channel
    need besides.
    """

    sender_id: str
    organization_id: str
    env: str
    provider_id: str
    owner: str
    details: object = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Accepted:
    """The provider has the message. `followups`: only from the sandbox.

    `simulated`: the service answered in the provider's place, of which this says nothing (C29.4).
    """

    provider_message_id: str
    followups: tuple[Followup, ...] = ()
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """Refused for good. `code`: one of the codes of C15.4; `text`: bounded, without personal data.

    `simulated`: as of `Accepted`.
    """

    code: str
    text: str
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class Retry:
    """This message was refused for now: an attempt is spent. `after`: seconds, where the provider says."""

    after: float | None = None


@dataclass(frozen=True, slots=True)
class SlowDown:
    """The account goes too fast: the message goes back unspent. `after`: seconds, where the provider says."""

    after: float | None = None


@dataclass(frozen=True, slots=True)
class SlowPair:
    """Too many messages of this number to this recipient: this one goes back unspent, for `after` seconds (C14.5)."""

    after: float


@dataclass(frozen=True, slots=True)
class NoPlace:
    """The adapter had no place for the message in time: it goes back unspent, and says nothing of the provider."""


ACCOUNT_BLOCKED = "account_blocked"  # the code of a Down that somebody must look at


@dataclass(frozen=True, slots=True)
class Down:
    """The provider was certainly not given the message: no connection, or the account is not let in.

    `code` says which: `connect_failed`, `unauthorized`, `forbidden`, `account_blocked`, `stopped` and the like.
    """

    code: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """The provider may have processed the message. `followups`: only from the sandbox."""

    followups: tuple[Followup, ...] = ()


Outcome = Accepted | Refused | Retry | SlowDown | SlowPair | NoPlace | Down | Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberHealth:
    """What the provider says of a number now (C14.3); None = it says nothing, the stored value stands.

    `issues`: pairs of code and message. `per_second`: messages a second that the provider allows.
    """

    verified: bool
    status: str | None = None
    quality_rating: str | None = None
    messaging_tier: str | None = None
    name_status: str | None = None
    verified_name: str | None = None
    per_second: int | None = None
    profile: Mapping[str, str] | None = None
    issues: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateSubmission:
    """A template for the provider's review (C11.3). With `provider_template_id` it is an edit of one that is there."""

    id: str
    name: str
    language: str
    category: str
    components: Sequence[Mapping[str, Any]]
    header_example_url: str | None = None
    provider_template_id: str | None = None


@dataclass(frozen=True, slots=True)
class FlowDefinition:
    """A flow as the provider is to hold it (C19). `name`: one that no other flow has there."""

    name: str
    categories: Sequence[str]
    content: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Submission:
    """The provider took the template for review. `followups`: its verdict, where it comes with the answer."""

    provider_template_id: str
    followups: tuple[Followup, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderTemplate:
    """A template as the provider lists it, with the types of its JSON form at bridges (C29.3)."""

    __pydantic_config__ = CAMEL
    provider_template_id: Text256
    name: Text512
    language: Text16
    category: Category
    status: Literal["pending", Verdict]
    components: Annotated[list[Tree], Field(max_length=20)] = field(default_factory=list)
    rejection_reason: Text512 | None = None
