"""Installation settings: environment variables with the prefix RECADO_, or a `.env` file (C33).

Read once, at start, by `load_settings`; every mistake becomes one line that says what to fix.
"""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from dotenv import dotenv_values
from dotenv.parser import parse_stream
from pydantic import BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from recado.config.errors import SettingsError
from recado.config.forms import (
    Listen,
    parse_database_url,
    parse_dkim_key,
    parse_dkim_selector,
    parse_file,
    parse_folder,
    parse_host_pattern,
    parse_http_url,
    parse_key,
    parse_key_list,
    parse_listen,
    parse_mail_domain,
    parse_name_server,
    parse_networks,
    parse_smpp_source,
    parse_smpp_url,
    parse_smtp_url,
    parse_topic,
    parse_words,
    short_text,
)
from recado.config.limits import DEFAULT_LIMITS, RequestLimit, parse_limits, parse_limits_of_credentials

PREFIX = "RECADO_"

SCANNERS = (
    "googlebot", "google-safety", "bingbot", "bingpreview", "applebot", "duckduckbot", "yandexbot", "slackbot",
    "twitterbot", "telegrambot", "discordbot", "linkedinbot", "facebookexternalhit", "whatsapp/", "skypeuripreview",
    "embedly", "crawler", "spider", "urlscan", "barracuda", "proofpoint", "mimecast", "virustotal", "headlesschrome",
)  # fmt: skip


def _setting(default: Any, about: str, form: str, shown_default: str | None = None) -> Any:
    """Declare a setting: what it is about, the form its value takes, and the default as the reference shows it."""
    return Field(default, description=about, json_schema_extra={"form": form, "default": shown_default})


def _whole(default: int | None, least: int, most: int, about: str, shown_default: str | None = None) -> Any:
    """Declare one that is a whole number within bounds."""
    return Field(
        default,
        ge=least,
        le=most,
        description=about,
        json_schema_extra={
            "form": f"a whole number from {least:,} to {most:,}",
            "default": f"`{default}`" if shown_default is None else shown_default,
        },
    )


HttpAddress = Annotated[str | None, BeforeValidator(parse_http_url)]


def _bridge_url(of: str, path: str) -> Any:
    form = f"an http(s) address without query, such as https://bridge.example.com/{path}"
    return _setting(None, f"The address of the bridge {of}.", form, "none")


def _bridge_token() -> Any:
    return _setting(None, "The bearer token that Recado presents to that bridge.", "a text", "none")


def _bridge_secret() -> Any:
    return _setting(None, "The secret with which that bridge signs its callbacks.", "a text", "none")


def _bridge_idempotent() -> Any:
    about = (
        "Whether that bridge sends a message once, however often it is given it under one `Idempotency-Key`: a send "
        "whose outcome is unknown is then repeated."
    )
    return _setting(False, about, "true or false", "`false`")


# Of the two SMS centres.
_SmppUrl = Annotated[str | None, BeforeValidator(parse_smpp_url)]
_SmppSystemId = Annotated[str | None, BeforeValidator(short_text(15))]
_SmppPassword = Annotated[SecretStr | None, BeforeValidator(short_text(8))]
_SmppSystemType = Annotated[str, BeforeValidator(short_text(12))]
_SmppSource = Annotated[str, BeforeValidator(parse_smpp_source)]
_SmppAlphabet = Literal["gsm7", "gsm7_packed", "latin1"]
_SmppMessageIds = Literal["text", "hex", "hex_decimal", "decimal_hex"]


def _smpp_url(gateway: str) -> Any:
    form = "an address such as smpp://smsc.example.com:2775 or smpps://smsc.example.com:3550"
    return _setting(None, f"Where the SMS centre of `{gateway}` is, over TLS with smpps.", form, "none")


def _smpp_system_id() -> Any:
    return _setting(None, "Who we are at that SMS centre.", "a text of at most 15 characters", "none")


def _smpp_password() -> Any:
    return _setting(None, "The password there.", "a text of at most 8 characters", "none")


