"""How large media may be that a message sends, by its channel (C8.2.4)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from recado.domain.channels.policies import NUMBERS_CHANNEL
from recado.domain.channels.social import MEDIA_LIMITS, SOCIAL
from recado.domain.media.media_types import LIMITS

LIMITS_OF: Final[Mapping[str, Mapping[str, int]]] = MappingProxyType({NUMBERS_CHANNEL: LIMITS, SOCIAL: MEDIA_LIMITS})
"""Bytes by kind, of those that the senders of a channel take."""
