"""Samples of values: what the OpenAPI document shows where nobody wrote an example, made of the schemas alone."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic.alias_generators import to_camel

from recado.domain.core import ids

_REF: Final = "#/components/schemas/"
_ID_BODY: Final = "0VbkOooJsP5OedpshQFzP"
_LEFT_OUT: Final = frozenset({"warnings", "nextCursor"})  # what most answers do not have
_PREFIXES: Final = {
    f"{to_camel(name.lower())}Id": value
    for name, value in vars(ids).items()
    if name.isupper() and isinstance(value, str) and value.endswith("_")
} | {"createdById": ids.API_KEY, "targetId": ids.CONTACT}
_ID_PATTERN: Final = re.compile(r"\^([a-z]+_)\[0-9A-Za-z\]\{21\}\$")
_BY_FORMAT: Final = {
    "date": "1990-05-17",
    "date-time": "2026-01-31T12:00:00.000Z",
    "email": "ana@example.com",
    "uri": "https://example.com/recado",
}
_FORMS: Final = {"date": r"^\d{4}-\d\d-\d\d$", "date-time": r"^\d{4}-\d\d-\d\dT", "email": "@", "uri": "^https?:"}
_BY_NAME: Final[Mapping[str, Any]] = {
    "about": "We answer within a day.",
    "accountId": "acc_" + _ID_BODY,
    "action": "contact.update",
    "address": "Rua Augusta, 17",
    "adapter": "bridge",
    "allowedIps": "203.0.113.0/24",
    "availableCoins": 9900,
    "balanceAfter": 10000,
    "balanceCoins": 10000,
    "body": "Bom dia",
    "businessAccountId": "102030405060708",
    "channel": "chatapp",
    "channels": "chatapp",
    "cnpj": "11.222.333/0001-81",
    "coins": 100,
    "company": "Example",
    "country": "BR",
    "cpf": "529.982.247-25",
    "currency": "BRL",
    "dedicatedSender": "28282",
    "description": "For customers who buy for the first time.",
    "displayName": "Example",
    "displayPhone": "+5511987650000",
    "domain": "example.com",
    "email": "ana@example.com",
    "end": "08:00",
    "env": "test",
    "environment": "test",
    "event": "message.sent",
    "events": "message.sent",
    "expiresAt": "2099-12-31T12:00:00.000Z",
    "externalId": "customer-17",
    "extraScopes": "messages:read",
    "field": "tag",
    "from": "2026-01-31T00:00:00.000Z",
    "heldCoins": 100,
    "id": _ID_BODY,
    "inviteToken": "a token that is shown once",
    "ip": "203.0.113.7",
    "isDefault": True,
    "journeyVariable": "contato.name",
    "key": "plan",
    "kind": "text",
    "label": "Plan",
    "language": "pt_BR",
    "maxAttempts": 5,
    "message": "must not be empty",
    "month": "2026-01",
    "motivo": "The customer asked for a copy.",
    "name": "Ana",
    "nome": "Example",
    "operators": "is",
    "optInKeywords": "VOLTAR",
    "optOutKeywords": "SAIR",
    "optOutReply": "You get no more messages.",
    "password": "a long password of yours",
    "path": "/recipients/0/to",
    "perDay": 1000,
    "perSecond": 10,
    "phone": "+5511987650000",
    "phoneNumberId": "109876543210987",
    "phones": "+5511987650000",
    "prefix": "svc_test_0Vbk",
    "priority": "normal",
    "reason": "Asked for by its owner.",
    "reference": "invoice-17",
    "scopes": "messages:read",
    "secretCipher": "an opaque text",
    "segmento": "Retail",
    "slug": "welcome",
    "source": "checkout",
    "start": "20:00",
    "started": True,
    "status": "active",
    "tags": "vip",
    "text": "Bom dia",
    "timeZone": "America/Sao_Paulo",
    "title": "Welcome",
    "to": "+5511987650000",
    "token": "a token that is shown once",
    "until": "2026-02-01T00:00:00.000Z",
    "url": "https://example.com/recado",
    "value": "gold",
}
"""What a member of this name holds, or each item of a list of this name, wherever its schema takes that."""

_TEXTS: Final = (
    "welcome", "Ana", "+5511987650000", "ana@example.com", "https://example.com/recado", "08:00", "BR", "BRL", "active",
    "A text that says a little more.",
)  # fmt: skip


class _Endless(Exception):
    """A shape that holds itself."""


class SchemaSamples:
    """Makes values that fit the schemas of `definitions`; the same for the same schema."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions
        self._learnt: dict[str, Any] = {}

    def learn(self, schema: Mapping[str, Any], value: Any) -> None:
        """Take from a `value` that somebody wrote what stands for each component in it; the first one stays."""
        if (reference := schema.get("$ref")) is not None:
            component = reference.removeprefix(_REF)
            self._learnt.setdefault(component, value)
            self.learn(self._definitions[component], value)
        elif isinstance(value, dict):
            for name, member in schema.get("properties", {}).items():
                if name in value:
                    self.learn(member, value[name])
        elif isinstance(value, list) and value:
            self.learn(schema.get("items", {}), value[0])

    def of(self, schema: Mapping[str, Any], *, prefix: str = "", name: str = "", fewest: int = 0) -> Any:
        """Return a value of `schema`. `prefix`: of ids of what it is about; `name`: the member that it is the value of.

        An object has the members that it must have, and optional ones up to `fewest` in all.
        """
        return _Sampling(self._definitions, self._learnt, prefix, fewest).value(schema, name, ())


