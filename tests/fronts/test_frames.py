"""Each kind of frame that owner and fronts know is taken by the one to whom it is said: another would end the link."""

import re
from pathlib import Path

import pytest

import recado
from recado.fronts import frames

SOURCES = {path.name: path.read_text() for path in (Path(recado.__file__).parent / "fronts").glob("*.py")}
KINDS = [name for name, value in vars(frames).items() if name.isupper() and isinstance(value, str)]


def kinds_in(text: str) -> set[str]:
    return {name for name in re.findall(r"\bframes\.([A-Z]+)\b", text) if name in KINDS}


def taken_by(file: str) -> set[str]:
    return set(re.findall(r"^ +frames\.([A-Z]+): ", SOURCES[file], re.MULTILINE))


def without_takers(text: str) -> str:
    return re.sub(r"^ +frames\.[A-Z]+: ", "", text, flags=re.MULTILINE)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_of_frame_is_said_and_taken(kind: str) -> None:
    takers = [file for file in ("front.py", "place.py") if kind in taken_by(file)]
    assert takers, f"neither a front nor its owner takes {kind}"
    others = {
        "front.py": {"place.py", "shares.py", "supervision.py", "asks.py"},
        "place.py": {"front.py", "answers.py"},
    }
    for taker in takers:
        said = {each for file in others[taker] for each in kinds_in(without_takers(SOURCES[file]))}
        assert kind in said, f"{taker} takes {kind}, and nobody says it"


@pytest.mark.parametrize("kind", KINDS)
def test_no_two_kinds_have_one_word(kind: str) -> None:
    assert [getattr(frames, each) for each in KINDS].count(getattr(frames, kind)) == 1
