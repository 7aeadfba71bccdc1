"""The command: runs the checks and prints what they found."""

import typer

from recado.cli.common import DataDir, Json, print_json, run_async
from recado.cli.doctor.checks import examine
from recado.cli.doctor.finding import Finding, Verdict

_MARKS = {Verdict.OK: "ok  ", Verdict.WARNING: "warn", Verdict.FAILURE: "FAIL"}


def mount(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor", epilog="Example: recado doctor --data-dir ./.recado --json")(doctor)


def doctor(data_dir: DataDir = None, as_json: Json = False) -> int:
    """Check settings, keys, address, disk, database, queue, storage and providers, and change nothing.

    Exit status 1 when something fails.
    """
    findings = run_async(examine(data_dir))
    healthy = all(finding.verdict is not Verdict.FAILURE for finding in findings)
    if as_json:
        each = [part for finding in findings for part in finding.parts or (finding,)]
        print_json({"healthy": healthy, "checks": [_shown(finding) for finding in each]})
    else:
        for finding in findings:
            print(f"{_MARKS[finding.verdict]}  {finding.subject:<10} {finding.text}")
    return 0 if healthy else 1


def _shown(finding: Finding) -> dict[str, str]:
    return {"subject": finding.subject, "verdict": finding.verdict.value, "text": finding.text}
