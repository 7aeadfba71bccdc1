"""The pages of unsubscriptions (C27.3), one that asks and one that says it is done, in the language of the person."""

from collections.abc import Mapping
from html import escape
from typing import Final, NamedTuple

from recado.http.wire.reply import Reply

_HEADERS: Final = {
    "Content-Type": "text/html; charset=utf-8",
    "Vary": "Accept-Language",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex",
    "Referrer-Policy": "no-referrer",
}
_STYLE: Final = (
    "body{font:18px/1.5 sans-serif;max-width:30em;margin:4em auto;padding:0 1em;color:#222}"
    "button{font:inherit;padding:.5em 1.5em;cursor:pointer}"
)


class _Words(NamedTuple):
    language: str
    title: str
    question: str
    button: str
    done_title: str
    done: str


_WORDS: Final[Mapping[str, _Words]] = {
    "pt": _Words(
        "pt-BR",
        "Descadastrar",
        "Você não quer mais receber nossas mensagens?",
        "Não quero mais receber",
        "Pronto",
        "Você foi descadastrado e não receberá mais nossas mensagens.",
    ),
    "en": _Words(
        "en",
        "Unsubscribe",
        "Do you want no more messages from us?",
        "Unsubscribe",
        "Done",
        "You are unsubscribed and will get no more messages from us.",
    ),
}
_USUAL: Final = "pt"
_LONGEST: Final = 200  # characters of `Accept-Language` that count


def asking(accepted: str | None) -> Reply:
    """The page with the button, whose form is posted to its own address. `accepted`: `Accept-Language`."""
    words = _WORDS[language_of(accepted)]
    form = f'<form method="post"><button>{escape(words.button)}</button></form>'
    return _page(words, words.title, f"<p>{escape(words.question)}</p>{form}")


def done(accepted: str | None) -> Reply:
    """What is shown after it."""
    words = _WORDS[language_of(accepted)]
    return _page(words, words.done_title, f"<p>{escape(words.done)}</p>")


def language_of(accepted: str | None) -> str:
    """The language of the page that is preferred: `pt` where both are, or neither."""
    weights: dict[str, float] = {}
    for part in (accepted or "")[:_LONGEST].split(","):
        name, _, weight = part.strip().lower().partition(";q=")
        language = name.partition("-")[0].strip()
        if language in _WORDS:
            weights[language] = max(weights.get(language, 0.0), _weight(weight))
    best = max(weights.values(), default=0.0)
    return next((each for each in _WORDS if best and weights.get(each) == best), _USUAL)


def _weight(text: str) -> float:
    try:
        weight = float(text) if text else 1.0
    except ValueError:
        return 0.0
    return weight if 0.0 <= weight <= 1.0 else 0.0


def _page(words: _Words, title: str, content: str) -> Reply:
    page = (
        f'<!doctype html><html lang="{words.language}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body><h1>{escape(title)}</h1>{content}</body></html>"
    )
    return Reply(200, page.encode(), headers={**_HEADERS, "Content-Language": words.language})
