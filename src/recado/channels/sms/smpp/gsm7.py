"""The default alphabet of GSM 03.38 as octets: a septet in each, or packed, eight in seven octets. Pure."""

from typing import Final

from recado.domain.messages.gsm_alphabet import BASIC, EXTENSION

_ESCAPE: Final = 0x1B
_CARRIAGE_RETURN: Final = 0x0D
_BASIC: Final = f"{BASIC[:_ESCAPE]}\x1b{BASIC[_ESCAPE:]}"
_EXTENSION: Final = dict(zip(EXTENSION, (0x0A, 0x14, 0x28, 0x29, 0x2F, 0x3C, 0x3D, 0x3E, 0x40, 0x65), strict=True))
_OCTETS: Final = {character: bytes((septet,)) for septet, character in enumerate(_BASIC) if septet != _ESCAPE} | {
    character: bytes((_ESCAPE, septet)) for character, septet in _EXTENSION.items()
}
_EXTENDED: Final = {septet: character for character, septet in _EXTENSION.items()}
# Most texts hold ASCII whose septets are the same: those are told at C speed.
_SAME: Final = frozenset(character for character, octets in _OCTETS.items() if octets == character.encode())


def encode(text: str) -> bytes | None:
    """A septet in each octet; None where a character is not in the alphabet."""
    if _SAME.issuperset(text):
        return text.encode()
    try:
        return b"".join([_OCTETS[character] for character in text])
    except KeyError:
        return None


def decode(septets: bytes) -> str:
    """The text; what means nothing becomes a space, as phones show it."""
    characters = []
    escaped = False
    for septet in septets:
        if escaped:
            characters.append(_EXTENDED.get(septet, _BASIC[septet & 0x7F]))
            escaped = False
        elif septet == _ESCAPE:
            escaped = True
        else:
            characters.append(_BASIC[septet] if septet < len(_BASIC) else " ")
    return "".join(characters).replace("\x1b", " ")


def pack(septets: bytes, header: int = 0) -> bytes:
    """Eight septets in seven octets. `header`: octets before them, after which they begin at a septet's boundary.

    Seven bits that are left over hold a carriage return: as zeros they would be read as an `@`.
    """
    fill = -header * 8 % 7
    if (fill + 7 * len(septets)) % 8 == 1:
        septets += bytes((_CARRIAGE_RETURN,))
    bits = sum(septet << fill + 7 * place for place, septet in enumerate(septets))
    return bits.to_bytes(-(-(fill + 7 * len(septets)) // 8), "little")


def unpack(octets: bytes, header: int = 0) -> bytes:
    """The septets, without the carriage return that fills up the last octet."""
    fill = -header * 8 % 7
    count = max(0, len(octets) * 8 - fill) // 7
    found = []
    bits, held = 0, -fill  # as many of them as wait to be a septet; the first ones fill up
    for octet in octets:
        bits |= octet << held if held >= 0 else octet >> -held
        held += 8
        while held >= 7:
            found.append(bits & 0x7F)
            bits >>= 7
            held -= 7
    septets = bytes(found)
    if count and (fill + 7 * count) % 8 == 0 and septets[-1] == _CARRIAGE_RETURN:
        return septets[:-1]
    return septets
