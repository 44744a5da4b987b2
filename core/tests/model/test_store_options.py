"""Values of `store.NAME` options, as every store's plugin reads them."""

from __future__ import annotations

import pytest
from lockgate.model.errors import OptionError
from lockgate.model.store_options import bytes_of, number_of, switch_of


@pytest.mark.parametrize(("text", "meant"), [("TRUE", True), ("on", True), ("t", True), ("0", False), (" no ", False)])
def test_a_switch_takes_the_words_that_job_options_take(text: str, *, meant: bool) -> None:
    assert switch_of("tls", text) is meant


@pytest.mark.parametrize("text", ["", "ture", "2", "none", "\u0442rue"])
def test_a_misspelt_switch_is_refused(text: str) -> None:
    """Taken for false it might send a token in plain text."""
    with pytest.raises(OptionError, match=r"store\.tls cannot be"):
        switch_of("tls", text)


@pytest.mark.parametrize(("text", "meant"), [("65536", 1 << 16), ("64K", 1 << 16), ("8m", 8 << 20), ("1G", 1 << 30)])
def test_sizes_are_bytes_or_have_a_unit(text: str, meant: int) -> None:
    assert bytes_of("part_bytes", text, least=1, most=1 << 30) == meant


@pytest.mark.parametrize("text", ["", "M", "8 M", "-1", "1.5M", "8MB", "\u00b2", "\u0663", "2G", "9" * 5_000])
def test_a_size_that_is_none_is_refused(text: str) -> None:
    """Superscripts count as digits for `str.isdigit`, and Python reads no number of thousands of digits."""
    with pytest.raises(OptionError, match=r"store\.part_bytes cannot be"):
        bytes_of("part_bytes", text, least=1, most=1 << 30)
    if text != "2G":
        with pytest.raises(OptionError, match=r"store\.threads cannot be"):
            number_of("threads", text, least=1, most=64)
