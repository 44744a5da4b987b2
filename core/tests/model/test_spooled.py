from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lockgate.engine.run import sorting
from lockgate.engine.run.sorting import Sorter
from lockgate.engine.run.spool import DiskSpool
from lockgate.errors import LockgateError
from lockgate.model import replaced, spooled
from lockgate.model.hashes import PathHashes, may_hold
from lockgate.model.numbers import Numbers
from lockgate.model.replaced import ReplacedFiles, SetAside, decode_replaced, encode_replaced
from lockgate.model.spooled import Spooled, windows

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(['"],["', "\\", '\\"],[', "]"])
FILES = st.lists(st.builds(SetAside, TEXT, st.integers(-1, 1 << 40), TEXT, TEXT), max_size=12)


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spooled, "CHUNK", 3)
    monkeypatch.setattr(replaced, "CHUNK", 3)
    monkeypatch.setattr(sorting, "RUN", 4)
    monkeypatch.setattr(sorting, "READ_AHEAD", 2)


@given(FILES, FILES, FILES)
def test_a_spooled_sequence_is_the_list_of_its_members(first, second, third) -> None:
    for spools in (list, lambda: DiskSpool(10)):
        one = Spooled[SetAside](spools, SetAside, first)
        two, other = one.plus(second), one.plus(third)
        for found, expected in ((one, first), (two, first + second), (other, first + third)):
            assert list(found) == expected
            assert [found[place] for place in range(-len(expected), len(expected))] == expected * 2
            assert found[1:7:2] == expected[1:7:2]
            assert len(found) == len(expected)
            with pytest.raises(IndexError):
                found[len(expected)]


def test_a_spooled_sequence_decodes_no_more_than_a_chunk_ahead() -> None:
    read: list[int] = []

    class Told(list):  # type: ignore[type-arg]
        def __getitem__(self, number):  # type: ignore[no-untyped-def]
            read.append(number)
            return super().__getitem__(number)

    members = iter(Spooled[SetAside](Told, SetAside, (SetAside(str(n)) for n in range(100))))
    for place, member in enumerate(members):
        assert member.path == str(place)
        assert len(read) <= place // 3 + 1


def test_a_spool_is_written_to_while_members_are_still_made() -> None:
    spool: list[bytes] = []
    made = 0

    def members():  # type: ignore[no-untyped-def]
        nonlocal made
        for number in range(100):
            assert number - len(spool) * 3 <= 3
            made += 1
            yield SetAside(str(number))

    Spooled[SetAside](lambda: spool, SetAside, members())
    assert made == 100


@given(FILES)
def test_what_is_listed_in_any_order_is_sorted_and_nothing_is_lost(files) -> None:
    sorter = Sorter[SetAside](lambda: DiskSpool(10), SetAside, lambda file: file.path)
    for page in windows(files, 2):
        sorter.add(page)
        assert len(sorter._held) < 4
    assert list(sorter.collected(sorter.in_order())) == sorted(files, key=lambda file: file.path)


def _list_of(files) -> ReplacedFiles:  # type: ignore[no-untyped-def]
    return ReplacedFiles('j"files":[]', 0, "p", 'replace,"files":[]', files, "d", ["a", '"files":[]'], 1.5)


@given(FILES)
def test_the_list_of_replaced_files_is_the_same_bytes_however_it_is_written(files) -> None:
    content = encode_replaced(_list_of(Spooled[SetAside](list, SetAside, files)))
    assert content == msgspec.json.encode(_list_of(files))
    found = decode_replaced(content, name="n")
    assert list(found.files) == files
    assert msgspec.structs.replace(found, files=files) == _list_of(files)


@given(FILES)
def test_a_list_that_names_directories_is_of_a_type_that_earlier_versions_refuse(files) -> None:
    listed = msgspec.structs.replace(_list_of(files), directories=("x=1", "y"))
    content = encode_replaced(listed)
    assert msgspec.json.decode(content)["type"] == "lockgate.ReplacedFiles/2"
    found = decode_replaced(content, name="n")
    assert (list(found.files), found.directories) == (files, ("x=1", "y"))
    with pytest.raises(LockgateError, match="another version"):
        decode_replaced(content.replace(b"ReplacedFiles/2", b"ReplacedFiles/1"), name="n")


@given(FILES)
def test_a_list_of_replaced_files_that_others_have_written_is_read(files) -> None:
    spread = msgspec.json.format(msgspec.json.encode(_list_of(files)), indent=2)
    assert list(decode_replaced(spread, name="n").files) == files
    short = msgspec.json.encode(msgspec.to_builtins(_list_of([])) | {"files": [["a"], ["b", 3], ["c", 1, "i"]]})
    assert list(decode_replaced(short, name="n").files) == [SetAside("a"), SetAside("b", 3), SetAside("c", 1, "i")]


FOUR = '[["a",1,"i"],["b",1,"i"],["c",1,"i"],["d",1,2]]'


@pytest.mark.parametrize("files", ["{}", "null", FOUR, '[["a",1,"i"],7]', "7"])
def test_a_list_of_replaced_files_that_is_none_is_refused(files: str) -> None:
    none = msgspec.json.encode(_list_of([]))
    content = none.replace(b'"files":[],"replacing', f'"files":{files},"replacing'.encode())
    with pytest.raises(LockgateError, match="cannot be read"):
        decode_replaced(content, name="n")


@given(st.sets(st.integers(0, 1 << 70)), st.sets(st.integers(0, 1 << 70)))
def test_numbers_are_a_set(first: set[int], second: set[int]) -> None:
    numbers = Numbers(first | second)
    for number in second:
        numbers.discard(number)
    assert all((number in numbers) == (number in first - second) for number in first | second)
    assert bool(numbers) == bool(first - second)


@given(st.lists(TEXT))
def test_a_path_whose_hash_was_gathered_may_be_among_them(paths: list[str]) -> None:
    hashes = PathHashes(paths).in_order()
    assert list(hashes) == sorted(map(hash, paths))
    assert all(may_hold(hashes, path) for path in paths)
