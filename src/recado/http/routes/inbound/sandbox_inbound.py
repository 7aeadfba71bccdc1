"""POST /v2/sandbox/inbound: a person writes to a number or an account of test, to try windows and replies (C29.4)."""

from base64 import b64decode
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Protocol

from pydantic import Field

from recado.channels.core.events import Inbound
from recado.domain.channels.address import AddressKind
from recado.domain.channels.policies import HEARD, POLICIES, address_kind
from recado.domain.channels.policy import SenderKind
from recado.domain.channels.source import SANDBOX, Source
from recado.domain.core.errors import FieldError, field_refused, test_only, validation_error
from recado.domain.core.ids import MESSAGE, NUMBER, REQUEST, SOCIAL_ACCOUNT
from recado.domain.core.references import reference_not_found
from recado.domain.media.media_types import KINDS, LONGEST_TYPE, normalized, safe_filename
from recado.http.api.call import Call
from recado.http.api.models import ApiModel
from recado.http.api.route import Idempotency, Route
from recado.http.routes.core.phones import recipient_at
from recado.http.routes.messages.message_models import SENDER_REQUIRED
from recado.http.wire.reply import Reply
from recado.services.inbound.account_owners import AccountOwner, own_sender
from recado.services.media.media_use import MediaFor
from recado.storage.access.directories import Directories
from recado.storage.core.connections.postgres import Database
from recado.storage.messages import message_reads

TEST = "test"
if TYPE_CHECKING:
    Channel = str
else:
    Channel = Literal[HEARD]


class Receiver(Protocol):
    """Takes in what people write (`receipts.py`)."""

    async def inbound(self, source: Source, owner: AccountOwner, event: Inbound) -> str:
        """Store the message; its id."""


class SandboxMedia(ApiModel):
    """A small file, as the provider would keep it: the body has at most 1 MiB."""

    mime_type: Annotated[str, Field(min_length=3, max_length=LONGEST_TYPE, examples=["image/png"])]
    data_base64: Annotated[str, Field(min_length=1, examples=["iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"])]
    filename: Annotated[str | None, Field(max_length=1_024)] = None


class PersonSends(Protocol):
    """A provider of test that holds what imagined people send (`sandbox.py`)."""

    def person_sends(self, reference: str, mime_type: str, content: bytes) -> None: ...


class SandboxInbound(ApiModel):
    """What the imagined person writes, and to which number or account, on a channel that has these."""

    channel: Channel = "chatapp"
    number_id: Annotated[str | None, Field(min_length=1, max_length=64)] = None
    social_account_id: Annotated[str | None, Field(min_length=1, max_length=64)] = None
    from_: Annotated[str, Field(alias="from", max_length=128, examples=["+5511987654321"])]
    text: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    media: Annotated[SandboxMedia | None, Field(description="A file in the place of a text.")] = None
    quoted: Annotated[
        str | None, Field(max_length=256, description="The message that is answered: our id, or the provider's.")
    ] = None


class SandboxInboundOut(ApiModel):
    """The id of the message that came in."""

    message_id: str


class _File(NamedTuple):
    """A file that a person sends, and the sandbox that is to hold it."""

    holder: PersonSends
    mime_type: str
    content: bytes


class _Written(NamedTuple):
    """What a person writes, and to whom."""

    source: Source
    owner: AccountOwner
    event: Inbound
    file: _File | None


