"""The web addresses in a text, and the form of the short links that may take their place (C27.1).

The codes, and where they lead, are in `codes.py` and `tracked.py`.
"""

import re
from typing import Final

CODE_LENGTH: Final = 8
"""Characters of a short link's code, each of `[0-9A-Za-z]`."""
SAMPLE_CODE: Final = "0" * CODE_LENGTH
"""A code for counting: every code is as long."""

# What no address holds unquoted, and the punctuation of scripts that put no space behind a sentence.
_ENDS: Final = '\\s\\x00-\\x1f\\x7f<>"`{}|\\\\^“”„‘’«»\u3000-\u303f！（），：；？'
_ADDRESS: Final = re.compile(f"(?<![A-Za-z0-9+])[hH][tT][tT][pP][sS]?://(?=[\\w\\[])[^{_ENDS}]+")
_TRAILING: Final = ".,;:!?'…"
_OPENING: Final = {")": "(", "]": "["}
_MAY_FOLLOW: Final = frozenset([*_TRAILING, *_OPENING])


def parted(text: str) -> list[str]:
    """The text in parts: what stands before the first link, the link, what stands between it and the next, and so on.

    The links are at the odd places, as they are written; the parts joined are the text. A link begins with `http://` or
    `https://`. Punctuation behind it is not part of it, nor is a bracket that closes none of its own. Time grows with
    the length of the text only.
    """
    if "://" not in text:
        return [text]
    parts = []
    begin = 0
    for found in _ADDRESS.finditer(text):
        link = _without_what_follows(found[0])
        parts += [text[begin : found.start()], link]
        begin = found.start() + len(link)
    return [*parts, text[begin:]]


def short_link(link_base: str, code: str = SAMPLE_CODE) -> str:
    """The short form of a link; `link_base`: the address of the public routes, without a slash at its end."""
    return f"{link_base}/l/{code}"


def _without_what_follows(link: str) -> str:
    if link[-1] not in _MAY_FOLLOW:
        return link
    open_brackets = {closing: link.count(closing) - link.count(opening) for closing, opening in _OPENING.items()}
    end = len(link)
    while (last := link[end - 1]) in _TRAILING or open_brackets.get(last, 0) > 0:
        if last in _OPENING:
            open_brackets[last] -= 1
        end -= 1
    return link[:end]
