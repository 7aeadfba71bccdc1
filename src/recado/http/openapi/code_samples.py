"""Code samples of the OpenAPI document (`x-codeSamples`): one call with curl and with Python, made of its example."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import indent
from typing import Any

import orjson


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleCall:
    """A request as it is sent. `token`: the variable of the environment that holds the credential, empty for none."""

    method: str
    url: str
    token: str = ""
    headers: Mapping[str, str]
    body: Any = None
    answers_json: bool = True


def code_samples(call: SampleCall) -> list[dict[str, str]]:
    """Return the samples of `call`, in the order in which a reader sees them."""
    return [
        {"lang": "Shell", "label": "curl", "source": _curl(call)},
        {"lang": "Python", "label": "Python", "source": _python(call)},
    ]


def _curl(call: SampleCall) -> str:
    method = "" if call.method == "GET" else f"-X {call.method} "
    lines = [f"curl {method}{shlex.quote(call.url)}"]
    if call.token:
        lines.append(f'-H "Authorization: Bearer ${call.token}"')
    lines += [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in call.headers.items()]
    if call.body is not None:
        lines.append("-H 'Content-Type: application/json'")
        lines.append(f"-d {shlex.quote(orjson.dumps(call.body, option=orjson.OPT_INDENT_2).decode())}")
    return " \\\n  ".join(lines)


def _python(call: SampleCall) -> str:
    headers = [f"{_text(name)}: {_text(value)}" for name, value in call.headers.items()]
    if call.token:
        headers.insert(0, f'"Authorization": f"Bearer {{os.environ[\'{call.token}\']}}"')
    arguments = [f'"{call.url}"']
    if headers:
        arguments.append(f"headers={{{', '.join(headers)}}}")
    if call.body is not None:
        arguments.append("json=" + _literal(call.body))
    arguments.append("timeout=30")
    imports = "import os\n\nimport requests" if call.token else "import requests"
    given = indent(",\n".join(arguments), "    ")
    shown = "\nprint(answer.json())" if call.answers_json else ""
    return f"{imports}\n\nanswer = requests.{call.method.lower()}(\n{given},\n)\nanswer.raise_for_status(){shown}\n"


def _literal(value: Any) -> str:
    """The value as Python is written, one member a line."""
    if isinstance(value, dict) and value:
        lines = [f"{_text(name)}: {_literal(member)}," for name, member in value.items()]
        return "{\n" + indent("\n".join(lines), "    ") + "\n}"
    if isinstance(value, list) and any(isinstance(member, dict | list) for member in value):
        return "[\n" + indent("\n".join(f"{_literal(member)}," for member in value), "    ") + "\n]"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    return _text(value) if isinstance(value, str) else repr(value)


def _text(text: str) -> str:
    """A text in the quotes of JSON, which are Python's too."""
    return orjson.dumps(text).decode()