def _smpp_system_type() -> Any:
    return _setting("", "What that SMS centre calls our kind of system.", "a text of at most 12 characters", "none")


def _smpp_source() -> Any:
    about = "Whom messages come from where no dedicated sender is named."
    return _setting("", about, "a phone, a short code, or a name of at most 11 characters", "the SMS centre knows")


def _smpp_binds() -> Any:
    return _whole(1, 1, 100, "Connections to that SMS centre.")


def _smpp_window() -> Any:
    return _whole(50, 1, 1_000, "Messages on their way on each of these connections.")


def _smpp_alphabet() -> Any:
    about = "How that SMS centre takes texts that GSM-7 can hold."
    return _setting("gsm7", about, "gsm7, gsm7_packed or latin1", "`gsm7`")


def _smpp_wide_reference() -> Any:
    about = "Whether the parts of a long text carry a reference of two octets, which fewer texts share."
    return _setting(False, about, "true or false", "`false`")


def _smpp_message_ids() -> Any:
    about = (
        "How that SMS centre writes ids in answers and in receipts: alike, or in digits of two kinds, answers first."
    )
    return _setting("text", about, "text, hex, hex_decimal or decimal_hex", "`text`")


_OF_COMMANDS = frozenset(
    {f"{PREFIX}API_KEY", f"{PREFIX}CELLS_DATABASE_URL", f"{PREFIX}LOADTEST_TOKEN"}
)  # read by commands, not by the service


