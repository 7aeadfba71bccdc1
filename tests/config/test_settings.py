"""Installation settings and what is said when they are wrong (C33)."""

from ipaddress import ip_network
from pathlib import Path

import pytest

from recado.config.errors import SettingsError
from recado.config.limits import ceilings
from recado.config.settings import database_host, load_settings, misspelled, unused_together

KEY = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="  # 32 bytes


def test_without_any_setting_everything_has_its_default() -> None:
    settings = load_settings()

    assert settings.embedded
    assert settings.data_dir == Path(".recado")
    assert settings.listen == ("127.0.0.1", 8080)
    assert settings.address() == "http://127.0.0.1:8080"
    assert settings.admin_token is None
    assert settings.adapter_chatapp == ""
    assert settings.sandbox_time_scale == 1
    assert settings.log_format == "console"


def test_the_environment_wins_over_the_file_and_an_option_over_both(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text("RECADO_LOG_LEVEL=debug\nRECADO_LISTEN=0.0.0.0:1\nRECADO_DATA_DIR=file\nOTHER=1\n")
    monkeypatch.setenv("RECADO_LISTEN", "0.0.0.0:2")
    monkeypatch.setenv("RECADO_DATA_DIR", "environment")

    settings = load_settings(data_dir=Path("option"), listen=None)

    assert settings.log_level == "debug"
    assert settings.listen.port == 2
    assert settings.data_dir == Path("option")


def test_a_wrong_option_is_named_as_it_was_given() -> None:
    with pytest.raises(SettingsError) as raised:
        load_settings(listen="nowhere")
    assert raised.value.lines[0].startswith("--listen must be HOST:PORT")


def test_a_broken_line_of_the_file_is_refused_by_its_number(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        "# ours\n\nRECADO_LISTEN 0.0.0.0:1\nRECADO_LOG_LEVEL=debug\nRECADO_DATA_DIR\nexport OTHER='1'\nNAMED\n"
    )
    with pytest.raises(SettingsError) as refused:
        load_settings()
    assert list(refused.value.lines) == [".env line 3: write NAME=VALUE", ".env line 5: write NAME=VALUE"]


def test_a_data_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "README.md").touch()
    with pytest.raises(SettingsError) as refused:
        load_settings(data_dir=Path("README.md"))
    assert list(refused.value.lines) == ["--data-dir must be a folder (README.md is a file)"]


