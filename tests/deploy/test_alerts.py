"""The alerts of `deploy/prometheus`, as promtool judges them: each fires in its trouble, not before, not in health."""

import re
from pathlib import Path

from tests.deploy import promtool
from tests.deploy.alert_cases import CASES, Case
from tests.docs.test_links import anchors

_SCRAPED = ",".join(f'{name}="{value}"' for name, value in promtool.SCRAPED.items())


def series(case: Case, healthy: bool) -> dict[str, str]:
    return {name.replace("$", _SCRAPED): values[healthy] for name, values in case.series.items()}


def in_trouble(case: Case) -> dict[str, object]:
    looks = [promtool.looked_at(case.alert, case.fires, promtool.fired(case.alert, case.labels))]
    if case.waits:
        looks.insert(0, promtool.looked_at(case.alert, case.waits))
    return promtool.about(f"{case.alert} in trouble", series(case, healthy=False), looks)


def in_health(case: Case) -> dict[str, object]:
    looks = [promtool.looked_at(case.alert, when) for when in (case.waits or "0m", case.fires)]
    return promtool.about(f"{case.alert} in health", series(case, healthy=True), looks)


def test_promtool_takes_the_rules() -> None:
    done = promtool.run("check", "rules", "--lint=all", "--lint-fatal", promtool.RULES)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_fires_in_its_trouble_and_not_in_health(tmp_path: Path) -> None:
    assert {case.alert for case in CASES} == set(promtool.alerts())
    done = promtool.judged(tmp_path, [test for case in CASES for test in (in_trouble(case), in_health(case))])
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_says_so_where_an_alert_does_not_do_what_is_expected(tmp_path: Path) -> None:
    wrong = [
        promtool.about(case.alert, series(case, healthy=False), [promtool.looked_at(case.alert, case.fires)])
        for case in CASES
    ]
    done = promtool.judged(tmp_path, wrong)
    assert done.returncode != 0
    assert re.findall(r"alertname: (\w+),", done.stdout + done.stderr) == [case.alert for case in CASES]


def test_each_alert_says_what_is_wrong_and_where_it_is_told_what_to_do() -> None:
    for name, rule in promtool.alerts().items():
        assert set(rule["annotations"]) == {"summary", "runbook"}, name
        page, _, heading = rule["annotations"]["runbook"].partition("#")
        assert heading == name.lower()
        assert heading in anchors(promtool.ROOT / page), name
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}


def test_what_is_told_to_look_at_is_there() -> None:
    """Log entries, codes and reasons are in the program, and members of answers in the contract."""
    page = (promtool.ROOT / "docs" / "alerts.md").read_text("utf-8")
    source = "\n".join(file.read_text("utf-8") for file in (promtool.ROOT / "src").rglob("*.py"))
    contract = (promtool.ROOT / "docs" / "contract.md").read_text("utf-8")
    named = {name for name in re.findall(r"`([A-Za-z_]+)`", page) if "_" in name or re.search("[a-z][A-Z]", name)}
    entries = {name for name in named if "_" in name and not name.startswith("pg_")}
    members = {name for name in named if "_" not in name}
    assert len(entries) > 10
    assert members
    assert [name for name in entries if f'"{name.removesuffix("_total")}"' not in source] == []
    assert [name for name in members if not re.search(rf"\b{name}\b", contract)] == []


def test_promtool_takes_what_the_dashboard_asks_for(tmp_path: Path) -> None:
    """As rules that record it: promtool has no other way to look at expressions without a server."""
    asked = promtool.shown()
    assert len(asked) > 30
    recorded = "".join(f"  - {{record: 'shown:{place}', expr: {each!r}}}\n" for place, each in enumerate(asked))
    file = tmp_path / "shown.yml"
    file.write_text(f"groups:\n- name: shown\n  rules:\n{recorded}")
    done = promtool.run("check", "rules", file)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_panels_of_the_dashboard_lie_beside_each_other() -> None:
    places: set[tuple[int, int]] = set()
    for panel in promtool.panels():
        at = panel["gridPos"]
        squares = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not places & squares, panel["title"]
        assert max(x for x, _ in squares) < 24
        places |= squares
    assert len({panel["id"] for panel in promtool.panels()}) == len(promtool.panels())