class Settings(BaseSettings):
    """What an installation may set; the defaults serve a whole service from one folder."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_file=".env",
        env_file_encoding="utf-8",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
    )

    database_url: Annotated[SecretStr | None, BeforeValidator(parse_database_url)] = _setting(
        None,
        "The PostgreSQL (15 or later) that holds everything. Without it, Recado runs its own in `DATA_DIR`.",
        "an address such as postgresql://user:password@host:5432/recado",
        "the embedded PostgreSQL",
    )
    data_dir: Annotated[Path, BeforeValidator(parse_folder)] = _setting(
        Path(".recado"), "The folder of the embedded database and of the keys made for it.", "a folder", "`./.recado`"
    )
    listen: Annotated[Listen, NoDecode, BeforeValidator(parse_listen)] = _setting(
        Listen("127.0.0.1", 8080),
        "Where the API listens; port 0 takes any free one.",
        "HOST:PORT, such as 127.0.0.1:8080",
        "`127.0.0.1:8080`",
    )
    cluster: str | None = _setting(
        None,
        "Where `recado serve --cluster` finds Ray.",
        "auto, or the HOST:PORT of Ray's head, such as 10.0.0.1:6379",
        "auto: this machine's node",
    )
    base_url: HttpAddress = _setting(
        None,
        "The address under which callers reach the API: it is part of error types and provider callbacks.",
        "an http(s) address without query, such as https://api.example.com",
        "`http://` and `LISTEN`",
    )
    link_base: HttpAddress = _setting(
        None,
        "The address under which people open links: those in messages, and those that lead to a chat. A short one "
        "leaves more of a text message.",
        "an http(s) address without query, such as https://l.example.com",
        "`BASE_URL`",
    )
    scanners: Annotated[tuple[str, ...], NoDecode, BeforeValidator(parse_words)] = _setting(
        SCANNERS,
        "Programs that open links to look at them, by a part of their `User-Agent` in any case: what they open is not "
        "counted.",
        "a list of texts, such as googlebot, preview",
        "those of search engines, mail scanners and previews",
    )
    chat_url: HttpAddress = _setting(
        None,
        "Where the chat app opens a chat with a number in live: its digits and `?text=` are added. Origin links need "
        "it.",
        "an http(s) address without query, such as https://chat.example.com",
        "none: live has no origin links",
    )
    admin_token: SecretStr | None = _setting(
        None,
        "The credential of `/v2/admin/*`. Without it those routes answer 404.",
        "a long random text",
        "none",
    )
    metrics_token: SecretStr | None = _setting(
        None,
        "Opens `GET /metrics`, sent as `Authorization: Bearer …`. Without it only this machine may read them.",
        "a long random text",
        "none",
    )
    encryption_keys: Annotated[SecretStr | None, BeforeValidator(parse_key_list)] = _setting(
        None,
        "Keys that encrypt stored secrets: the first encrypts, all decrypt.",
        "a list of KEYID:BASE64 of 32 bytes each, such as k1:$(openssl rand -base64 32)",
        "embedded database: made once and kept in `DATA_DIR`",
    )
    index_key: Annotated[SecretStr | None, BeforeValidator(parse_key)] = _setting(
        None,
        "The key of the index that finds contacts by their documents, and, without `LINK_KEY`, of the addresses in "
        "e-mails by which people unsubscribe. It stays the same for ever.",
        "base64 of at least 32 bytes, such as $(openssl rand -base64 32)",
        "embedded database: made once and kept in `DATA_DIR`",
    )
    link_key: Annotated[SecretStr | None, BeforeValidator(parse_key)] = _setting(
        None,
        "The key of the addresses in e-mails that tell of opens and by which people unsubscribe. What `INDEX_KEY` "
        "signed before works on. Once set, it stays the same for ever.",
        "base64 of at least 32 bytes, such as $(openssl rand -base64 32)",
        "`INDEX_KEY`",
    )
    cursor_key: Annotated[SecretStr | None, BeforeValidator(parse_key)] = _setting(
        None,
        "The key that signs page cursors.",
        "base64 of at least 32 bytes, such as $(openssl rand -base64 32)",
        "embedded database: made once and kept in `DATA_DIR`",
    )
    adapter_chatapp: Literal["", "sandbox", "bridge", "cloud"] = _setting(
        "",
        "The provider adapter of the chat-app channel for live. Test always uses the sandbox.",
        "sandbox, bridge, cloud or empty",
        "none: live sends answer 502",
    )
    bridge_chatapp_url: HttpAddress = _bridge_url("of chat-app", "chatapp")
    bridge_chatapp_token: SecretStr | None = _bridge_token()
    bridge_chatapp_secret: SecretStr | None = _bridge_secret()
    bridge_chatapp_idempotent: bool = _bridge_idempotent()
    cloud_url: HttpAddress = _setting(
        None,
        "The address of the chat-app provider's hosted API, with its version.",
        "an http(s) address without query, such as https://graph.example.com/v24.0",
        "none",
    )
    cloud_app_secret: SecretStr | None = _setting(
        None, "The secret of the application at the hosted API: it signs its callbacks.", "a text", "none"
    )
    cloud_verify_token: SecretStr | None = _setting(
        None,
        "The text with which the hosted API shows, when it subscribes to callbacks, that we entered the address.",
        "a text",
        "none",
    )
    adapter_sms: Literal["", "sandbox", "bridge", "smpp"] = _setting(
        "",
        "The adapter of `gateway_a`, through which SMS leave in live. Test always uses the sandbox.",
        "sandbox, bridge, smpp or empty",
        "none: live sends answer 502",
    )
    adapter_sms_b: Literal["", "sandbox", "bridge", "smpp"] = _setting(
        "",
        "The adapter of `gateway_b`, which takes over for five minutes when `gateway_a` fails three times in a row.",
        "sandbox, bridge, smpp or empty",
        "none: nothing takes over",
    )
    bridge_sms_url: HttpAddress = _bridge_url("of `gateway_a`", "sms")
    bridge_sms_token: SecretStr | None = _bridge_token()
    bridge_sms_secret: SecretStr | None = _bridge_secret()
    bridge_sms_idempotent: bool = _bridge_idempotent()
    bridge_sms_b_url: HttpAddress = _bridge_url("of `gateway_b`", "sms")
    bridge_sms_b_token: SecretStr | None = _bridge_token()
    bridge_sms_b_secret: SecretStr | None = _bridge_secret()
    bridge_sms_b_idempotent: bool = _bridge_idempotent()
    smpp_url: _SmppUrl = _smpp_url("gateway_a")
    smpp_system_id: _SmppSystemId = _smpp_system_id()
    smpp_password: _SmppPassword = _smpp_password()
    smpp_system_type: _SmppSystemType = _smpp_system_type()
    smpp_source: _SmppSource = _smpp_source()
    smpp_binds: int = _smpp_binds()
    smpp_window: int = _smpp_window()
    smpp_alphabet: _SmppAlphabet = _smpp_alphabet()
    smpp_wide_reference: bool = _smpp_wide_reference()
    smpp_message_ids: _SmppMessageIds = _smpp_message_ids()
    smpp_b_url: _SmppUrl = _smpp_url("gateway_b")
    smpp_b_system_id: _SmppSystemId = _smpp_system_id()
    smpp_b_password: _SmppPassword = _smpp_password()
    smpp_b_system_type: _SmppSystemType = _smpp_system_type()
    smpp_b_source: _SmppSource = _smpp_source()
    smpp_b_binds: int = _smpp_binds()
    smpp_b_window: int = _smpp_window()
    smpp_b_alphabet: _SmppAlphabet = _smpp_alphabet()
    smpp_b_wide_reference: bool = _smpp_wide_reference()
    smpp_b_message_ids: _SmppMessageIds = _smpp_message_ids()
    sms_gateway_a_per_second: int = _whole(
        100, 1, 10_000, "SMS that leave through `gateway_a` within a second at most; in test through the sandbox."
    )
    sms_gateway_b_per_second: int = _whole(
        100, 1, 10_000, "SMS that leave through `gateway_b` within a second at most."
    )
    adapter_social: Literal["", "sandbox", "bridge"] = _setting(
        "",
        "Who sends social messages in live. Test always uses the sandbox.",
        "sandbox, bridge or empty",
        "none: in live nothing is sent (502)",
    )
    bridge_social_url: HttpAddress = _bridge_url("of social", "social")
    bridge_social_token: SecretStr | None = _bridge_token()
    bridge_social_secret: SecretStr | None = _bridge_secret()
    bridge_social_idempotent: bool = _bridge_idempotent()
    adapter_rcs: Literal["", "sandbox", "bridge"] = _setting(
        "",
        "Who sends RCS messages in live. Test always uses the sandbox.",
        "sandbox, bridge or empty",
        "none: live sends answer 502",
    )
    bridge_rcs_url: HttpAddress = _bridge_url("of RCS", "rcs")
    bridge_rcs_token: SecretStr | None = _bridge_token()
    bridge_rcs_secret: SecretStr | None = _bridge_secret()
    bridge_rcs_idempotent: bool = _bridge_idempotent()
    rcs_per_second: int = _whole(
        100, 1, 10_000, "RCS messages that leave within a second at most, in live and in test."
    )
    adapter_push: Literal["", "sandbox", "direct"] = _setting(
        "",
        "Who takes notifications in live. `direct`: push services of browsers, Apple's with the key of an app, and "
        "Firebase with its service account. Test always uses the sandbox.",
        "sandbox, direct or empty",
        "none: live sends answer 502",
    )
    fcm_url: HttpAddress = _setting(
        "https://fcm.googleapis.com",
        "The address of Firebase Cloud Messaging.",
        "an http or https address",
        "`https://fcm.googleapis.com`",
    )
    fcm_token_url: HttpAddress = _setting(
        "https://oauth2.googleapis.com/token",
        "Where service accounts get their tokens.",
        "an http or https address",
        "`https://oauth2.googleapis.com/token`",
    )
    apns_url: HttpAddress = _setting(
        "https://api.push.apple.com",
        "The address of Apple's push service.",
        "an http or https address",
        "`https://api.push.apple.com`",
    )
    apns_development_url: HttpAddress = _setting(
        "https://api.sandbox.push.apple.com",
        "The address of Apple's push service for apps in development.",
        "an http or https address",
        "`https://api.sandbox.push.apple.com`",
    )
    adapter_email: Literal["", "sandbox", "bridge", "smtp", "ses"] = _setting(
        "",
        "Who sends e-mail in live, and verifies its senders. `bridge`, `smtp` and `ses` look for a TXT record of their "
        "domains. Test always uses the sandbox, for which every sender is verified.",
        "sandbox, bridge, smtp, ses or empty",
        "none: in live nothing is sent, and no sender can be made (502)",
    )
    bridge_email_url: HttpAddress = _bridge_url("of e-mail", "email")
    bridge_email_token: SecretStr | None = _bridge_token()
    bridge_email_secret: SecretStr | None = _bridge_secret()
    email_per_second: int = _whole(100, 1, 10_000, "E-mails that leave within a second at most, in live and in test.")
    email_simulator_domain: str = Field(
        "simulator.test",
        pattern=r"^[a-z0-9.-]{1,240}$",
        description="The domain of the mailbox simulator, for whose addresses the service answers itself.",
        json_schema_extra={"form": "a domain in lower case", "default": "`simulator.test`"},
    )
    dns_server: Annotated[Listen | None, NoDecode, BeforeValidator(parse_name_server)] = _setting(
        None,
        "The name server that is asked for the TXT records of senders and of DKIM.",
        "an IP address with a port, such as 127.0.0.1:53",
        "those of the machine",
    )
    smtp_url: Annotated[str | None, BeforeValidator(parse_smtp_url)] = _setting(
        None,
        "Where the mail server is: with smtps over TLS, with smtp after STARTTLS, which only a server on this machine "
        "may lack. The port is 587, or 465 with smtps, where none is given.",
        "an address such as smtp://mail.example.com:587 or smtps://mail.example.com:465",
        "none",
    )
    smtp_user: str | None = _setting(None, "Who we are at that mail server.", "a text", "none: it asks nobody")
    smtp_password: SecretStr | None = _setting(None, "The password there.", "a text", "none")
    smtp_connections: int = _whole(
        10, 1, 1_000, "Connections to that mail server, and so e-mails on their way to it. One organization has half."
    )
    smtp_ca_file: Annotated[Path | None, BeforeValidator(parse_file)] = _setting(
        None,
        "The certificates that vouch for that mail server's own, in PEM.",
        "a file",
        "those that the system trusts",
    )
    ses_region: Annotated[str | None, BeforeValidator(short_text(32))] = _setting(
        None, "The region of the SES account.", "a name such as eu-west-1", "none"
    )
    ses_access_key_id: Annotated[str | None, BeforeValidator(short_text(128))] = _setting(
        None, "The access key that may send there.", "a text", "none"
    )
    ses_secret_access_key: SecretStr | None = _setting(None, "The secret of that access key.", "a text", "none")
    ses_configuration_set: Annotated[str | None, BeforeValidator(short_text(64))] = _setting(
        None, "The configuration set, whose events go to `SES_TOPIC`.", "a text of at most 64 characters", "none"
    )
    ses_topic: Annotated[str | None, BeforeValidator(parse_topic)] = _setting(
        None,
        "The SNS topic that brings the reports. Those of any other are refused.",
        "an ARN such as arn:aws:sns:eu-west-1:123456789012:recado",
        "none",
    )
    ses_endpoint: HttpAddress = _setting(
        None,
        "The address of the API, where it is not the region's own.",
        "an http(s) address without query, such as https://email.eu-west-1.amazonaws.com",
        "that of the region",
    )
    ses_certificate_hosts: Annotated[str, BeforeValidator(parse_host_pattern)] = _setting(
        "sns.*.amazonaws.com",
        "The hosts from which certificates of SNS are fetched, and at which subscriptions are confirmed; a `*` is "
        "the name of a region.",
        "a host name such as sns.eu-west-1.amazonaws.com",
        "`sns.*.amazonaws.com`",
    )
    ses_connections: int = _whole(100, 1, 1_000, "E-mails on their way to SES at once. One organization has half.")
    dkim_domain: Annotated[str | None, BeforeValidator(parse_mail_domain)] = _setting(
        None,
        "The domain in whose name `smtp` and `ses` sign e-mails (DKIM), besides what their providers sign.",
        "a domain such as example.com",
        "none: nothing is signed here",
    )
    dkim_selector: Annotated[str | None, BeforeValidator(parse_dkim_selector)] = _setting(
        None,
        "Where its public key is: the TXT record at `<selector>._domainkey.<domain>`.",
        "a part of a domain, such as recado",
        "none",
    )
    dkim_key: Annotated[SecretStr | None, BeforeValidator(parse_dkim_key)] = _setting(
        None,
        "The private key, RSA or Ed25519.",
        "PEM, or one line of base64 such as $(openssl genrsa 2048 | openssl pkcs8 -topk8 -nocrypt -outform DER | "
        "base64 -w0)",
        "none",
    )
    storage: Literal["local", "s3"] = _setting(
        "local",
        "Where media is stored: in files, or in a bucket of an S3 or of what speaks like it.",
        "local or s3",
        "`local`",
    )
    storage_dir: Annotated[Path | None, BeforeValidator(parse_folder)] = _setting(
        None, "The folder of stored media, with `STORAGE=local`.", "a folder", "`media` in `DATA_DIR`"
    )
    s3_bucket: Annotated[str | None, BeforeValidator(short_text(63))] = _setting(
        None, "The bucket of stored media.", "a name", "none"
    )
    s3_region: Annotated[str | None, BeforeValidator(short_text(32))] = _setting(
        None, "Its region.", "a name such as eu-west-1", "none"
    )
    s3_endpoint: HttpAddress = _setting(
        None,
        "The address of the storage, where it is not the region's own. Callers are led there to download.",
        "an http(s) address without query, such as https://storage.example.com",
        "that of the region",
    )
    s3_access_key_id: Annotated[str | None, BeforeValidator(short_text(128))] = _setting(
        None, "The access key that may read, write and delete there.", "a text", "none"
    )
    s3_secret_access_key: SecretStr | None = _setting(None, "The secret of that access key.", "a text", "none")
    billing_enabled: bool = _setting(
        True, "Whether sends are paid from a wallet. Without, no wallet exists.", "true or false", "`true`"
    )
    adapter_payments: Literal["", "bridge"] = _setting(
        "",
        "Who confirms the payments of top-ups in live; the administrator can in any case.",
        "bridge or empty",
        "none",
    )
    bridge_payments_secret: SecretStr | None = _setting(
        None, "The secret with which the payments bridge signs its callbacks.", "a text", "none"
    )
    sandbox_time_scale: float = Field(
        1.0,
        ge=0,
        allow_inf_nan=False,
        description="Stretches the sandbox's delays; 0 lets everything happen at once.",
        json_schema_extra={"form": "a number of 0 or more, such as 1 or 0.1", "default": "`1`"},
    )
    ssrf_allow_cidrs: Annotated[tuple[IPv4Network | IPv6Network, ...], NoDecode, BeforeValidator(parse_networks)] = (
        _setting(
            (),
            "Networks that webhook URLs may lead to although they are not public, on any port and with http too.",
            "a list of addresses or networks, such as 127.0.0.0/8, ::1",
            "none",
        )
    )
    trusted_proxies: Annotated[tuple[IPv4Network | IPv6Network, ...], NoDecode, BeforeValidator(parse_networks)] = (
        _setting(
            (),
            "Reverse proxies whose `X-Forwarded-For` tells the caller's address.",
            "a list of addresses or networks, such as 10.0.0.0/8, 192.0.2.7",
            "none",
        )
    )
    request_limits: Annotated[Mapping[str, RequestLimit], NoDecode, BeforeValidator(parse_limits)] = _setting(
        DEFAULT_LIMITS,
        "Request limits per key and class as refill a second / capacity; classes left out keep their default.",
        "a list of class=refill/capacity, such as read=500/1000,send=5000/10000",
        "see Request limits below",
    )
    request_ceilings: Annotated[Mapping[str, RequestLimit], NoDecode, BeforeValidator(parse_limits_of_credentials)] = (
        _setting(
            {},
            "The most that all keys and sessions of an organization's environment have together in a class, and that "
            "`rateLimits` of one key may ask for.",
            "a list of class=refill/capacity, such as write=400/800,send=10000/20000",
            "four times the request limit of the class",
        )
    )
    body_memory: int = _whole(
        256, 64, 65_536, "MiB of request bodies in memory at once. One caller, so one body too, has a quarter at most."
    )
    workers: int | None = _whole(
        None,
        1,
        8,
        "Processes that serve. With more than one, the first has the actors, and the others accept for it.",
        "one for each two cores, 4 at most",
    )
    workers_send: bool = Field(
        False,
        description="Whether the processes beside the first send for a part of the chat app's numbers: a trial.",
        json_schema_extra={"form": "true or false", "default": "`false`"},
    )
    standby: bool = Field(
        True,
        description="Whether a service of several processes keeps another ready, which follows when the first dies.",
        json_schema_extra={"form": "true or false", "default": "`true`"},
    )
    connections_per_address: int = Field(
        1_000,
        ge=1,
        description="Open connections from one address; those of `TRUSTED_PROXIES` count in all only.",
        json_schema_extra={"form": "a whole number of 1 or more", "default": "`1000`"},
    )
    log_level: Literal["debug", "info", "warning", "error"] = _setting(
        "info", "The least severe log entry that is written.", "debug, info, warning or error", "`info`"
    )
    log_format: Literal["console", "json"] = _setting(
        "console", "Log entries for people, or one JSON object a line.", "console or json", "`console`"
    )

    @property
    def embedded(self) -> bool:
        """Whether Recado runs its own PostgreSQL."""
        return self.database_url is None

    @property
    def processes(self) -> int:
        """Of how many the service is; 1 where it was neither given nor chosen."""
        return self.workers or 1

    @property
    def sending_processes(self) -> int:
        """How many send for numbers of the chat app."""
        return self.processes if self.workers_send else 1

    @property
    def link_address(self) -> str:
        """The address of links, without a trailing slash."""
        return self.address() if self.link_base is None else self.link_base

    def address(self, port: int | None = None) -> str:
        """Return the API's address without a trailing slash; `port` is the one bound when `listen` asks for any."""
        if self.base_url is not None:
            return self.base_url
        # An API that listens everywhere is reached here under the loopback address.
        host = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(self.listen.host, self.listen.host)  # noqa: S104
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{self.listen.port if port is None else port}"


