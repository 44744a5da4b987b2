"""Names: a store keeps every one to the byte."""

from __future__ import annotations

from lockgate_testkit.bench import Bench, expect_same
from lockgate_testkit.catalogue import check

NAMES = (
    "plain", "with space", " leading", "trailing ", "two  spaces", "100%", "%41", "%2F", "%25", "a%20b", "p=a%3Ab",
    "a+b", "a b+c", "hash#", "#hash", "ha#sh.parquet", "question?", "que?ry=1&b=2", "semi;colon", "ampers&nd",
    "equals=", "com,ma",
    "quote'", 'double"', "back`tick", "dollar$", "at@", "tilde~", "caret^", "pipe|", "star*", "[brackets]",
    "{braces}", "(parens)", "<angles>", "exclaim!", "-dash", "--", ".dot", "..two", "under_score",
    "ünïcode-☃", "日本語", "🎈",
    "e\u0301-combining", "\u00e9-composed", "n" * 200, "é" * 100,
)  # fmt: skip
"""Among them pairs that are one name to a store that decodes, folds or cuts: `a+b` and `a b`, `%41` and `A`, `e\u0301`
and `\u00e9`. A colon is left out: HDFS refuses it, and Spark escapes it.
So is a dot at the end, which Azure does not keep."""

DECOYS = ("A", "a", "a b", "ha", "que", "semi", "question", "hash", "100", "%", "PLAIN", "n" * 199)
"""What some of the names become where a store decodes or cuts them; here by themselves, with other content."""


@check()
async def files_of_any_name_are_kept_apart(bench: Bench) -> None:
    """Spaces, `%`, `+`, `#`, `?`, `;`, unicode and long names are written, found, listed, renamed and deleted."""
    names = (*NAMES, *DECOYS)
    await bench.make("from", "to")
    for name in names:
        await bench.write(f"from/{name}", f"content of {name}".encode())
    wanted = [f"content of {name}".encode() for name in names]
    found = await bench.store.read_files([f"from/{name}" for name in names], bytes_max=10_000)
    expect_same(found, wanted, "contents")
    expect_same(sorted(each.path for each in await bench.listed("from")), sorted(f"from/{n}" for n in names), "listing")
    expect_same(sorted(each.path for each in await bench.tree("")), sorted(f"from/{n}" for n in names), "tree")
    statuses = await bench.store.stat_files([f"from/{name}" for name in names])
    expect_same([each and each.length for each in statuses], [len(each) for each in wanted], "lengths")
    for name in names:
        await bench.carry(f"from/{name}", f"to/{name}")
    expect_same(await bench.listed("from"), [], "what was left behind by renames")
    expect_same(await bench.store.read_files([f"to/{name}" for name in names], bytes_max=10_000), wanted, "contents")
    for name in names:
        await bench.store.delete_files([f"to/{name}"])
        names_left = {each.path for each in await bench.listed("to")}
        expect_same(f"to/{name}" in names_left, False, f"{name!r} is listed after it was deleted")
    expect_same(await bench.listed("to"), [], "what was left behind by deletions")


@check()
async def directories_of_any_name_are_kept_apart(bench: Bench) -> None:
    """The same for directories: partition values are data and come as they like."""
    names = (*NAMES, *DECOYS)
    await bench.store.make_directories([f"d/{name}/in" for name in names])
    for name in names:
        await bench.write(f"d/{name}/in/file#1?.bin", name.encode())
    paths = sorted(f"d/{name}/in/file#1?.bin" for name in names)
    expect_same(sorted(each.path for each in await bench.tree("d")), paths, "tree")
    for name in names:
        listed = [each.path for each in await bench.listed(f"d/{name}/in")]
        expect_same(listed, [f"d/{name}/in/file#1?.bin"], f"listing of {name!r}")
        expect_same(await bench.read(f"d/{name}/in/file#1?.bin"), name.encode(), f"content in {name!r}")
    doomed = names[::2]
    await bench.store.delete_directories([f"d/{name}" for name in doomed])
    left = sorted(f"d/{name}/in/file#1?.bin" for name in names if name not in doomed)
    expect_same(sorted(each.path for each in await bench.tree("d")), left, "tree after every other was deleted")


@check()
async def data_files_of_any_name_are_written(bench: Bench) -> None:
    """`open_output` takes the same names."""
    names = (*NAMES, *DECOYS)
    await bench.make("d")

    def write(name: str) -> None:
        output = bench.store.open_output(f"d/{name}")
        output.stream.write(name.encode())
        expect_same(output.close().path, f"d/{name}", "path in the status")

    async def racer(store: object, number: int, meeting: object) -> None:
        for name in names[number :: bench.effort.racers]:
            write(name)

    await bench.race(bench.effort.racers, racer)
    found = await bench.store.read_files([f"d/{name}" for name in names], bytes_max=10_000)
    expect_same(found, [name.encode() for name in names], "contents")
