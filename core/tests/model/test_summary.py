"""A summary is told from what another program has left at its name."""

from __future__ import annotations

import pytest
from lockgate.errors import LockgateError
from lockgate.model.summary import SUMMARY_TYPE, Summary, decode_summary, encode_summary


@pytest.mark.parametrize("content", [b'{"version":1}', b"{}", b'{"name":"x","committer":"lockgate"}'])
def test_json_that_does_not_say_it_is_a_summary_is_none(content: bytes) -> None:
    with pytest.raises(LockgateError, match="a summary is of type"):
        decode_summary(content, name="/t/_SUCCESS")


def test_a_summary_that_names_no_committer_is_not_taken_for_ours() -> None:
    content = f'{{"name":"{SUMMARY_TYPE}","success":true}}'.encode()
    assert decode_summary(content, name="/t/_SUCCESS").committer == ""


def test_a_summary_of_ours_comes_back_as_it_was() -> None:
    summary = Summary(jobId="j", success=True)
    assert decode_summary(encode_summary(summary), name="/t/_SUCCESS") == summary
