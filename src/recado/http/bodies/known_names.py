"""The names that the values of a body may have, read from the JSON schema of its model (C2.3.1)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel

UNSAID: Final = frozenset({"id", "organizationId", "env"})  # of any body, and ignored without a word
_REFS: Final = "#/$defs/"
_PLAIN: Final = (str, int, float, bool)


@dataclass(slots=True)
class ObjectForm:
    """One form that an object may have. `names` None: any; `fixed`: member → the texts of which it has one."""

    names: frozenset[str] | None
    required: frozenset[str] = frozenset()
    fixed: Mapping[str, frozenset[Any]] = field(default_factory=dict)
    members: dict[str, "Forms"] = field(default_factory=dict)
    nested: frozenset[str] = frozenset()  # the names of `members`

    def __post_init__(self) -> None:
        self.nested = frozenset(self.members)

    def fits(self, document: Mapping[str, Any]) -> bool:
        for name, allowed in self.fixed.items():
            value = document.get(name)
            if isinstance(value, _PLAIN) and value not in allowed:
                return False
        return self.required.issubset(document)


@dataclass(slots=True)
class ListForm:
    items: "Forms"


Forms = list[ObjectForm | ListForm]
"""The forms that a value may have; none: nothing is known about it."""


def forms_of(model: type[BaseModel]) -> Forms:
    """What is known of the bodies of `model`."""
    schema = model.model_json_schema(by_alias=True)
    forms = _Reader(schema.get("$defs", {})).forms(schema)
    for form in forms:
        if isinstance(form, ObjectForm) and form.names is not None:
            form.names |= UNSAID
    return forms


class _Reader:
    """Reads a JSON schema. A reference is read once, so that a schema may refer to itself."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions
        self._read: dict[str, Forms] = {}

    def forms(self, schema: Any) -> Forms:
        if not isinstance(schema, dict):
            return []
        reference = schema.get("$ref")
        if reference is not None:
            return self._referred(reference.removeprefix(_REFS))
        for way in ("anyOf", "oneOf", "allOf"):
            if way in schema:
                return [form for part in schema[way] for form in self.forms(part)]
        if "properties" in schema:
            return [self._object(schema)]
        if "items" in schema:
            items = self.forms(schema["items"])
            return [ListForm(items)] if items or "$ref" in schema["items"] else []
        return [ObjectForm(None)] if "object" in schema.get("type", ()) else []

    def _referred(self, name: str) -> Forms:
        if name not in self._read:
            forms = self._read[name] = []
            forms += self.forms(self._definitions[name])
        return self._read[name]

    def _object(self, schema: Mapping[str, Any]) -> ObjectForm:
        properties = schema["properties"]
        if schema.get("additionalProperties"):
            return ObjectForm(None)
        members = {name: self.forms(part) for name, part in properties.items()}
        return ObjectForm(
            frozenset(properties),
            frozenset(schema.get("required", ())),
            {name: frozenset([part["const"]]) for name, part in properties.items() if "const" in part}
            | {name: frozenset(part["enum"]) for name, part in properties.items() if name == "kind" and "enum" in part},
            {name: forms for name, forms in members.items() if "$ref" in properties[name] or _tells(forms)},
        )


def _tells(forms: Forms) -> bool:
    """Whether something could be unknown in such a value."""
    return bool(forms) and not any(isinstance(form, ObjectForm) and form.names is None for form in forms)