def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECADO_ADMIN_TOKEN", "")
    monkeypatch.setenv("RECADO_LISTEN", "")

    settings = load_settings()

    assert settings.admin_token is None
    assert settings.listen.port == 8080


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("LISTEN", "8080", "HOST:PORT, such as 127.0.0.1:8080 (the port is missing or out of range)"),
        ("LISTEN", "localhost:http", "HOST:PORT, such as 127.0.0.1:8080 (the port is missing or out of range)"),
        ("LISTEN", "localhost:65536", "HOST:PORT, such as 127.0.0.1:8080 (the port is missing or out of range)"),
        ("LISTEN", ":80", "HOST:PORT, such as 127.0.0.1:8080 (the host is missing)"),
        ("LISTEN", "::1:80", "HOST:PORT, such as 127.0.0.1:8080 (an IPv6 host needs brackets, as in [::1]:8080)"),
        ("SANDBOX_TIME_SCALE", "-1", "a number of 0 or more"),
        ("SANDBOX_TIME_SCALE", "nan", "a number of 0 or more"),
        ("LOG_LEVEL", "loud", "debug, info, warning or error"),
        ("LOG_FORMAT", "xml", "console or json"),
        ("ADAPTER_CHATAPP", "pigeon", "sandbox, bridge, cloud or empty"),
        ("BASE_URL", "ftp://example.com", "an http(s) address"),
        ("BASE_URL", "https://user@example.com", "an http(s) address"),
        ("BASE_URL", "https://example.com/?a=1", "an http(s) address"),
        ("BASE_URL", "https://example.com:99999", "an http(s) address"),
        ("DATABASE_URL", "mysql://localhost/x", "an address such as postgresql://"),
        ("DATABASE_URL", "postgresql://recado@db:five/recado", "an address such as postgresql://"),
        ("DATABASE_URL", "postgresql://recado@db:5432,[::1]:99999/recado", "an address such as postgresql://"),
        ("TRUSTED_PROXIES", "10.0.0.1/8", "a list of addresses or networks"),
        ("REQUEST_LIMITS", "read=1", "a list of class=refill/capacity"),
        ("REQUEST_LIMITS", "reed=1/2", "a list of class=refill/capacity"),
        ("REQUEST_LIMITS", "read=0/2", "a list of class=refill/capacity"),
        ("REQUEST_CEILINGS", "login=1/2", "a list of class=refill/capacity"),
        ("ENCRYPTION_KEYS", f"k1:{KEY},k1:{KEY}", "a list of KEYID:BASE64 of 32 bytes each"),
        ("ENCRYPTION_KEYS", KEY, "a list of KEYID:BASE64 of 32 bytes each"),
        ("ENCRYPTION_KEYS", "k1:c2hvcnQ=", "a list of KEYID:BASE64 of 32 bytes each"),
        ("SMPP_SOURCE", "much too long a name", "a phone, a short code, or a name of at most 11 characters"),
        ("SMPP_B_SOURCE", "Açaí", "a phone, a short code, or a name of at most 11 characters"),
        ("SMPP_SOURCE", "+551198765432100000000", "a phone, a short code, or a name of at most 11 characters"),
        ("SMPP_PASSWORD", "nine char", "a text of at most 8 characters"),
        ("SMPP_SYSTEM_ID", "sixteen letters!", "a text of at most 15 characters"),
        ("SMPP_B_SYSTEM_TYPE", "thirteen more", "a text of at most 12 characters"),
        ("SMPP_BINDS", "101", "a whole number from 1 to 100"),
        ("CURSOR_KEY", "not base64!", "base64 of at least 32 bytes"),
        ("SMPP_URL", "smpp://smsc.example.com", "an address such as smpp://smsc.example.com:2775"),
        ("SMPP_URL", "https://smsc.example.com:2775", "an address such as smpp://smsc.example.com:2775"),
        ("SMPP_PASSWORD", "9 letters", "a text of at most 8 characters"),
        ("SMPP_B_SYSTEM_ID", "São", "a text of at most 15 characters"),
        ("SMPP_SOURCE", "a very long name", "a phone, a short code, or a name of at most 11 characters"),
        ("SMTP_URL", "https://mail.example.com", "an address such as smtp://mail.example.com:587"),
        ("SMTP_URL", "smtp://user@mail.example.com", "an address such as smtp://mail.example.com:587"),
        ("SMTP_URL", "smtp://mail.example.com/x", "an address such as smtp://mail.example.com:587"),
        ("SMTP_URL", "smtp://", "an address such as smtp://mail.example.com:587"),
        ("SMTP_CONNECTIONS", "0", "a whole number from 1 to 1,000"),
        ("SMTP_CA_FILE", "/nowhere/ca.pem", "a file"),
        ("SES_TOPIC", "recado", "an ARN such as arn:aws:sns:eu-west-1:123456789012:recado"),
        ("SES_CERTIFICATE_HOSTS", "*", "a host name such as sns.eu-west-1.amazonaws.com"),
        ("SES_CERTIFICATE_HOSTS", "sns.*.com", "a host name such as sns.eu-west-1.amazonaws.com"),
        ("SES_CERTIFICATE_HOSTS", "*.*", "a host name such as sns.eu-west-1.amazonaws.com"),
        ("DKIM_DOMAIN", "not a domain", "a domain such as example.com"),
        ("DKIM_SELECTOR", "a b", "a part of a domain, such as recado"),
        ("DKIM_KEY", "hunter2", "PEM, or one line of base64"),
    ],
)
def test_a_wrong_setting_is_one_line_that_says_what_it_must_be(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, line: str
) -> None:
    monkeypatch.setenv(f"RECADO_{name}", value)

    with pytest.raises(SettingsError) as refusal:
        load_settings()

    assert len(refusal.value.lines) == 1
    assert refusal.value.lines[0].startswith(f"RECADO_{name} must be {line}")
    assert "\n" not in refusal.value.lines[0]


def test_every_wrong_setting_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECADO_LISTEN", "nowhere")
    monkeypatch.setenv("RECADO_LOG_LEVEL", "loud")

    with pytest.raises(SettingsError) as refusal:
        load_settings()

    assert [line.split()[0] for line in refusal.value.lines] == ["RECADO_LISTEN", "RECADO_LOG_LEVEL"]