def load_settings(**overrides: Any) -> Settings:
    """Read the environment and `.env`; `overrides` (from the command line, None = not given) win.

    Raises SettingsError with a line for every setting that is wrong or missing.
    """
    given = {name: value for name, value in overrides.items() if value is not None}
    try:
        if broken := _broken_lines(Path(".env")):
            raise SettingsError(broken)
        settings = Settings(**given)
    except ValidationError as error:
        raise SettingsError([_line(entry, given) for entry in error.errors(include_url=False)]) from None
    except (UnicodeDecodeError, OSError):
        raise SettingsError([".env cannot be read: make it a UTF-8 text file that this user may read"]) from None
    if lines := _missing_together(settings):
        raise SettingsError(lines)
    return settings


def _broken_lines(file: Path) -> list[str]:
    """Name the lines of the file that set nothing: their reader leaves them out, and a setting keeps its default."""
    if not file.is_file():
        return []
    with file.open(encoding="utf-8") as text:
        bindings = list(parse_stream(text))
    broken = [
        binding.original
        for binding in bindings
        if binding.error or (binding.value is None and (binding.key or "").upper().startswith(PREFIX))
    ]
    # The blank lines before a binding are part of it.
    lines = [each.line + each.string[: -len(each.string.lstrip())].count("\n") for each in broken]
    return [f"{file} line {line}: write NAME=VALUE" for line in lines]


