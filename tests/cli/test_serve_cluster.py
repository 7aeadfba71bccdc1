"""`recado serve --cluster`: what a machine lacks is said in one line, before anything is begun."""

import importlib.machinery
from pathlib import Path

import pytest
from tests.program import free_port

from recado.cli.cells import placed
from recado.cli.errors import CommandError
from recado.cli.program import main
from recado.cli.serve_cluster import refuse_what_lacks
from recado.config.settings import Settings

MAP = {"RECADO_CELLS_DATABASE_URL": "postgresql://map.example/map"}
ONE = {"RECADO_DATABASE_URL": "postgresql://db.example/recado"}
REST = {
    "RECADO_ENCRYPTION_KEYS": "k", "RECADO_INDEX_KEY": "i", "RECADO_CURSOR_KEY": "c", "RECADO_DATA_DIR": "/data",
    "RECADO_STORAGE": "s3",
}  # fmt: skip
WHOLE = {"base_url": "https://api.example.com", "trusted_proxies": "10.0.0.0/24"}


@pytest.mark.parametrize(
    ("environment", "settings", "said"),
    [
        (REST, WHOLE, "a cluster needs databases of its own"),
        ({**MAP, **REST, "RECADO_CURSOR_KEY": ""}, WHOLE, "RECADO_CURSOR_KEY is not set"),
        ({**ONE, **REST, "RECADO_STORAGE": ""}, WHOLE, "media would stay on one machine"),
        ({**ONE, **REST, "RECADO_DATA_DIR": ".recado"}, WHOLE, "RECADO_DATA_DIR is not a folder from the root"),
        ({**MAP, **REST}, {**WHOLE, "base_url": None}, "RECADO_BASE_URL is not set"),
        ({**ONE, **REST}, {**WHOLE, "trusted_proxies": ""}, "RECADO_TRUSTED_PROXIES is not set"),
    ],
)
def test_what_a_machine_lacks_is_said(environment: dict[str, str], settings: dict[str, str], said: str) -> None:
    with pytest.raises(CommandError, match=said) as refused:
        refuse_what_lacks(Settings(**settings), environment)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("databases", [MAP, ONE])
def test_a_machine_that_lacks_nothing_is_not_refused(databases: dict[str, str]) -> None:
    shared = {**databases, **REST, "RECADO_STORAGE": "local", "RECADO_STORAGE_DIR": "/mnt/media"}
    for environment in ({**databases, **REST}, shared):
        refuse_what_lacks(Settings(**WHOLE), environment)


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(_name: str) -> importlib.machinery.ModuleSpec | None:
        return None

    monkeypatch.setattr(placed, "find_spec", find)
    with pytest.raises(CommandError, match=r"pip install 'recado\[cluster\]'"):
        refuse_what_lacks(Settings(**WHOLE), {**ONE, **REST})


def test_options_of_one_service_are_none_of_a_cluster(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("recado.cli.serve.configure_logging", lambda *_: None)
    assert main(["serve", "--cluster", "--workers", "2"]) == 1
    assert "RECADO_WORKERS and RECADO_DATA_DIR are set where 'ray start' runs" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["restart", "relocate"])
def test_the_commands_of_one_cell_say_what_is_missing(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recado.cli.common.configure_logging", lambda *_: None)
    monkeypatch.setenv("RECADO_CLUSTER", f"127.0.0.9:{free_port()}")
    assert main(["cells", command, "a"]) == 1
    said = capsys.readouterr().err
    assert "nothing answers at 127.0.0.9:" in said
    assert "give the command on a machine of the cluster" in said
    monkeypatch.setenv("RECADO_CLUSTER", "local")  # Ray's word for a cluster of one process
    assert main(["cells", command, "a"]) == 1
    assert "names no node of Ray" in capsys.readouterr().err
    monkeypatch.setattr(placed, "find_spec", lambda _name: None)
    assert main(["cells", command, "a"]) == 1
    assert "pip install 'recado[cluster]'" in capsys.readouterr().err
