"""The lab's own pieces without a server: rate limit, RPC frames, ordered faults, page tokens, seeded draws."""

from __future__ import annotations

import pytest
from lockgate_lab.azure.namespace import Directory, File, Namespace
from lockgate_lab.fault_kinds import FaultRates
from lockgate_lab.fault_schedule import SeededFaults
from lockgate_lab.hdfs_rpc import FrameCutter, answered_call, request_call
from lockgate_lab.planned_faults import FaultPlan
from lockgate_lab.rate_limit import RateLimit


def test_a_rate_limit_lets_through_what_it_says() -> None:
    now = [0.0]
    limit = RateLimit(10, 2, lambda: now[0])
    assert [limit.admit() == 0 for _ in range(3)] == [True, True, False]
    assert limit.admit() == pytest.approx(0.1)
    let_through = 0
    for _ in range(1000):
        now[0] += 0.01
        let_through += limit.admit() == 0
    assert 99 <= let_through <= 102


def test_a_batch_is_paid_back_to_the_rate_limit() -> None:
    now = [0.0]
    limit = RateLimit(10, 1, lambda: now[0])
    assert limit.admit(50) == 0
    assert limit.admit() == pytest.approx(5.0)


def test_ordered_faults_strike_by_count() -> None:
    plan = FaultPlan()
    plan.order(kind="error-before", operation="Rename*", target="*/part-*", skip=1, times=2)
    asked = [("RenamePath", "data/part-0"), ("RenamePath", "data/x"), ("PutBlob", "data/part-1")]
    asked += [("RenamePath", f"data/part-{number}") for number in (2, 3, 4)]
    assert [plan.take(*request) is not None for request in asked] == [False, False, False, True, True, False]
    assert plan.pending() == 0
    with pytest.raises(ValueError, match="unknown fault kind"):
        plan.order(kind="nonsense")


def frame(header: bytes, request: bytes = b"") -> bytes:
    body = bytes([len(header)]) + header + (bytes([len(request)]) + request if request else b"")
    return len(body).to_bytes(4) + body


RENAME = frame(b"\x08\x02\x10\x00\x18\x06", b"\x0a\x07rename2\x12\x01x\x18\x01")
CONNECTION = frame(b"\x08\x02\x10\x00\x18\x05", b"\x0a\x01x")


@pytest.mark.parametrize("piece_length", [1, 3, 7, 1000])
def test_rpc_frames_are_cut_however_they_arrive(piece_length: int) -> None:
    stream = b"hrpc\x09\x00\x00" + CONNECTION + RENAME + RENAME[:5]
    cutter = FrameCutter(with_preamble=True)
    found = [cut for at in range(0, len(stream), piece_length) for cut in cutter.feed(stream[at : at + piece_length])]
    assert found == [b"hrpc\x09\x00\x00", CONNECTION, RENAME]
    assert cutter.rest() == RENAME[:5]


def test_rpc_calls_are_known_by_id_and_method() -> None:
    assert request_call(RENAME) == (3, "rename2")
    assert request_call(CONNECTION) == (-3, "")
    assert request_call(b"\x00\x00\x00\x01\xff") == (-1, "")
    assert answered_call(frame(b"\x08\x03\x10\x00")) == 3
    assert answered_call(frame(b"\x08\xfd\xff\xff\xff\x0f")) == -3


def test_a_seed_strikes_its_share_and_never_too_often_in_a_row() -> None:
    schedule = SeededFaults(1, FaultRates(reset=0.3), strikes_in_a_row_max=2)
    struck = [bool(schedule.decide("x", "key", number, later_page=False).kind) for number in range(2000)]
    assert 400 < sum(struck) < 700
    assert "TTT" not in "".join("T" if strike else "F" for strike in struck)
    patterns = SeededFaults(1, FaultRates(reset=1.0), only=("Rename*", "Put*"), never=("PutBlock",))
    kinds = [patterns.decide(name, "k", 0, later_page=False).kind for name in ("RenamePath", "PutBlock", "GetBlob")]
    assert kinds == ["reset", "", ""]


def test_a_walk_goes_on_after_any_path() -> None:
    namespace = Namespace("data")
    for path in ("a/b/c", "a/b!", "a/x", "ab", "b/1/2/3", "c"):
        namespace.put_file(tuple(path.split("/")), File(path.rpartition("/")[2], by_dfs=True))
    everything = [path for path, _ in namespace.walk(namespace.root, recursive=True)]
    assert everything == ["a", "a/b", "a/b/c", "a/b!", "a/x", "ab", "b", "b/1", "b/1/2", "b/1/2/3", "c"]
    for place, path in enumerate(everything):
        after = tuple(path.split("/"))
        rest = [found for found, _ in namespace.walk(namespace.root, recursive=True, after=after)]
        assert rest == everything[place + 1 :]
    gone = [found for found, _ in namespace.walk(namespace.root, recursive=True, after=("a", "b", "zz"))]
    assert gone == everything[3:]
    top = namespace.find(("a",))
    assert isinstance(top, Directory)
    assert [path for path, _ in namespace.walk(top, recursive=False, starts="b")] == ["b", "b!"]
