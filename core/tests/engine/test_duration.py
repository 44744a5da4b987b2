"""How seconds are told to people."""

import pytest
from lockgate.engine.inspection.advise import duration


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.00007, "0.07 ms"),
        (0.0012, "1.2 ms"),
        (0.081, "81 ms"),
        (0.0999, "100 ms"),
        (0.47, "470 ms"),
        (0.9999, "1000 ms"),
        (1, "1.00 s"),
        (121, "2.0 min"),
        (7200, "2.0 h"),
    ],
)
def test_a_length_of_time_is_told_without_an_exponent(seconds: float, told: str) -> None:
    assert duration(seconds) == told
