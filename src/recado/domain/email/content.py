"""What an e-mail holds when its provider is to send it (C10.2). It is in memory only: a body is never stored."""

from dataclasses import dataclass, field

from recado.domain.email.template_text import TextSource


@dataclass(frozen=True, slots=True, kw_only=True)
class EmailContent:
    """One e-mail, rendered: `repr` tells nothing of it. At least one of `html` and `text` is there.

    `headers`: those that it has besides the usual ones, such as `List-Unsubscribe`. `text_source`: by which a text is
    made of the HTML that has none (C10.2.11); None: of the HTML alone.
    """

    from_address: str = field(repr=False)
    from_name: str | None = field(default=None, repr=False)
    subject: str = field(repr=False)
    html: str | None = field(default=None, repr=False)
    text: str | None = field(default=None, repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    transactional: bool = False
    text_source: TextSource | None = field(default=None, repr=False)