class _Sampling:
    def __init__(self, definitions: Mapping[str, Any], learnt: Mapping[str, Any], prefix: str, fewest: int) -> None:
        self._definitions = definitions
        self._learnt = learnt
        self._prefix = prefix
        self._fewest = fewest

    def value(self, schema: Mapping[str, Any], name: str, inside: tuple[str, ...]) -> Any:
        """`inside`: the components that the value is a part of."""
        if (reference := schema.get("$ref")) is not None:
            component = reference.removeprefix(_REF)
            if component in self._learnt:
                return self._learnt[component]
            if component in inside:
                raise _Endless
            return self.value(self._definitions[component], name, (*inside, component))
        if "const" in schema:
            return schema["const"]
        for known in ("examples", "enum"):
            if options := schema.get(known):
                return by_name if (by_name := _BY_NAME.get(name)) in options else options[0]
        for several in ("anyOf", "oneOf"):
            if several in schema:
                return self._first(schema[several], name, inside)
        return self._of_type(schema, name, inside)

    def _first(self, options: Iterable[Mapping[str, Any]], name: str, inside: tuple[str, ...]) -> Any:
        for option in options:
            if option.get("type") != "null":
                try:
                    return self.value(option, name, inside)
                except _Endless:
                    continue
        raise _Endless

    def _of_type(self, schema: Mapping[str, Any], name: str, inside: tuple[str, ...]) -> Any:
        kinds = schema.get("type", "object" if "properties" in schema else "string")
        match kinds if isinstance(kinds, str) else kinds[0]:
            case "string":
                return self._text(schema, name)
            case "integer" | "number":
                return _number(schema, name)
            case "boolean":
                return _BY_NAME.get(name) is True
            case "array":
                return self._array(schema, name, inside)
        return self._object(schema, inside)

    def _array(self, schema: Mapping[str, Any], name: str, inside: tuple[str, ...]) -> list[Any]:
        try:
            one = self.value(schema.get("items", {}), name.removesuffix("s") if name.endswith("Ids") else name, inside)
        except _Endless:
            return []
        return [one] * max(1, schema.get("minItems", 1))

    def _object(self, schema: Mapping[str, Any], inside: tuple[str, ...]) -> dict[str, Any]:
        properties = schema.get("properties", {})
        required = schema.get("required", ())
        optional = [name for name in properties if name not in required and name not in _LEFT_OUT]
        found: dict[str, Any] = {}
        for name in (*required, *optional[: max(0, (self._fewest or not required) - len(required))]):
            try:
                found[name] = self.value(properties[name], name, inside)
            except _Endless:
                if name in required:
                    raise
        return {name: found[name] for name in properties if name in found}

    def _text(self, schema: Mapping[str, Any], name: str) -> str:
        pattern = schema.get("pattern", "")
        if known := _ID_PATTERN.fullmatch(pattern):
            return known[1] + _ID_BODY
        prefix = self._prefix if name == "id" else _PREFIXES.get(name, "")
        by_name = prefix + _ID_BODY if prefix else _BY_NAME.get(name)
        if (form := schema.get("format", "")) in _BY_FORMAT:
            return by_name if isinstance(by_name, str) and re.search(_FORMS[form], by_name) else _BY_FORMAT[form]
        fitting = (
            text
            for text in (by_name, *_TEXTS)
            if isinstance(text, str)
            and schema.get("minLength", 0) <= len(text) <= schema.get("maxLength", len(text))
            and re.search(pattern, text)
        )
        return next(fitting, _TEXTS[0])


def _number(schema: Mapping[str, Any], name: str) -> int | float:
    by_name = _BY_NAME.get(name)
    wanted = by_name if isinstance(by_name, int) else 1
    least = max(schema.get("minimum", wanted), schema.get("exclusiveMinimum", wanted - 1) + 1, wanted)
    fitting: int | float = min(least, schema.get("maximum", least))
    return fitting