@pytest.mark.parametrize("name", ["ENCRYPTION_KEYS", "CURSOR_KEY", "DATABASE_URL", "DKIM_KEY"])
def test_a_refusal_does_not_repeat_a_secret(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(f"RECADO_{name}", "k1:hunter2")

    with pytest.raises(SettingsError) as refusal:
        load_settings()

    assert "hunter2" not in str(refusal.value)


def test_the_settings_do_not_show_their_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECADO_ADMIN_TOKEN", "hunter2")
    monkeypatch.setenv("RECADO_DATABASE_URL", "postgresql://me:hunter2@db:5432/recado")
    settings = load_settings()

    assert "hunter2" not in repr(settings)
    assert database_host(settings) == "db:5432/recado"


def test_the_bridge_needs_its_address_token_and_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECADO_ADAPTER_CHATAPP", "bridge")
    monkeypatch.setenv("RECADO_BRIDGE_CHATAPP_URL", "https://bridge.example.com/")

    with pytest.raises(SettingsError) as refusal:
        load_settings()

    assert [line.split()[0] for line in refusal.value.lines] == [
        "RECADO_BRIDGE_CHATAPP_TOKEN",
        "RECADO_BRIDGE_CHATAPP_SECRET",
    ]


def test_lists_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECADO_TRUSTED_PROXIES", "10.0.0.0/8, ::1")
    monkeypatch.setenv("RECADO_REQUEST_LIMITS", "read=1/2, login=0.5/3")

    settings = load_settings()

    assert settings.trusted_proxies == (ip_network("10.0.0.0/8"), ip_network("::1"))
    assert settings.request_limits["read"] == (1, 2)
    assert settings.request_limits["login"] == (0.5, 3)
    assert settings.request_limits["send"] == (5_000, 10_000)


def test_a_ceiling_is_what_is_set_or_four_times_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECADO_REQUEST_LIMITS", "read=1/2")
    monkeypatch.setenv("RECADO_REQUEST_CEILINGS", "write=50/60")

    settings = load_settings()

    found = ceilings(settings.request_limits, settings.request_ceilings)
    assert found["read"] == (4, 8)
    assert found["write"] == (50, 60)
    assert found["send"] == (20_000, 40_000)
    assert "login" not in found


@pytest.mark.parametrize(
    ("listen", "address"),
    [
        ("127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("0.0.0.0:80", "http://127.0.0.1:80"),
        ("[::]:80", "http://[::1]:80"),
        ("localhost:0", "http://localhost:0"),
    ],
)
def test_the_address_of_the_api_follows_from_where_it_listens(
    monkeypatch: pytest.MonkeyPatch, listen: str, address: str
) -> None:
    monkeypatch.setenv("RECADO_LISTEN", listen)

    assert load_settings().address() == address


def test_the_address_names_the_port_that_was_bound_or_the_one_given_to_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().address(4711) == "http://127.0.0.1:4711"

    monkeypatch.setenv("RECADO_BASE_URL", "https://api.example.com/")

    assert load_settings().address(4711) == "https://api.example.com"


def test_names_that_no_setting_has_are_told_with_what_was_probably_meant(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("RECADO_LOG_LEVLE=debug\nRECADO_LOG_FORMAT=json\nOTHER=1\n")
    environment = {"RECADO_LISTN": "", "RECADO_LISTEN": "", "recado_data_dir": "", "HOME": "", "RECADO_TEA": "",
                   "RECADO_API_KEY": ""}  # fmt: skip
    assert misspelled(environment) == [
        ("RECADO_LISTN", "RECADO_LISTEN"),
        ("RECADO_LOG_LEVLE", "RECADO_LOG_LEVEL"),
        ("RECADO_TEA", None),
    ]


def test_settings_of_an_adapter_that_is_not_chosen_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECADO_ADAPTER_SMS", "sandbox")
    monkeypatch.setenv("RECADO_SMPP_URL", "smpp://127.0.0.1:2775")
    assert unused_together(load_settings()) == ["RECADO_SMPP_URL is set, and used only with RECADO_ADAPTER_SMS=smpp"]
    monkeypatch.delenv("RECADO_SMPP_URL")
    assert unused_together(load_settings()) == []


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({"ADAPTER_EMAIL": "smtp"}, ["SMTP_URL"]),
        ({"ADAPTER_EMAIL": "ses", "SES_REGION": "eu-west-1", "SES_CONFIGURATION_SET": "recado"},
         ["SES_ACCESS_KEY_ID", "SES_SECRET_ACCESS_KEY", "SES_TOPIC"]),
        ({"SMTP_PASSWORD": "hunter2"}, ["SMTP_USER"]),
        ({"DKIM_SELECTOR": "recado"}, ["DKIM_DOMAIN", "DKIM_KEY"]),
    ],
)  # fmt: skip
def test_settings_of_email_that_need_others_name_them(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], missing: list[str]
) -> None:
    for name, value in given.items():
        monkeypatch.setenv(f"RECADO_{name}", value)
    with pytest.raises(SettingsError) as refusal:
        load_settings()
    assert [line.split()[0] for line in refusal.value.lines] == [f"RECADO_{name}" for name in missing]
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("smtp://mail.example.com", "smtp://mail.example.com:587"),
        ("smtps://mail.example.com/", "smtps://mail.example.com:465"),
        ("smtp://127.0.0.1:25", "smtp://127.0.0.1:25"),
    ],
)
def test_a_mail_server_has_the_usual_port_where_none_is_given(
    monkeypatch: pytest.MonkeyPatch, given: str, read: str
) -> None:
    monkeypatch.setenv("RECADO_SMTP_URL", given)
    assert load_settings().smtp_url == read


def test_the_hosted_api_needs_its_address_secret_and_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECADO_ADAPTER_CHATAPP", "cloud")
    monkeypatch.setenv("RECADO_CLOUD_URL", "https://graph.example.com/v24.0/")

    with pytest.raises(SettingsError) as refusal:
        load_settings()

    assert [line.partition(" ")[0] for line in refusal.value.lines] == [
        "RECADO_CLOUD_APP_SECRET",
        "RECADO_CLOUD_VERIFY_TOKEN",
    ]
