"""Random e-mails, by a seed: of every alphabet, and of whatever breaks a header or a body."""

from random import Random

from recado.domain.email.content import EmailContent

ALPHABETS = (
    "abcdefghijklmnopqrstuvwxyz ABCDEFGHIJ 0123456789",
    "abc def ghi.,;:!?()<>[]{}\"'\\@/=_-+*&%$#~^|` ",
    "ação é útil à três pôr lã üñß øå ",
    "привет мир это письмо ",
    "你好世界这是一封邮件的主题",
    "😀🎉👩‍👩‍👧🇧🇷✉️ ok ",
    "שלום עולם مرحبا بالعالم ",
)
TRAPS = (
    "=?utf-8?q?not_encoded?=", "=?", "?=", "Bcc: eve@evil.example", "\r\nBcc: eve@evil.example", "\nX-Evil: 1", "\r",
    "\x00", "\x0b", "\x1b", "\u2028", "\u0085", "\t", "  ", "=", "=3D", "<script>", "&amp;", "\ufeff",
)  # fmt: skip
LINES = (
    ".", "..", ".hidden", "From here", "--=_", "--=_msg_", "--", "", " ", "trailing \t ", "=_", "x" * 77, "x" * 998,
    "y" * 3_000, "ç" * 500, "begin 644 file", "\r", "a\rb", "=20", "QUIT", "DATA",
)  # fmt: skip


def some_text(random: Random, longest: int) -> str:
    """With at least one character that is seen."""
    alphabets = random.choices(ALPHABETS, k=random.randint(1, 3))
    text = "".join(random.choice(random.choice(alphabets)) for _ in range(random.randint(1, longest)))
    if random.random() < 0.4:
        at = random.randint(0, len(text))
        text = text[:at] + random.choice(TRAPS) + text[at:]
    return "x" + text[: longest - 1]


def some_body(random: Random) -> str:
    lines = [
        random.choice(LINES) if random.random() < 0.4 else some_text(random, 200) for _ in range(random.randint(0, 40))
    ]
    return random.choice(("\n", "\r\n")).join(lines)


def some_html(random: Random) -> str:
    return "<html><body>" + "".join(f"<p>{line}</p>\n" for line in some_body(random).split("\n")) + "</body></html>"


def some_address(random: Random) -> str:
    local = random.choice(("ana", "ana.maria+x", "o'neil", "josé", "用户", "a_b-c", "x" * 64, "#!$%&'*/=?^`{|}~"))
    return (
        f"{local}@{random.choice(('example.com', 'bücher.example', 'Mail.Example.COM', '例え.テスト', 'a-b.example'))}"
    )


def some_email(random: Random) -> tuple[EmailContent, str]:
    """Its content, and whom it is for."""
    both = random.random()
    content = EmailContent(
        from_address=f"news@{random.choice(('example.com', 'bücher.example'))}",
        from_name=None if random.random() < 0.2 else some_text(random, random.choice((5, 30, 120))),
        subject=some_text(random, random.choice((10, 60, 255))),
        html=None if both < 0.2 else some_html(random),
        text=some_body(random) if both < 0.7 else None,
        headers=()
        if random.random() < 0.3
        else (
            ("List-Unsubscribe", f"<https://l.example.com/u/{'t' * random.randint(1, 300)}>"),
            ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"),
        ),
        transactional=random.random() < 0.5,
    )
    return (content if content.html is not None or content.text is not None else some_email(random)[0]), some_address(
        random
    )


def shown(text: str) -> str:
    """A header's text as a reader shows it: words with a space between them."""
    return " ".join(
        "".join(" " if ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u2028\u2029\ufeff" else c for c in text).split()
    )


def lines_of(text: str) -> list[str]:
    """A body's lines, whatever ends them; the last line end is of no account."""
    return text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n")
