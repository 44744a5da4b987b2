"""The session's time zone, by any name that Spark takes, as Python's `tzinfo`, and what it adds to a point in time.

Sources: Spark's `DateTimeUtils.getZoneId`, and Java's `ZoneId.of` and `ZoneId.SHORT_IDS`.
"""

from __future__ import annotations

import datetime
import functools
import importlib.resources
import re
import zoneinfo

from lockgate.model.errors import OptionError

_SHORT_NAMES = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "EST": "-05:00",
    "HST": "-10:00",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "MST": "-07:00",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_SECOND = 1_000_000
_CYCLE_MICROS = 146_097 * 86_400 * _SECOND
"""400 years: after so long the calendar, and every rule of daylight saving time, repeats itself."""
_YEAR_1 = -62_135_596_800 * _SECOND
_YEAR_9000 = 221_845_305_600 * _SECOND


def zone_named(name: str) -> datetime.tzinfo:
    """The zone of this name: a region, an offset such as `+05:30` or `GMT-8`, or one of Java's short names.

    Raises:
        OptionError: there is none of this name here.
    """
    name = _SHORT_NAMES.get(name, name)
    if name in ("Z", "UT"):
        return datetime.UTC
    match = _OFFSET.fullmatch(name)
    if match:
        sign, hours, minutes, seconds = match.groups(default="0")
        offset = datetime.timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds))
        return datetime.timezone(-offset if sign == "-" else offset)
    try:
        return _region(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise OptionError(
            f"Python has no time zone {name!r}",
            where="spark.sql.session.timeZone",
            next_step="name a region such as Asia/Kolkata; if it is one, pip install tzdata on the executors",
        ) from None


@functools.cache
def _region(name: str) -> zoneinfo.ZoneInfo:
    """A region by the table of the package `tzdata`, where it is installed, and not by the system's: like Java's it is
    built without `backzone`, while Debian's, with it, has another local mean time for Amsterdam or Oslo."""
    try:
        package = importlib.resources.files("tzdata.zoneinfo")
    except ModuleNotFoundError:
        return zoneinfo.ZoneInfo(name)
    with package.joinpath(name).open("rb") as file:
        return zoneinfo.ZoneInfo.from_file(file, key=name)


def local_micros(micros: int, zone: datetime.tzinfo) -> int:
    """What the clock on the wall shows at a point in time, of any year, as microseconds from its 1970-01-01 00:00."""
    asked = max(micros, _YEAR_1 + 86_400 * _SECOND)
    if asked > _YEAR_9000:
        asked -= ((asked - _YEAR_9000) // _CYCLE_MICROS + 1) * _CYCLE_MICROS
    offset = (_EPOCH + datetime.timedelta(microseconds=asked)).astimezone(zone).utcoffset()
    assert offset is not None
    return micros + offset // datetime.timedelta(microseconds=1)
