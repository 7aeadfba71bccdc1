"""Bodies and views of push apps (C22.4)."""

import re
from contextlib import suppress
from typing import Annotated, Any, Literal

from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from recado.domain.push.device import PLATFORMS
from recado.http.api.models import ApiModel, PatchModel, Timestamp, unset
from recado.http.api.paging import CountedPage
from recado.http.routes.core.emails import Email
from recado.http.routes.core.views import view_of
from recado.storage.push.apps import PushApp

Platform = Literal["ios", "android", "web"]
_NAMED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]*")


def _each_once(platforms: list[str]) -> list[str]:
    if len(set(platforms)) != len(platforms):
        raise PydanticCustomError("invalid", "must name each platform once")
    return sorted(platforms, key=PLATFORMS.index)


def _rsa_key(text: str) -> str:
    return _key_of(text, rsa.RSAPrivateKey, "an RSA key")


def _p256_key(text: str) -> str:
    return _key_of(text, ec.EllipticCurvePrivateKey, "a key on P-256")


def _key_of(text: str, kind: type[Any], what: str) -> str:
    key: Any = None
    with suppress(Exception):  # whatever the reader says of it, which may repeat the key
        key = load_pem_private_key(text.encode(), password=None)
    fits = isinstance(key, kind)
    if fits and kind is rsa.RSAPrivateKey:
        fits = 2_048 <= key.key_size <= 4_096
    elif fits:
        fits = key.curve.name == "secp256r1"
    if not fits:
        raise PydanticCustomError("invalid", "must be {what} in PEM", {"what": what})
    return text


def _plain(text: str) -> str:
    if not _NAMED.fullmatch(text):
        raise PydanticCustomError("invalid", "must be letters, digits, and . _ : - between them")
    return text


Platforms = Annotated[list[Platform], Field(min_length=1, max_length=3), AfterValidator(_each_once)]
Name = Annotated[str, Field(min_length=1, max_length=100)]
Plain = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(_plain)]


class ServiceAccount(ApiModel):
    """The service account of a Firebase project: the file as Google gives it; what is not named here is not kept."""

    project_id: Annotated[Plain, Field(alias="project_id")]
    client_email: Annotated[Email, Field(alias="client_email")]
    private_key_id: Annotated[Plain | None, Field(alias="private_key_id")] = None
    private_key: Annotated[str, Field(alias="private_key", max_length=8_192), AfterValidator(_rsa_key)]


class ApnsKey(ApiModel):
    """A key for Apple's service. `bundleId`: of the app; `development`: it is built for the development service."""

    key_id: Plain
    team_id: Plain
    bundle_id: Plain
    private_key: Annotated[str, Field(max_length=8_192), AfterValidator(_p256_key)]
    development: bool = False


class PushCredentials(ApiModel):
    """What notifications leave with. Of ios, `apns` goes before `serviceAccount`."""

    service_account: ServiceAccount | None = None
    apns: ApnsKey | None = None


class PushAppCreate(ApiModel):
    """An app, and the platforms that it is made for."""

    name: Name
    platforms: Platforms
    credentials: PushCredentials | None = None


class PushAppPatch(PatchModel):
    """Changes of an app. `credentials` are replaced as a whole; null removes them."""

    name: Name = unset()
    platforms: Platforms = unset()
    credentials: PushCredentials | None = None


class PushAppOut(ApiModel):
    """An app. Its credentials are never shown: `hasCredentials` says whether it has some."""

    id: str
    name: str
    platforms: list[Platform]
    has_credentials: bool
    vapid_public_key: Annotated[str, Field(description="The `applicationServerKey` of pages that register browsers.")]
    created_at: Timestamp


class PushAppPage(CountedPage[PushAppOut]):
    """Apps, newest first."""


push_app_view = view_of(PushApp, PushAppOut, has_credentials=lambda app: app.credentials_cipher is not None)
