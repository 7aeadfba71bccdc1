"""Ids: a prefix, 8 characters of creation time in milliseconds, 13 random ones, all base 62 in ASCII order (C2.1).

Order by id is order of creation, so a period is a range of ids and a record needs no column for its creation time.
"""

import random
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from recado.domain.core.clock import Clock

ACCOUNT: Final = "acc_"
API_KEY: Final = "key_"
AUDIT: Final = "aud_"
BATCH: Final = "btc_"
COMPANY: Final = "emp_"
CONTACT: Final = "cnt_"
CONTACT_IMPORT: Final = "imp_"
CUSTOMER_EVENT: Final = "cev_"
DEBTOR_GROUP: Final = "grp_"
DELIVERY: Final = "dlv_"
EMAIL_SENDER: Final = "snd_"
EMAIL_SUPPRESSION: Final = "sup_"
EMAIL_TEMPLATE: Final = "etpl_"
EVENT: Final = "evt_"
EXECUTION: Final = "exe_"
FLOW: Final = "flw_"
JOURNEY: Final = "jrn_"
LEDGER_ENTRY: Final = "led_"
LIST: Final = "lst_"
MEDIA: Final = "med_"
MESSAGE: Final = "msg_"
NUMBER: Final = "num_"
ORGANIZATION: Final = "org_"
ORIGIN_LINK: Final = "olk_"
PUSH_APP: Final = "app_"
PUSH_DEVICE: Final = "dev_"
PUSH_DISPATCH: Final = "dsp_"
PUSH_MESSAGE: Final = "psh_"
REQUEST: Final = "req_"
SEGMENT: Final = "seg_"
SESSION: Final = "ses_"
SOCIAL_ACCOUNT: Final = "soc_"
TEMPLATE: Final = "tpl_"
TOP_UP: Final = "top_"
WALLET: Final = "wal_"
WEBHOOK: Final = "wbh_"

BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
BODY_LENGTH: Final = 21

_TIME_LENGTH = 8
_PAIRS = [a + b for a in BASE62 for b in BASE62]
_PAIR_VALUES = {pair: value for value, pair in enumerate(_PAIRS)}
_PAIR = 62**2
_MAX_MS = 62**_TIME_LENGTH - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# The 13 random characters are a head, drawn once in a millisecond, and a tail that grows by a random step with each id.
_HEAD_LENGTH = 9
_HEAD_BITS = 53  # of 62**9: the last heads are left out, so that a carry always has room
_TAIL_BITS = 23  # of the range
_TAIL_RANGE = 62**4  # a number below 2**30 is counted in one step
_STEP_BITS = 20
_DAY_MS = 86_400_000


