"""The session's time zone, and what it shows at any time."""

from __future__ import annotations

import datetime

import pytest
from lockgate.errors import OptionError
from lockgate.spark.session_zone import local_micros, zone_named

SECOND = 1_000_000
HOUR = 3600 * SECOND
YEAR_400 = 146_097 * 86_400 * SECOND


@pytest.mark.parametrize(
    ("name", "micros", "offset_seconds"),
    [
        ("UTC", 0, 0),
        ("Z", 1, 0),
        ("+05:30", 0, 19_800),
        ("GMT-8", 0, -28_800),
        ("UTC+01:00", 0, 3600),
        ("-01:02:03", 0, -3723),
        ("PST", 0, -28_800),
        ("EST", 1_720_000_000 * SECOND, -18_000),
        ("America/New_York", 1_720_000_000 * SECOND, -14_400),
        ("America/New_York", -2_717_650_800 * SECOND - 1, -17_762),
        ("Asia/Kolkata", -(10**16), 21_208),
        ("Europe/Amsterdam", -(10**16), 1050),
        ("America/New_York", -(10**18), -17_762),
    ],
)
def test_the_clock_on_the_wall(name, micros, offset_seconds) -> None:
    assert local_micros(micros, zone_named(name)) == micros + offset_seconds * SECOND


@pytest.mark.parametrize("cycles", [1, 5, 20, 700])
def test_after_four_hundred_years_the_rules_are_the_same(cycles) -> None:
    zone = zone_named("America/New_York")
    summer = int(datetime.datetime(2600, 7, 1, tzinfo=datetime.UTC).timestamp()) * SECOND
    for at in (summer, summer + 182 * 24 * HOUR):
        assert local_micros(at + cycles * YEAR_400, zone) - cycles * YEAR_400 == local_micros(at, zone)


@pytest.mark.parametrize("name", ["Nowhere/Land", "", "Europe", "../etc"])
def test_an_unknown_zone_is_an_error_that_names_the_setting(name) -> None:
    with pytest.raises(OptionError, match="time zone") as caught:
        zone_named(name)
    assert caught.value.where == "spark.sql.session.timeZone"