def _line(entry: Any, given: Collection[str]) -> str:
    """Say what a setting must be, under the name by which it was given: an option of the command or a variable."""
    field = str(entry["loc"][0])
    name = f"--{field.replace('_', '-')}" if field in given else f"{PREFIX}{field.upper()}"
    extra = Settings.model_fields[field].json_schema_extra
    assert isinstance(extra, dict)  # noqa: S101 - every setting above declares its form
    reason = f" ({error})" if (error := entry.get("ctx", {}).get("error")) else ""
    return f"{name} must be {extra['form']}{reason}"


def _bridge_of(name: str) -> tuple[str, ...]:
    return tuple(f"bridge_{name}_{what}" for what in ("url", "token", "secret"))


_NEEDED: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("adapter_chatapp", "bridge"): _bridge_of("chatapp"),
    ("adapter_chatapp", "cloud"): ("cloud_url", "cloud_app_secret", "cloud_verify_token"),
    ("adapter_sms", "bridge"): _bridge_of("sms"),
    ("adapter_sms_b", "bridge"): _bridge_of("sms_b"),
    ("adapter_sms", "smpp"): ("smpp_url", "smpp_system_id", "smpp_password"),
    ("adapter_sms_b", "smpp"): ("smpp_b_url", "smpp_b_system_id", "smpp_b_password"),
    ("adapter_social", "bridge"): _bridge_of("social"),
    ("adapter_rcs", "bridge"): _bridge_of("rcs"),
    ("adapter_email", "bridge"): _bridge_of("email"),
    ("adapter_email", "smtp"): ("smtp_url",),
    ("adapter_email", "ses"): (
        "ses_region",
        "ses_access_key_id",
        "ses_secret_access_key",
        "ses_configuration_set",
        "ses_topic",
    ),
    ("adapter_payments", "bridge"): ("bridge_payments_secret",),
    ("storage", "s3"): ("s3_bucket", "s3_region", "s3_access_key_id", "s3_secret_access_key"),
}
"""What an adapter needs besides its own setting, by that setting and its value."""

