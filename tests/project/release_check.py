"""Check the files of a release that `make release` wrote: names, metadata, links of the README, and fresh installs.

Run by `make release-check`, by a Python that has twine, uv and packaging. Arguments are the extras to install, each in
an environment of its own; without any, all but those that need torch, which take more than 1 GB each.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Collection, Iterator, Sequence
from email.message import Message
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"
TOOLS = Path(sys.executable).parent
LARGE_REQUIREMENTS = re.compile(r"(torch|peft)\b|auditor\[")
"""Requirements that are torch, or bring it."""
IMPORT_EXTRA = """
import importlib.util, re, sys
from importlib.metadata import packages_distributions, requires

def normalize(name):
    return re.sub(r"[-_.]+", "-", name).lower()

lines = [line for line in requires("auditor") if f'extra == "{sys.argv[1]}"' in line]
required = {normalize(re.match(r"[\\w.-]+", line)[0]) for line in lines}
for module, distributions in packages_distributions().items():
    is_importable = module.isidentifier() and not module.startswith("_") and importlib.util.find_spec(module)
    if is_importable and required.intersection(map(normalize, distributions)):
        importlib.import_module(module)
"""
"""Program that imports what the requirements of an extra bring."""


class ReleaseError(Exception):
    """The files of a release are not right; the message says how."""


def check_version(version: str, metadata: Message, changelog: str) -> None:
    """Raise ReleaseError if wheel or changelog have another version than the project; a test checks the citation."""
    if metadata["Version"] != version:
        raise ReleaseError(
            f"the wheel has version {metadata['Version']}, pyproject.toml {version}. How to fix: Build it."
        )
    latest = re.search(r"^## \[(.+?)\](.*)$", changelog, flags=re.MULTILINE)
    if latest is None or latest[1] != version or not re.search(r"\d{4}-\d\d-\d\d", latest[2]):
        raise ReleaseError(
            f"the first section of CHANGELOG.md is not that of {version}. How to fix: Write '## [{version}] - DATE'."
        )


def list_broken_links(readme: str, names: Collection[str]) -> list[str]:
    """Links and pictures of a README that name no file among `names`; addresses and places on the page are left out."""
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)|<img [^>]*src=\"([^\"]+)\"", readme)
    return sorted({link or picture for link, picture in targets if ":" not in link + picture} - set(names))


def list_extras(metadata: Message, requested: Sequence[str]) -> Iterator[str]:
    """Yield the extras to install: those requested, or all that do not need torch, directly or by another extra.

    Raises:
        ReleaseError: there is no such extra.
    """
    extras = metadata.get_all("Provides-Extra", [])
    if unknown := sorted(set(requested) - set(extras)):
        raise ReleaseError(f"there is no extra {', '.join(unknown)}. How to fix: Name some of {', '.join(extras)}.")
    requirements = metadata.get_all("Requires-Dist", [])
    for extra in requested or extras:
        lines = [line for line in requirements if f'extra == "{extra}"' in line]
        if not requested and any(LARGE_REQUIREMENTS.match(line) for line in lines):
            print(f"{extra}: not installed, since it needs torch. To install it: make release-check EXTRAS={extra}")
        else:
            yield extra


def check_install(wheel: Path, extra: str, version: str) -> None:
    """Install the wheel with an extra ("" for none) in a new environment, and use it; raises CalledProcessError."""
    with tempfile.TemporaryDirectory(prefix="auditor-release-") as name:
        folder, uv = Path(name), TOOLS / "uv"
        python = folder / "venv" / "bin" / "python"
        run_tool(uv, "venv", "-q", "--python", sys.executable, folder / "venv")
        requirement = f"auditor{f'[{extra}]' if extra else ''} @ {wheel.as_uri()}"
        run_tool(uv, "pip", "install", "-q", "--python", python, "-c", ROOT / "constraints.txt", requirement)
        run_tool(uv, "pip", "check", "-q", "--python", python)
        shown = run_tool(python.with_name("auditor"), "--version", cwd=folder)
        if shown.strip() != version:
            raise ReleaseError(f"auditor --version prints {shown.strip()}, not {version}.")
        if extra:
            run_tool(python, "-c", IMPORT_EXTRA, extra, cwd=folder)
        else:
            run_tool(
                python.with_name("auditor"), "demo", "--storage", "sqlite:///demo.db", "-o", "demo.html", cwd=folder
            )
    print(f"{f'extra {extra}' if extra else 'no extra'}: installed and used")


def run_tool(*command: object, cwd: Path = ROOT) -> str:
    """Run a command and return its standard output; what it printed is shown if it fails."""
    process = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True)
    if process.returncode != 0:
        print(process.stdout, process.stderr, sep="\n", file=sys.stderr)
        process.check_returncode()
    return process.stdout


def main(requested: Sequence[str]) -> int:
    """Check the release and print what was checked; the exit code is 1 if something is not right."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    wheel, source = DIST / f"auditor-{version}-py3-none-any.whl", DIST / f"auditor-{version}.tar.gz"
    try:
        with zipfile.ZipFile(wheel) as archive:
            metadata = Parser().parsestr(archive.read(f"auditor-{version}.dist-info/METADATA").decode())
        with tarfile.open(source) as archive:
            names = {name.partition("/")[2] for name in archive.getnames()}
        check_version(version, metadata, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
        if broken := list_broken_links((ROOT / "README.md").read_text(encoding="utf-8"), names):
            raise ReleaseError(f"README.md names files that {source.name} lacks: {', '.join(broken)}.")
        run_tool(TOOLS / "twine", "check", "--strict", wheel, source)
        print(f"{source.name}, {wheel.name}: version, metadata, links and pictures of README.md are right")
        for extra in ["", *list_extras(metadata, requested)]:
            check_install(wheel, extra, version)
    except (ReleaseError, OSError, subprocess.CalledProcessError) as error:
        print(f"The release is not right: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
