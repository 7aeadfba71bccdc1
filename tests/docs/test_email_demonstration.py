"""docs/email-demonstration.md: its four terminals, pasted into four shells as they are."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.program import free_port
from tests.waiting import until

PAGE = (Path(__file__).parents[2] / "docs" / "email-demonstration.md").read_text("utf-8")
PROGRAMS = Path(sys.executable).parent
MAIL_SERVER, NAME_SERVER, SERVICE, EMAILS = (
    "\n".join(re.findall(r"```sh\n(.*?)```", chapter, re.DOTALL)) for chapter in re.split(r"\n## \d\. ", PAGE)[1:]
)


@pytest.mark.long
async def test_the_four_terminals_show_what_the_page_says(
    terminal: Callable[[str, str], Path], settings: dict[str, str], tmp_path: Path
) -> None:
    ports = {shown: free_port() for shown in ("8080", "8090", "2525", "5300")}

    def pasted(script: str) -> str:
        for shown, port in ports.items():
            script = script.replace(f"127.0.0.1:{shown}", f"127.0.0.1:{port}")
        script = script.replace('"127.0.0.1", 5300', f'"127.0.0.1", {ports["5300"]}')
        return script.replace(".venv/bin", str(PROGRAMS))

    mail_server = terminal("mail", pasted(MAIL_SERVER))
    terminal("names", pasted(NAME_SERVER))
    service = terminal("service", f"export RECADO_LISTEN=127.0.0.1:{ports['8080']}\n{pasted(SERVICE)}")
    await until(lambda: "listens on" in mail_server.read_text(), "the mail server listens")
    await until(lambda: "Recado serves" in service.read_text(), "the service is ready")
    done = subprocess.run(
        ["bash", "-eu", "-c", pasted(EMAILS)],
        cwd=tmp_path,
        env=settings,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    verified, opened, clicked, sent, *refused = done.stdout.splitlines()
    assert (verified, sent) == ("verified", "sent")
    assert opened.startswith("openedAt: 2")
    assert clicked.startswith("clickedAt: 2")
    assert '"CONTACT_OPTED_OUT"' in "".join(refused)
    assert '"motivo": "opt_out"' in "".join(refused)
    record = (tmp_path / "mail.jsonl").read_text()
    assert "example.com" not in re.sub(r'"number":"shop\d+\.example\.com"', "", record)
