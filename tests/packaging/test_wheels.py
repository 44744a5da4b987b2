"""Every distribution builds, says what it is, and is bound to the versions that it works with."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from built_wheel import build_wheel, metadata_of, names_in
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECTS = [
    path.parent
    for pattern in ("core/pyproject.toml", "plugins/*/pyproject.toml", "contrib/*/pyproject.toml")
    for path in sorted(ROOT.glob(pattern))
]
STATED = {path: tomllib.loads((path / "pyproject.toml").read_text())["project"] for path in PROJECTS}
VERSIONS = {stated["name"]: Version(stated["version"]) for stated in STATED.values()}

each_project = pytest.mark.parametrize("project", PROJECTS, ids=lambda path: path.name)


def test_every_distribution_of_the_repository_is_looked_at() -> None:
    assert len(PROJECTS) == len(list(ROOT.glob("**/src/*/py.typed")))


@each_project
def test_a_wheel_says_what_it_is_and_whose(project: Path, tmp_path: Path) -> None:
    wheel = build_wheel(project, tmp_path)
    told = metadata_of(wheel)
    assert told["Name"] == STATED[project]["name"]
    assert told["Author"]
    assert told["License-Expression"] == "Apache-2.0"
    assert told["Requires-Python"]
    links = dict(str(link).split(", ") for link in told.get_all("Project-URL", []))
    assert set(links) >= {"Homepage", "Documentation", "Changes"}
    assert all(link.startswith("https://") for link in links.values())
    assert told["Description-Content-Type"] == "text/markdown"
    description = str(told.get_payload())
    assert description.startswith(f"# {told['Name']}")
    assert len(description) > 400
    # On an index's page a link to a file beside it leads nowhere.
    assert re.findall(r"\]\((?!https?://|#)[^)]*\)", description) == []
    files = names_in(wheel)
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in files)
    assert any(name.endswith("/py.typed") for name in files)
    assert [name for name in files if "/test_" in name or "/tests/" in name] == []


@each_project
def test_a_distribution_is_bound_to_the_others_on_both_sides(project: Path, tmp_path: Path) -> None:
    needed = [Requirement(text) for text in metadata_of(build_wheel(project, tmp_path)).get_all("Requires-Dist", [])]
    of_ours = [each for each in needed if each.name in VERSIONS and each.name != STATED[project]["name"]]
    for each in of_ours:
        operators = {bound.operator for bound in each.specifier}
        assert operators >= {">=", "<"}, f"{each} has no bounds"
        assert each.specifier.contains(VERSIONS[each.name]), f"{each} leaves out version {VERSIONS[each.name]}"
        version = VERSIONS[each.name]
        assert not each.specifier.contains(f"{version.major}.{version.minor + 1}.0"), f"{each} takes the next minor"
    if project.parent.name == "plugins":
        assert "lockgate" in [each.name for each in of_ours]
    if project.name == "core":
        stores = {path.name for path in PROJECTS if path.parent.name == "plugins"}
        assert {each.name for each in of_ours} >= stores, "a store without an extra"