_TOGETHER = (("dkim_domain", "dkim_selector", "dkim_key"), ("smtp_user", "smtp_password"))
"""Settings of which all are there, or none."""


def _missing_together(settings: Settings) -> list[str]:
    return _missing_of_adapters(settings) + [
        f"{PREFIX}{name.upper()} is missing: {PREFIX}{given[0].upper()} needs it"
        for names in _TOGETHER
        if (given := [name for name in names if getattr(settings, name) is not None])
        for name in names
        if name not in given
    ]


def _missing_of_adapters(settings: Settings) -> list[str]:
    return [
        f"{PREFIX}{name.upper()} is missing: {PREFIX}{adapter.upper()}={value} needs it"
        for (adapter, value), names in _NEEDED.items()
        if getattr(settings, adapter) == value
        for name in names
        if getattr(settings, name) is None
    ]


def unused_together(settings: Settings) -> list[str]:
    """What nothing uses: a setting of an adapter that another setting does not choose."""
    return [
        f"{PREFIX}{name.upper()} is set, and used only with {PREFIX}{adapter.upper()}={value}"
        for (adapter, value), names in _NEEDED.items()
        if getattr(settings, adapter) != value
        for name in names
        if getattr(settings, name) is not None
    ]


def misspelled(environment: Mapping[str, str]) -> list[tuple[str, str | None]]:
    """Return the names with our prefix, of the environment and of `.env`, that no setting has: each is probably
    misspelled. Beside it the setting that was probably meant, if one is like it."""
    known = {f"{PREFIX}{field.upper()}" for field in Settings.model_fields}
    given = {name.upper() for name in (*environment, *dotenv_values(".env", encoding="utf-8"))}
    unknown = sorted(name for name in given - known - _OF_COMMANDS if name.startswith(PREFIX))
    return [(name, next(iter(get_close_matches(name, known, n=1, cutoff=0.8)), None)) for name in unknown]


def database_host(settings: Settings) -> str:
    """Return where the database is, without its credentials, for people to read."""
    if settings.database_url is None:
        return f"embedded, in {settings.data_dir}"
    parts = urlsplit(settings.database_url.get_secret_value())
    return f"{parts.hostname or 'local socket'}{f':{parts.port}' if parts.port else ''}{parts.path}"
