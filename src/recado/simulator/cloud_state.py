"""What the simulated hosted API holds: numbers, templates, flows and media. All but media outlives the process."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Final

import orjson

from recado.simulator.operations import OFFERED

MOST_MEDIA_BYTES: Final = 256 * 1024 * 1024
LONGEST_MEDIA: Final = 105 * 1024 * 1024

Note = Callable[[str, Mapping[str, Any]], None]
"""(kind, value): writes to the record."""


@dataclass(slots=True)
class SimulatedNumber:
    """A number as its own fields are listed. `business_account`: the account that its webhooks name."""

    id: str
    business_account: str
    display_phone_number: str
    status: str = "CONNECTED"
    quality_rating: str = "GREEN"
    messaging_limit: str = "TIER_UNLIMITED"
    name_status: str = "APPROVED"
    code_verification_status: str = "VERIFIED"
    verified_name: str = "Simulated"
    throughput: str = "STANDARD"
    profile: dict[str, Any] = field(default_factory=lambda: {"vertical": "UNDEFINED"})

    def metadata(self) -> dict[str, Any]:
        return {"display_phone_number": self.display_phone_number, "phone_number_id": self.id}

    def fields(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "display_phone_number": self.display_phone_number,
            "verified_name": self.verified_name,
            "code_verification_status": self.code_verification_status,
            "quality_rating": self.quality_rating,
            "status": self.status,
            "name_status": self.name_status,
            "throughput": {"level": self.throughput},
            "whatsapp_business_manager_messaging_limit": self.messaging_limit,
        }


@dataclass(frozen=True, slots=True)
class Media:
    id: str
    content: bytes = field(repr=False)
    mime_type: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


class CloudState:
    """Numbers are known when they are first named; every business account holds the offered templates at once."""

    def __init__(self, note: Note) -> None:
        self._note = note
        self._numbers: dict[str, SimulatedNumber] = {}
        self._templates: dict[str, dict[str, dict[str, Any]]] = {}
        self._flows: dict[str, tuple[str, dict[str, Any]]] = {}
        self._media: dict[str, Media] = {}
        self._media_bytes = 0

    def restore(self, notes: Iterable[tuple[str, dict[str, Any]]]) -> None:
        """Take up what earlier lives noted."""
        for kind, value in notes:
            if kind == "number":
                self._numbers[value["id"]] = SimulatedNumber(**value)
            elif kind == "template":
                self.templates(value["account"])[value["template"]["id"]] = value["template"]
            elif kind == "template_deleted":
                self.templates(value["account"]).pop(value["id"], None)
            elif kind == "flow":
                self._flows[value["flow"]["id"]] = (value["account"], value["flow"])

    # Numbers ----------------------------------------------------------------------------------------------------------

    def number(self, number_id: str) -> SimulatedNumber:
        known = self._numbers.get(number_id)
        if known is None:
            known = SimulatedNumber(number_id, f"waba_{number_id}", f"1555{_digits(number_id, 7)}")
            self._numbers[number_id] = known
        return known

    def knows_number(self, number_id: str) -> bool:
        return number_id in self._numbers

    def changed(self, number: SimulatedNumber) -> None:
        self._note("number", asdict(number))

    def metadata_of(self, number_id: str) -> tuple[str, dict[str, Any]]:
        number = self.number(number_id)
        return number.business_account, number.metadata()

    # Templates --------------------------------------------------------------------------------------------------------

    def templates(self, account: str) -> dict[str, dict[str, Any]]:
        """The account's templates by their id, in the order of their making."""
        held = self._templates.get(account)
        if held is None:
            held = self._templates[account] = {
                each["id"]: each for each in (_offered(account, name, category) for name, category in OFFERED)
            }
        return held

    def store_template(self, account: str, template: dict[str, Any]) -> None:
        self.templates(account)[template["id"]] = template
        self._note("template", {"account": account, "template": template})

    def delete_template(self, account: str, template_id: str) -> None:
        del self.templates(account)[template_id]
        self._note("template_deleted", {"account": account, "id": template_id})

    def template_by_id(self, template_id: str) -> tuple[str, dict[str, Any]] | None:
        """The template and its account."""
        for account, held in self._templates.items():
            if template_id in held:
                return account, held[template_id]
        return None

    def pending_templates(self) -> list[tuple[str, dict[str, Any]]]:
        return [
            (account, template)
            for account, held in self._templates.items()
            for template in held.values()
            if template["status"] == "PENDING"
        ]

    def template_to_send(self, name: str, language: str) -> dict[str, Any] | None:
        """The template that a send names. A send does not say which account, so any that holds it will do."""
        for held in self._templates.values():
            for template in held.values():
                if template["name"] == name and template["language"] == language:
                    return template
        offered = dict(OFFERED)
        if name in offered and language == "en_US":
            return _offered("", name, offered[name])
        return None

    # Flows ------------------------------------------------------------------------------------------------------------

    def flow(self, flow_id: str) -> tuple[str, dict[str, Any]] | None:
        """The flow and its account."""
        return self._flows.get(flow_id)

    def has_flow(self, account: str, name: str) -> bool:
        return any(owner == account and flow["name"] == name for owner, flow in self._flows.values())

    def store_flow(self, account: str, flow: dict[str, Any]) -> None:
        self._flows[flow["id"]] = (account, flow)
        self._note("flow", {"account": account, "flow": flow})

    # Media ------------------------------------------------------------------------------------------------------------

    def store_media(self, content: bytes, mime_type: str, at: datetime) -> Media:
        media = Media(_digits(f"media {at.timestamp()} {len(self._media)} {len(content)}", 16), content, mime_type)
        self._media[media.id] = media
        self._media_bytes += len(content)
        while self._media_bytes > MOST_MEDIA_BYTES:
            self.delete_media(next(iter(self._media)))
        return media

    def media(self, media_id: str) -> Media | None:
        return self._media.get(media_id)

    def delete_media(self, media_id: str) -> bool:
        media = self._media.pop(media_id, None)
        if media is None:
            return False
        self._media_bytes -= len(media.content)
        return True


