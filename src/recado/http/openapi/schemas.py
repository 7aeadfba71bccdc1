"""The schemas of the OpenAPI document: one component for each model, from what pydantic says of it."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Literal

import orjson
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from recado.http.api.route import Route
from recado.http.openapi.shared_parts import UNKNOWN_FIELDS

_REF = "#/components/schemas/"

Mode = Literal["validation", "serialization"]
Wanted = tuple[type[BaseModel], Mode]


class Schemas:
    """The models of all routes as components. A model read and written in two shapes has two names."""

    def __init__(self, routes: Sequence[Route], told: Iterable[type[BaseModel]] = ()) -> None:
        """`told`: what the service says of its own accord."""
        wanted: dict[Wanted, None] = {(model, "serialization"): None for model in told}
        for route in routes:
            for model in (route.query, route.body, *route.bodies.values(), *route.spooled.values()):
                if model is not None:
                    wanted[model, "validation"] = None
            for answer in route.responses.values():
                if answer is not None:
                    wanted[answer, "serialization"] = None
        names, found = _described(tuple(wanted))
        shared = _shared(found.get("$defs", {}))
        named = {name: _name(shared.get(name, name)) for name in found.get("$defs", {})}
        definitions = {named[name]: _clean(schema, named) for name, schema in found.get("$defs", {}).items()}
        if len(definitions) != len(named) - len(shared) // 2:
            raise ValueError("two models would be one component: their names differ in nothing that the document shows")
        self._names = {key: named[ref["$ref"].removeprefix(_REF)] for key, ref in names.items()}
        queries = {self._names[route.query, "validation"] for route in routes if route.query is not None}
        self._queries = {name: definitions[name] for name in queries}
        self.definitions = {name: schema for name, schema in definitions.items() if name not in queries}
        taken = _reached((name for (_, mode), name in self._names.items() if mode == "validation"), definitions)
        for name, schema in self.definitions.items():
            (_tell_defaults if name in taken else _leave_out_nulls)(schema)
            _name_nullable(schema)
        for route in routes:
            for answer in route.responses.values() if route.method != "GET" else ():
                if answer is not None:
                    properties = self.definitions[self._names[answer, "serialization"]].get("properties", {})
                    properties.setdefault("warnings", {"$ref": f"{_REF}{UNKNOWN_FIELDS}"})

    def ref(self, model: type[BaseModel], mode: Mode) -> dict[str, str]:
        """Return the reference to a model's schema."""
        return {"$ref": _REF + self._names[model, mode]}

    def query(self, model: type[BaseModel]) -> dict[str, Any]:
        """Return the schema of the query parameters that `model` reads."""
        found: dict[str, Any] = self._queries[self._names[model, "validation"]]
        return found


@cache
def _described(wanted: tuple[Wanted, ...]) -> tuple[Mapping[Any, Any], Mapping[str, Any]]:
    """What pydantic says of the models: the larger part of the work, and the same for each server of a process.

    It is asked of each mode alone: of both at once it takes more than twice as long to find their names.
    """
    modes: tuple[tuple[Mode, str], ...] = (("validation", "-Input"), ("serialization", "-Output"))
    told = [
        models_json_schema([each for each in wanted if each[1] == mode], ref_template=_REF + "{model}")
        for mode, _ in modes
    ]
    definitions: list[dict[str, Any]] = [found.get("$defs", {}) for _, found in told]
    both = definitions[0].keys() & definitions[1].keys()
    names: dict[Any, Any] = {}
    found: dict[str, Any] = {}
    for (_, ending), (keys, _), schemas in zip(modes, told, definitions, strict=True):
        renamed = {name: f"{name}{ending}" for name in both}
        names |= {key: _renamed(ref, renamed) for key, ref in keys.items()}
        found |= {renamed.get(name, name): _renamed(schema, renamed) for name, schema in schemas.items()}
    return names, {"$defs": dict(sorted(found.items()))}


def _name(name: str) -> str:
    """The name of a component: pydantic's, without its signs for two shapes of one model and without "Model"."""
    return name.replace("-Input", "Input").replace("-Output", "Output").lstrip("_").removesuffix("Model")


def _shared(definitions: Mapping[str, Any]) -> dict[str, str]:
    """One name for what is read and written in one shape."""
    inputs = (name.removesuffix("-Input") for name in definitions if name.endswith("-Input"))
    alike = {base for base in inputs if f"{base}-Output" in definitions}
    while True:
        names = {f"{base}-{way}": base for base in alike for way in ("Input", "Output")}
        other = {
            base
            for base in alike
            if _renamed(definitions[f"{base}-Input"], names) != _renamed(definitions[f"{base}-Output"], names)
        }
        if not other:
            return names
        alike -= other


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _renamed(member, names) for name, member in value.items()}
    if isinstance(value, str) and value.startswith(_REF):
        name = value.removeprefix(_REF)
        return _REF + names.get(name, name)
    return [_renamed(member, names) for member in value] if isinstance(value, list) else value


def _clean(value: Any, named: Mapping[str, str]) -> Any:
    """A schema with every reference under its component's name, and without titles, which only repeat names."""
    if isinstance(value, dict):
        return {name: _clean(member, named) for name, member in value.items() if not _says_nothing(name, member)}
    if isinstance(value, str):
        return _REF + named[value.removeprefix(_REF)] if value.startswith(_REF) else value
    return [_clean(member, named) for member in value] if isinstance(value, list) else value


def _says_nothing(name: str, member: Any) -> bool:
    """A title only repeats a name; a default of null only says that the member may be absent."""
    return (name == "title" and isinstance(member, str)) or (name == "default" and member is None)


def _reached(names: Iterable[str], definitions: Mapping[str, Any]) -> set[str]:
    """The components that `names` lead to, with themselves."""
    found: set[str] = set()
    places: list[Any] = [{"$ref": _REF + name} for name in names]
    while places:
        place = places.pop()
        if isinstance(place, dict):
            name = str(place.get("$ref", "")).removeprefix(_REF)
            if name in definitions and name not in found:
                found.add(name)
                places.append(definitions[name])
            places += place.values()
        elif isinstance(place, list):
            places += place
    return found


def _tell_defaults(schema: dict[str, Any]) -> None:
    """Tell the defaults of what callers send in words: generators of clients take a `default` for "always there"."""
    for name, field in schema.get("properties", {}).items():
        if "default" in field:
            said = f"Default: `{orjson.dumps(field['default']).decode()}`."
            rest = {key: value for key, value in field.items() if key not in {"default", "description"}}
            description = f"{field['description']} {said}" if "description" in field else said
            schema["properties"][name] = {**rest, "description": description}


def _leave_out_nulls(schema: dict[str, Any]) -> None:
    """Take null from optional fields of answers: without value they are absent (C2.3.2); a nullable one is required."""
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        if name in required:
            continue
        field.pop("default", None)
        options = field.get("anyOf", ())
        if {"type": "null"} in options:
            rest = [option for option in options if option != {"type": "null"}]
            del field["anyOf"]
            schema["properties"][name] = {**rest[0], **field} if len(rest) == 1 else {**field, "anyOf": rest}


def _name_nullable(schema: dict[str, Any]) -> None:
    """Give what may be null, and is described in its place, its field's name: clients would call it `type_0`."""
    for name, field in schema.get("properties", {}).items():
        if isinstance(field.get("type"), list) and "object" in field["type"]:
            field["title"] = name
        options = [option for option in field.get("anyOf", ()) if option != {"type": "null"}]
        described = options[0].get("items", options[0]) if len(options) == 1 else {}
        if "enum" in described or described.get("type") == "object":
            described["title"] = name