def base62(value: int, width: int) -> str:
    """`value` in base 62 with `width` characters; digits that do not fit are cut."""
    pairs = []
    for _ in range(width // 2):
        value, pair = divmod(value, _PAIR)
        pairs.append(_PAIRS[pair])
    if width % 2:
        pairs.append(BASE62[value % 62])
    return "".join(reversed(pairs))


class IdSource:
    """Mints ids that strictly increase within this process, also within one millisecond (C2.1).

    While the clock is less than a day behind the last id, ids stay in that one's millisecond; otherwise they follow it.
    """

    __slots__ = (
        "_ahead",
        "_bits",
        "_head",
        "_lead",
        "_moment",
        "_monotonic",
        "_ms",
        "_next_at",
        "_now",
        "_tail",
        "_time_text",
    )

    def __init__(self, clock: Clock, source: random.Random) -> None:
        self._now = clock.now
        self._monotonic = clock.monotonic
        self._bits = source.getrandbits
        self._ahead = False  # of the clock
        self._ms = -1
        self._next_at = 0.0  # when the next millisecond begins, in monotonic seconds
        self._time_text = ""
        self._moment = _EPOCH  # that the text tells
        self._head = 0
        self._lead = ""  # time and head
        self._tail = 0

    def new(self, prefix: str) -> str:
        """A new id with `prefix` (its underscore included), of the clock's present millisecond."""
        at = self._monotonic()  # a tenth of what the present costs
        if at < self._next_at or not self._is_later(at):
            self._tail += self._bits(_STEP_BITS) + 1
            if self._tail >= _TAIL_RANGE:
                self._carry()
        high, low = divmod(self._tail, _PAIR)
        return f"{prefix}{self._lead}{_PAIRS[high]}{_PAIRS[low]}"

    def moment_of(self, made: str) -> datetime:
        """The creation time in an id that was just made; the present while ids run ahead of the clock (C32).

        So nothing is due, early or late by what an id had to say for its order.
        """
        if self._ahead:
            return self._now()
        return self._moment if time_in(made) == self._time_text else created_at(made)

    def continue_after(self, newest: str) -> bool:
        """Let every id be later than this one, which a process before has made (C2.1).

        False, and nothing is changed, when it is a day or more ahead of the clock: ids would stand still for so long.
        """
        ms = (created_at(newest) - _EPOCH) // timedelta(milliseconds=1)
        if ms - (self._now() - _EPOCH) // timedelta(milliseconds=1) >= _DAY_MS:
            return False
        if ms >= self._ms:
            self._enter(ms + 1)
        return True

    def _is_later(self, at: float) -> bool:
        """Whether a further millisecond has begun; `at`: the present, in monotonic seconds."""
        since = self._now() - _EPOCH
        self._next_at = at + 0.001 - since.microseconds % 1000 / 1_000_000
        ms = since.days * 86_400_000 + since.seconds * 1000 + since.microseconds // 1000
        self._ahead = self._ms - _DAY_MS < ms < self._ms
        if self._ahead or ms == self._ms:
            return False
        self._enter(ms)
        return True

    def _enter(self, ms: int) -> None:
        self._ms = ms
        self._time_text = base62(ms, _TIME_LENGTH)
        self._moment = _EPOCH + timedelta(milliseconds=ms)
        self._head = self._bits(_HEAD_BITS)
        self._lead = self._time_text + base62(self._head, _HEAD_LENGTH)
        self._tail = self._bits(_TAIL_BITS)

    def _carry(self) -> None:
        self._head += 1
        self._lead = self._time_text + base62(self._head, _HEAD_LENGTH)
        self._tail = self._bits(_STEP_BITS)


def created_at(record_id: str) -> datetime:
    """The creation time in an id, in UTC with millisecond precision. ValueError for text that is no id."""
    return _instant(time_in(record_id))


class Identified:
    """A record whose id tells when it was made."""

    __slots__ = ()

    id: str

    @property
    def created_at(self) -> datetime:
        return created_at(self.id)


def time_in(record_id: str) -> str:
    """The eight characters of the creation time in an id."""
    return record_id[-BODY_LENGTH : -BODY_LENGTH + _TIME_LENGTH]


def milliseconds_in(record_id: str) -> int:
    """The creation time in an id, in milliseconds since 1970. ValueError for text that is no id."""
    return _milliseconds(time_in(record_id))


@lru_cache(maxsize=8192)
def _instant(text: str) -> datetime:
    return _EPOCH + timedelta(milliseconds=_milliseconds(text))


def _milliseconds(text: str) -> int:
    try:
        high = _PAIR_VALUES[text[0:2]] * _PAIR + _PAIR_VALUES[text[2:4]]
        low = _PAIR_VALUES[text[4:6]] * _PAIR + _PAIR_VALUES[text[6:8]]
    except KeyError:
        raise ValueError("not an id") from None
    return high * _PAIR**2 + low


def lowest_id(prefix: str, at: datetime) -> str:
    """The smallest id whose creation time is not before `at`.

    A record was created in [start, end) exactly when lowest_id(start) <= id < lowest_id(end). Times outside the range
    of ids are moved to its ends.
    """
    ms = -((_EPOCH - at) // timedelta(milliseconds=1))
    return prefix + base62(min(max(ms, 0), _MAX_MS), _TIME_LENGTH) + "0" * (BODY_LENGTH - _TIME_LENGTH)


def is_id(prefix: str, text: str) -> bool:
    """Whether `text` has the form of an id with this prefix (C2.1)."""
    if len(text) != len(prefix) + BODY_LENGTH or not text.startswith(prefix):
        return False
    body = text[len(prefix) :]
    return body.isascii() and body.isalnum()