class SandboxInboundOperations:
    """The handler."""

    def __init__(self, database: Database, directories: Directories, receiver: Receiver, media_for: MediaFor) -> None:
        self._database = database
        self._directories = directories
        self._receiver = receiver
        self._media_for = media_for

    async def hide_from_live(self, call: Call) -> None:
        """The operation exists with test credentials only."""
        if call.principal.env != TEST:
            raise test_only()

    async def examine(self, call: Call) -> _Written:
        """What the imagined person writes. Raises `Problem` 422."""
        body: SandboxInbound = call.body
        if (body.media is None) == (body.text is None):
            raise validation_error([FieldError("/text", "REQUIRED", "One of `text` and `media` is required.")])
        source = Source(body.channel, SANDBOX, TEST)
        account, owner = await self._account(call, source)
        # Unique, as the provider's ids are: each call is another message.
        reference = f"sandbox-in-{call.request_id.removeprefix(REQUEST)}"
        event = Inbound(
            account=account,
            sender=_sender(source.channel, body.from_),
            at=call.now,
            type="text" if body.media is None else "media",
            payload={"text": {"body": body.text}} if body.media is None else _payload(body.media),
            provider_message_id=reference,
            quoted=await self._quoted(call, body.quoted),
            media_ref=None if body.media is None else reference,
        )
        return _Written(source, owner, event, None if body.media is None else self._file(body.channel, body.media))

    async def write(self, call: Call) -> Reply:
        written = await self.examine(call)
        event, file = written.event, written.file
        if file is not None:
            # The sandbox has the file, from which it is copied as from any provider.
            file.holder.person_sends(event.provider_message_id, file.mime_type, file.content)
        return Reply(202, {"messageId": await self._receiver.inbound(written.source, written.owner, event)})

    def _file(self, channel: str, media: SandboxMedia) -> _File:
        try:
            content = b64decode("".join(media.data_base64.split()), validate=True)
        except ValueError:
            content = b""
        if not content:
            raise field_refused("VALIDATION_ERROR", "/media/dataBase64", "`dataBase64` is empty, or not base64.")
        holder: Any = self._media_for(channel, TEST)
        if holder is None:
            message = f"On channel {channel} nobody sends media: send `text`."
            raise field_refused("MEDIA_NOT_FOUND", "/media", message)
        return _File(holder, media.mime_type, content)

    async def _account(self, call: Call, source: Source) -> tuple[str, AccountOwner]:
        """What the person writes to, as the sandbox calls it, and whose it is: the caller's."""
        principal, kind = call.principal, POLICIES[source.channel].sender
        if kind is SenderKind.ROUTE:
            return SANDBOX, AccountOwner(principal.organization_id, own_sender(source))
        sender_id = call.body.social_account_id if kind is SenderKind.ACCOUNT else call.body.number_id
        if sender_id is None:
            raise validation_error([SENDER_REQUIRED[source.channel]])
        key = (principal.organization_id, principal.env, sender_id)
        if kind is SenderKind.ACCOUNT:
            account = await self._directories.social_accounts.get(key)
            if account is None:
                raise reference_not_found("socialAccountId", SOCIAL_ACCOUNT, sender_id, principal.env)
            return account.external_account_id, AccountOwner(account.organization_id, account.id)
        number = await self._directories.numbers.get(key)
        if number is None:
            raise reference_not_found("numberId", NUMBER, sender_id, principal.env)
        return number.phone_number_id, AccountOwner(number.organization_id, number.id)

    async def _quoted(self, call: Call, quoted: str | None) -> str | None:
        """The provider's id of the quoted message."""
        if quoted is None or not quoted.startswith(MESSAGE):
            return quoted
        principal = call.principal
        message = await message_reads.get(self._database, principal.organization_id, principal.env, quoted)
        if message is None:
            raise reference_not_found("quoted", MESSAGE, quoted, principal.env)
        return message.provider_message_id


def _sender(channel: str, told: str) -> str:
    if address_kind(channel) is AddressKind.PHONE:
        return recipient_at("/from", channel, told)
    if not told:
        raise validation_error([FieldError("/from", "REQUIRED", "`from` must not be empty.")])
    return told


def _payload(media: SandboxMedia) -> dict[str, Any]:
    """As the hosted API's form becomes ours (C15.3)."""
    mime_type = normalized(media.mime_type)
    kind = KINDS.get(mime_type) or {"image": "image", "audio": "audio", "video": "video"}.get(
        mime_type.partition("/")[0], "document"
    )
    said = {"mime_type": media.mime_type, "mimeType": mime_type}
    if media.filename:
        said["filename"] = safe_filename(media.filename) or "media"
    return {"kind": kind, "media": said}


def sandbox_inbound_routes(
    *, database: Database, directories: Directories, receiver: Receiver, media_for: MediaFor
) -> tuple[Route, ...]:
    """The simulation of inbound messages."""
    operations = SandboxInboundOperations(database, directories, receiver, media_for)
    return (
        Route(
            method="POST",
            path="/v2/sandbox/inbound",
            handler=operations.write,
            operation_id="simulateInbound",
            summary="Imagine that a person writes to a sandbox number or account",
            description="With test credentials only. Opens the 24 h window in which free-form messages may be sent.",
            tag="Sandbox",
            scope="messages:send",
            rate_class="write",
            body=SandboxInbound,
            responses={202: SandboxInboundOut},
            errors=("NOT_FOUND", "MEDIA_NOT_FOUND", "REFERENCE_NOT_FOUND", "PHONE_INVALID"),
            idempotency=Idempotency.ACCEPTED,
            creates=True,
            examine=operations.examine,
            load=operations.hide_from_live,
        ),
    )
