"""How many texts a core measures as SMS: encoding, length and segments, beside one pass over the same characters."""

import random
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator

import smsutil

from bench.harness import Figure, Say
from recado.domain.links.text_links import short_link
from recado.domain.messages.sms_text import measure

TEXTS = 20_000
CHARACTERS = 160
ROUNDS = 5
THEIRS = 1_000  # texts for the other library
LEAST = 300_000  # texts a second
ACCENTED = "Olá Ana você já confirmou: seu pedido está pronto, não é à toa."
WORDS: dict[str, str] = {
    "in GSM-7": "Hello Ana your order 12345 is ready, come by until 18:00. Thank you!",
    "– with characters of the extension": "Hello Ana your order [12345] is ready, pay € 10 until 18:00 ~",
    "– in UCS-2, three segments": f"{ACCENTED} 😀",
}
LINK = "https://shop.example/orders/12345"


async def run(say: Say) -> list[Figure]:
    """Each text is another one, of words in a random order."""
    figures = []
    for kind, words in WORDS.items():
        say(f"SMS texts {kind.removeprefix('– ')}")
        figures += _measured(kind, _texts(words.split()))
    say("SMS texts transliterated, with short links")
    accented = [f"{text[: CHARACTERS - len(LINK)]}{LINK}" for text in _texts(ACCENTED.split())]
    short = short_link("https://go.example")
    both = _rate(lambda: (measure(text, transliterate=True, shorten=lambda _: short) for text in accented))
    figures.append(Figure("– transliterated, with a short link", f"{both:,.0f} /s"))
    return figures


def _measured(kind: str, texts: list[str]) -> list[Figure]:
    ours, bound = [], []
    for _ in range(ROUNDS):  # in turns: whatever else the machine does falls on both
        ours.append(_rate(lambda: (measure(text) for text in texts)))
        bound.append(_rate(lambda: (text.encode("utf-16-be") for text in texts)))
    rate, least = statistics.median(ours), statistics.median(bound)
    theirs = _rate(lambda: (smsutil.split(text) for text in texts[:THEIRS])) * THEIRS / TEXTS
    return [
        Figure(
            f"SMS texts of {CHARACTERS} characters measured, {kind}" if kind == next(iter(WORDS)) else kind,
            f"{rate:,.0f} /s",
            f"{least:,.0f} /s, encoded",
            rate / least,
            f"≥ {LEAST:,} /s",
            rate >= LEAST,
        ),
        Figure("– – beside smsutil", f"{rate:,.0f} /s", f"{theirs:,.0f} /s", rate / theirs),
    ]


def _rate(work: Callable[[], Iterator[object]]) -> float:
    """Texts a second of one core's time, of `TEXTS` of them: nothing here waits, and others may use the machine."""
    began = time.process_time()
    deque(work(), maxlen=0)
    return TEXTS / (time.process_time() - began)


def _texts(words: list[str]) -> list[str]:
    rng = random.Random(1)
    return [" ".join(rng.choices(words, k=CHARACTERS))[:CHARACTERS] for _ in range(TEXTS)]
