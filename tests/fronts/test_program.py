"""An owner and its fronts are one program: what was installed meanwhile is refused."""

import subprocess
import sys
from pathlib import Path

from recado.fronts.program import OTHER_PROGRAM, program_on_disk


def test_a_front_of_another_program_ends_before_it_reads_its_beginning() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "recado.fronts.front", "another"],
        input=b"no beginning",
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (OTHER_PROGRAM, b"")


def test_a_program_is_its_files_and_the_versions_of_what_it_uses(tmp_path: Path) -> None:
    package, others = tmp_path / "recado", tmp_path / "site-packages"
    (package / "storage").mkdir(parents=True)
    (others / "uvloop-1.0.dist-info").mkdir(parents=True)
    (package / "app.py").write_text("a = 1")
    (package / "storage" / "one.sql").write_text("select 1")
    seen = [program_on_disk(package, [str(others)])]

    def differs() -> bool:
        seen.append(program_on_disk(package, [str(others)]))
        return seen[-1] not in seen[:-1]

    assert not differs()
    (package / "app.pyc").write_bytes(b"compiled")
    assert program_on_disk(package, ["", str(others), str(others)]) == seen[0]
    (package / "app.py").write_text("a = 2")
    assert differs()
    (package / "storage" / "one.sql").write_text("select 2")
    assert differs()
    (package / "new.py").write_text("")
    assert differs()
    (others / "uvloop-1.0.dist-info").rename(others / "uvloop-1.1.dist-info")
    assert differs()