def new_template(account: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """The template that a submission makes; KeyError when it lacks a field."""
    name, language = str(body["name"]), str(body["language"])
    return {
        "id": _digits(f"{account} {name} {language}", 15),
        "name": name,
        "language": language,
        "status": "PENDING",
        "category": str(body["category"]).upper(),
        "components": list(body.get("components", ())),
        "parameter_format": "POSITIONAL",
        "rejected_reason": "NONE",
    }


def new_flow(account: str, body: Mapping[str, Any], at: datetime) -> dict[str, Any]:
    """The draft that a request makes; KeyError when it lacks a field. The word `reject` in its name is its fault."""
    name = str(body["name"])
    fault = {
        "error": "INVALID_PROPERTY_VALUE",
        "error_type": "FLOW_JSON_ERROR",
        "message": "Its name asks for a fault.",
    }
    lines = dict.fromkeys(("line_start", "line_end", "column_start", "column_end"), 1)
    return {
        "id": _digits(f"flow {account} {name}", 16),
        "name": name,
        "status": "DRAFT",
        "categories": [str(each) for each in body["categories"]],
        "validation_errors": [{**fault, **lines}] if "reject" in name else [],
        "updated_at": f"{at:%Y-%m-%dT%H:%M:%S%z}",
        "json_version": str(orjson.loads(body["flow_json"])["version"]),
    }


def _offered(account: str, name: str, category: str) -> dict[str, Any]:
    components = [{"type": "BODY", "text": "For you: {{1}}.", "example": {"body_text": [["something"]]}}]
    body = {"name": name, "language": "en_US", "category": category, "components": components}
    return {**new_template(account, body), "status": "APPROVED"}


def _digits(text: str, length: int) -> str:
    """A number of so many digits, the same for the same text."""
    lowest = 10 ** (length - 1)
    digest = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return str(lowest + digest % (9 * lowest))
