"""The tests of this folder run with the version of litellm that they claim, and its requirements are met.

`make litellm` runs them with the oldest and the newest supported version, and names it in AUDITOR_TEST_LITELLM.
"""

from __future__ import annotations

import os
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
CLAIMED_VERSION = os.environ.get("AUDITOR_TEST_LITELLM")


def project_requirement() -> Requirement:
    """The range of litellm in pyproject.toml."""
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    return next(requirement for requirement in map(Requirement, dependencies) if requirement.name == "litellm")


def unmet_requirements(package: str) -> dict[str, str]:
    """Requirements of an installed package that the environment does not meet: the installed version by name."""
    installed_versions = {}
    for requirement in map(Requirement, metadata.requires(package) or ()):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            version = metadata.version(requirement.name)
            if not requirement.specifier.contains(version, prereleases=True):
                installed_versions[requirement.name] = version
    return installed_versions


def test_the_imported_litellm_is_the_one_that_is_claimed() -> None:
    import litellm

    version = metadata.version("litellm")
    assert version == (CLAIMED_VERSION or version)
    assert project_requirement().specifier.contains(version)
    # The metadata could be another copy's than the module.
    assert Path(litellm.__file__).is_relative_to(str(metadata.distribution("litellm").locate_file("")))


def test_its_requirements_are_met() -> None:
    assert not unmet_requirements("litellm")


def test_the_oldest_and_the_newest_supported_version_are_tested() -> None:
    makefile = (ROOT / "Makefile").read_text()
    (line,) = [line for line in makefile.splitlines() if line.startswith("LITELLM_VERSIONS :=")]
    oldest, newest = line.partition(":=")[2].split()
    bounds = {specifier.operator: specifier.version for specifier in project_requirement().specifier}
    assert oldest == bounds[">="]
    assert newest.split(".")[:2] == ["1", str(int(bounds["<"].split(".")[1]) - 1)]
