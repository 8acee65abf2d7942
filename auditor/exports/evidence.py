"""An archive with all that an audit's figures are computed from, and the check of such an archive without a database.

The archive is a ZIP file with the same bytes for the same records. It has the audit's rows, the hash chain, the input
files, the prompts and the report as JSON; `SHA256SUMS` lists the hash of each other member.
"""

from __future__ import annotations

import json
import re
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from auditor.atomic_files import hash_file, open_replacement
from auditor.config import load_stored_config
from auditor.config.installed_probes import load_probe
from auditor.errors import AuditorError, ImportFileError, UsageError
from auditor.input_files import parse_json, require_file
from auditor.packed_files import check_archive
from auditor.reports.data.build import build_report
from auditor.reports.data.verification import AuditVerification, verify_audit
from auditor.reports.output import render_report
from auditor.run.fingerprints import describe_environment, load_prompts
from auditor.run.rederivation import Rederivation, derive_again
from auditor.storage import audits, hash_chain
from auditor.storage.audit_archive import KEPT_PATHS, AuditRows, is_withheld, list_kinds, restore_links, restore_rows
from auditor.storage.audits import Audit
from auditor.storage.costs import load_call_keys
from auditor.storage.database import Database, require_not_running
from auditor.storage.derived_rows import find_unknown_values, is_equal_value, open_temporary_database
from auditor.storage.schema import REVISION, has_current_tables
from auditor.surveys import load_survey
from auditor.surveys.description import DESCRIPTION_SUFFIX
from auditor.surveys.distributions import DISTRIBUTIONS_SUFFIX
from auditor.surveys.survey_facts import FACTS_SUFFIX
from auditor.text_safety import truncate_text

FORMAT = "auditor-evidence-1"
MANIFEST, REPORT, CHAIN, CONFIG, PROMPTS, SUMS, README = (
    *("manifest.json", "report.json", "chain.jsonl", "config.json", "prompts.json", "SHA256SUMS", "README.txt"),
)
ROWS_FOLDER, INPUTS_FOLDER = "rows", "inputs"
SINGLE_MEMBERS = (MANIFEST, REPORT, CHAIN, CONFIG, PROMPTS, README)
_MEMBER_NAME = re.compile(r"rows/[a-z_]+\.jsonl|inputs/\d+/[^/\\\x00-\x1f]+")
SIDE_SUFFIXES = (DESCRIPTION_SUFFIX, DISTRIBUTIONS_SUFFIX, FACTS_SUFFIX)
"""Suffixes of files beside a survey that reports read, too."""
EARLIEST_ZIP_DATE = (1980, 1, 1, 0, 0, 0)
COLUMNS_WITH_PATHS = ("config", "survey")
"""Columns of an audit with JSON in which absolute paths of files may be."""
MAX_DIFFERENCES = 20
"""Figures that are listed; all are counted."""
PACKAGES_OF_FIGURES = ("auditor", "numpy", "scipy")
"""Packages whose version can change a figure."""
FigurePath: TypeAlias = tuple[str | int, ...]
"""Keys and indices that lead to a value of the report."""
NOT_FIGURES: tuple[FigurePath, ...] = (("audit", "auditor"),)
"""Values of the report that say by which program it was computed."""
OTHER_HEAD = f"The head of the hash chain is not the one in {MANIFEST}."
README_TEXT = """\
Evidence of an audit by auditor: all records that its report is computed from.

To check it:  auditor verify THIS_FILE.zip
This checks the hash chain, derives all results from the recorded answers, and computes all figures again.

manifest.json   versions, the head of the hash chain, and which input file belongs to which setting
report.json     the report
config.json     the configuration, without folders
prompts.json    the prompts
rows/           the records, by table; empty columns are left out, and bytes are in base64
chain.jsonl     the links of the hash chain; of other audits of the same database, only hashes
inputs/         the survey and other files that the configuration names
SHA256SUMS      SHA-256 of each other file: sha256sum -c SHA256SUMS
"""


class Input(BaseModel):
    """An input file: the setting that names it, as keys and indices that lead to it, and the archive's member."""

    model_config = ConfigDict(extra="forbid", strict=True)
    setting: list[str | int]
    member: str


class Manifest(BaseModel):
    """What an archive says of itself.

    Attributes:
        format: `FORMAT`.
        audit, audit_id: name and id of the audit.
        head: digest of the last link of the hash chain.
        revision: of the tables.
        versions: of auditor and other packages at the export.
        probes: reader versions of probes of other packages.
        inputs: files that the configuration names.
    """

    model_config = ConfigDict(extra="forbid", strict=True)
    format: str
    audit: str
    audit_id: int
    head: str
    revision: str
    versions: dict[str, str]
    probes: dict[str, int]
    inputs: list[Input]


@dataclass(frozen=True, slots=True)
class EvidenceSummary:
    """What an archive has.

    Attributes:
        n_rows: number of rows of the audit.
        n_withheld: number of links of other audits, of which it has only hashes.
        head: digest of the last link.
        raters: names of people whose decisions or labels are inside.
        weights: paths of weights that recorded requests name, so that they are inside.
        derivation: comparison of the results with what was derived from the answers.
    """

    n_rows: int
    n_withheld: int
    head: str
    raters: Sequence[str]
    weights: Sequence[str]
    derivation: Rederivation


# --- export -----------------------------------------------------------------------------------------------------


def export_evidence(db: Database, audit: Audit, path: Path) -> EvidenceSummary:
    """Write the archive of an audit.

    Raises:
        StorageError: links of earlier versions are of other audits' records, or the audit is being run.
        UsageError: the file cannot be written, or the survey's file has changed since the run.
    """
    require_not_running(db, audit.name)
    config = load_stored_config(audit.config)
    hashes = load_call_keys(db, audit.id)
    derivation = derive_again(db, audit, hashes)
    models = {} if config is None else config.models_by_name
    with tempfile.TemporaryDirectory(prefix="auditor-") as name:
        folder = Path(name)
        with db.read() as connection:
            rows = AuditRows(connection, audit, hashes, {model.model for model in models.values()})
            raters = _write_rows(folder, rows)
            n_withheld = _write_lines(folder / CHAIN, rows.iterate_links(), is_counted=is_withheld)
        _write_json(folder / CONFIG, hash_chain.strip_machine("config", audit.config))
        _write_json(folder / PROMPTS, _describe_prompts(audit))
        (folder / README).write_text(README_TEXT, encoding="utf-8")
        manifest = Manifest(
            format=FORMAT,
            audit=audit.name,
            audit_id=audit.id,
            head="",  # follows from the links
            revision=REVISION,
            versions=describe_environment(),
            probes=_list_reader_versions(audit),
            inputs=_copy_inputs(folder, audit),
        )
        with _restore(folder, manifest, str(path)) as (restored, restored_audit, manifest.head):
            for problem in _find_changed_survey(restored, restored_audit, folder):
                raise UsageError(
                    f"the archive would not verify. {problem}",
                    "Put the file back that the audit was run with, or run the audit again: recorded answers stay.",
                )
            (folder / REPORT).write_text(_render_report(restored, audit.name, folder), encoding="utf-8")
        _write_json(folder / MANIFEST, manifest.model_dump())
        members = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
        (folder / SUMS).write_text(_list_sums(folder, members), encoding="utf-8")
        with open_replacement(path) as temporary:
            _write_zip(temporary, folder, [*members, SUMS])
        n_rows = sum(1 for file in (folder / ROWS_FOLDER).iterdir() for _ in file.open("rb"))
    weights = [model.weights for model in models.values() if model.weights and Path(model.weights).is_absolute()]
    return EvidenceSummary(n_rows, n_withheld, manifest.head, raters, weights, derivation)


def _write_rows(folder: Path, rows: AuditRows) -> list[str]:
    """Write the rows of each kind that has some, and return the names of people in them."""
    (folder / ROWS_FOLDER).mkdir()
    raters: set[str] = set()

    def note_raters(kind_rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for row in kind_rows:
            raters.add(row.get("rater", ""))
            yield row

    for kind in list_kinds():
        file = folder / ROWS_FOLDER / f"{kind}.jsonl"
        _write_lines(file, note_raters(rows.iterate(kind)))
        if not file.stat().st_size:
            file.unlink()
    return sorted(raters - {""})


def _write_lines(file: Path, values: Iterable[Any], is_counted: Callable[[Any], bool] = lambda value: False) -> int:
    """Write values as JSON Lines, and return how many of them are counted."""
    n_counted = 0
    with file.open("w", encoding="utf-8", newline="\n") as lines:
        for value in values:
            n_counted += is_counted(value)
            lines.write(json.dumps(value, ensure_ascii=True, sort_keys=isinstance(value, dict)) + "\n")
    return n_counted


def _write_json(file: Path, value: Any) -> None:
    file.write_text(json.dumps(value, indent=2, ensure_ascii=True, sort_keys=True) + "\n", encoding="utf-8")


def _copy_inputs(folder: Path, audit: Audit) -> list[Input]:
    """Copy the files that an audit's configuration and survey name, with those beside a survey that reports read.

    Returns:
        For each named file, the setting, as a path of keys, and the member.
    """
    inputs: list[Input] = []
    for column in COLUMNS_WITH_PATHS:
        text = getattr(audit, column)
        for setting, name in _iterate_paths(json.loads(text) if text else None, (column,)):
            file = Path(name)
            if setting[-1] in KEPT_PATHS or not file.is_file():
                continue
            target = folder / INPUTS_FOLDER / str(len(inputs))
            target.mkdir(parents=True)
            sides = [file.with_name(file.stem + suffix) for suffix in SIDE_SUFFIXES]
            for source in [file, *(side for side in sides if side.is_file())]:
                (target / source.name).write_bytes(source.read_bytes())
            member = (target / file.name).relative_to(folder).as_posix()
            inputs.append(Input(setting=list(setting), member=member))
    return inputs


def _iterate_paths(value: Any, setting: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the absolute paths in nested settings, each after the keys and indices that lead to it."""
    if isinstance(value, dict | list):
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _iterate_paths(child, (*setting, key))
    elif isinstance(value, str) and value.startswith("/"):
        yield setting, value


def _describe_prompts(audit: Audit) -> Any:
    """The prompts of an audit by language and id; an empty object if it has none, or if they cannot be read."""
    try:
        config = load_stored_config(audit.config)
        prompts = [] if config is None else load_prompts(config)
    except AuditorError as error:
        return {"reason": Path(error.message).name}
    return [{"id": prompt.id, "system": prompt.system, "user": prompt.user} for prompt in prompts]


def _list_reader_versions(audit: Audit) -> dict[str, int]:
    """The version of the reader of each probe of another package that is installed, by the probe's name."""
    config = load_stored_config(audit.config)
    names = config.probes.plugins if config is not None else ()
    return {name: load_probe(name).probe.reader_version for name in names}


def _list_sums(folder: Path, members: Sequence[str]) -> str:
    """The content of `SHA256SUMS`, in the format of `sha256sum`."""
    return "".join(f"{hash_file(folder / member)}  {member}\n" for member in members)


def _write_zip(target: Path, folder: Path, members: Sequence[str]) -> None:
    """Write members as a ZIP archive whose bytes depend on their contents only."""
    with zipfile.ZipFile(target, "w") as archive:
        for member in members:
            info = zipfile.ZipInfo(member, EARLIEST_ZIP_DATE)
            info.compress_type, info.create_system = zipfile.ZIP_DEFLATED, 3
            info.external_attr = (stat.S_IFREG | 0o644) << 16
            info.file_size = (folder / member).stat().st_size
            with (folder / member).open("rb") as source, archive.open(info, "w") as packed:
                shutil.copyfileobj(source, packed)


def _render_report(db: Database, name: str, folder: Path) -> str:
    """The report as JSON, without the folder of the unpacked archive."""
    return render_report(build_report(db, name), "json").replace(f"{folder}/", "")


# --- check ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FigureDifference:
    """A figure of the report that is not what the records give.

    Attributes:
        figure: keys and indices that lead to it in the report's JSON, joined by dots.
        reported: its value in the archive's report; None if it is not there.
        computed: its value by the records; None if they give none.
    """

    figure: str
    reported: Any
    computed: Any


@dataclass(frozen=True, slots=True)
class EvidenceCheck:
    """Outcome of `check_evidence`.

    Attributes:
        audit: the audit's name.
        head: digest of the last link of the hash chain.
        problems: what is wrong with the archive, each a sentence.
        reasons: why this installation may compute other figures, such as another version of auditor; sentences.
        is_head_known: whether the digest that was asked for is in the chain.
        verification: of the records; None if this version cannot read them.
        derivation: of the results from the recorded answers; None as `verification`.
        n_figures: number of figures that were compared.
        n_different: number of those that differ.
        differences: the first of them; those that no reason explains come first.
        has_unexplained: whether a figure or a result differs that no reason explains: a probe that is missing explains
            only its own.
    """

    audit: str
    head: str
    problems: Sequence[str]
    reasons: Sequence[str]
    is_head_known: bool
    verification: AuditVerification | None = None
    derivation: Rederivation | None = None
    n_figures: int = 0
    n_different: int = 0
    differences: Sequence[FigureDifference] = ()
    has_unexplained: bool = False

    @property
    def is_damaged(self) -> bool:
        """Whether the archive or its chain was changed, or has not the head that was asked for."""
        has_breaks = self.verification is not None and bool(
            self.verification.records.breaks or self.verification.unknown or self.verification.unfounded
        )
        return bool(self.problems) or has_breaks or not self.is_head_known

    @property
    def has_other_figures(self) -> bool:
        """Whether a result or a figure differs, or could not be computed."""
        if self.verification is None or self.derivation is None:
            return True
        is_derived = self.derivation.is_consistent and not self.derivation.lacks_results
        return bool(self.n_different) or not is_derived or not self.verification.is_consistent

    @property
    def exit_code(self) -> int:
        """0 if every figure is equal; 4 if some are not, or not computed, for one of `reasons`; else 1."""
        if self.is_damaged or self.has_unexplained or (self.has_other_figures and not self.reasons):
            return 1
        return 4 if self.has_other_figures else 0


def check_evidence(path: Path, head: str | None = None) -> EvidenceCheck:
    """Check an archive: its members, its hash chain, the results and all figures of the report.

    Args:
        path: of the archive.
        head: digest that the chain must have; None for any.

    Raises:
        ImportFileError: it is no archive of evidence, or a member was changed.
    """
    with tempfile.TemporaryDirectory(prefix="auditor-") as name:
        folder = Path(name)
        _unpack(path, folder)
        manifest = _read_manifest(folder / MANIFEST, path)
        _require_named_inputs(folder, manifest, path)
        if manifest.revision > REVISION:
            return _check_newer_archive(folder, manifest, path, head)
        with _restore(folder, manifest, str(path)) as (db, audit, chain_head):
            is_known = head is None or hash_chain.contains_head(db, head)
            problems = (
                [] if chain_head == manifest.head else [f"The head of the hash chain is not the one in {MANIFEST}."]
            )
            check = EvidenceCheck(audit.name, manifest.head, problems, _list_reasons(manifest, audit), is_known)
            records = hash_chain.verify_chain(db, has_payloads=False)
            if records.breaks:
                return replace(check, verification=AuditVerification([], 0, records))
            try:
                return _check_results(check, folder, db, audit, records)
            except (LookupError, TypeError, ValueError, AttributeError) as error:  # records that no version writes
                raise _make_error(path, f"has records that auditor has not written ({type(error).__name__})") from error


def _check_newer_archive(folder: Path, manifest: Manifest, path: Path, head: str | None) -> EvidenceCheck:
    """Check the digests of an archive whose tables this version does not know."""
    with open_temporary_database() as db:
        chain_head = restore_links(db, manifest.audit_id, _read_lines(folder / CHAIN, path), str(path))
        is_known = head is None or hash_chain.contains_head(db, head)
    problems = [] if chain_head == manifest.head else [OTHER_HEAD]
    return EvidenceCheck(manifest.audit, chain_head, problems, _list_reasons(manifest, None), is_known)


def _check_results(
    check: EvidenceCheck, folder: Path, db: Database, audit: Audit, records: hash_chain.ChainCheck
) -> EvidenceCheck:
    """Derive the results again, and compare configuration, prompts and figures with those in the archive."""
    problems, reasons = list(check.problems), list(check.reasons)
    if _read_json(folder / CONFIG) != hash_chain.strip_machine("config", audit.config):
        problems.append(f"{CONFIG} is not the configuration of the recorded audit.")
    if _read_json(folder / PROMPTS) != _describe_prompts(audit):
        (reasons if reasons else problems).append(f"{PROMPTS} does not have the prompts of this installation.")
    unknown = find_unknown_values(db, audit.id)
    verification = verify_audit(db, audit.name, records, unknown)
    derivation = derive_again(db, audit, unknown=unknown)
    if derivation.is_hindered:
        reasons.append(f"Results cannot be derived: {derivation.reason}")
    if (folder / README).read_text(encoding="utf-8", errors="replace") != README_TEXT:
        (reasons if reasons else problems).append(f"{README} is not the one that this installation writes.")
    (reasons if reasons else problems).extend(_find_changed_survey(db, audit, folder))
    reported = dict(_iterate_figures(_read_json(folder / REPORT)))
    computed: dict[FigurePath, Any] = {}
    try:
        computed = dict(_iterate_figures(json.loads(_render_report(db, audit.name, folder))))
    except AuditorError as error:
        reasons.append(f"The report cannot be computed: {error.message}")
    paths = [path for path in dict.fromkeys([*reported, *computed]) if path not in NOT_FIGURES]
    different = [
        FigureDifference(".".join(map(str, path)), reported.get(path), computed.get(path))
        for path in paths
        if path not in reported or path not in computed or not _is_equal_figure(reported[path], computed[path])
    ]
    missing = derivation.missing_probes
    unexplained: list[FigureDifference] = []
    if len(reasons) == len(missing):  # there is no other reason
        explained = ("coverage.", *(f"probes.{probe}." for probe in missing))
        unexplained = [difference for difference in different if not difference.figure.startswith(explained)]
        different.sort(key=lambda difference: difference not in unexplained)
    return replace(
        check,
        problems=problems,
        reasons=reasons,
        verification=verification,
        derivation=derivation,
        n_figures=len(paths),
        n_different=len(different),
        differences=different[:MAX_DIFFERENCES],
        has_unexplained=bool(unexplained) or (len(reasons) == len(missing) and not derivation.is_consistent),
    )


def _list_reasons(manifest: Manifest, audit: Audit | None) -> list[str]:
    """Sentences on what this installation has that may give other figures than the one that wrote the archive."""
    reasons, present = [], describe_environment()
    for package in PACKAGES_OF_FIGURES:
        if manifest.versions.get(package) != present.get(package):
            earlier, now = manifest.versions.get(package, "none"), present.get(package, "none")
            reasons.append(f"The archive was written with {package} {earlier}; {now} is installed here.")
    if not has_current_tables(manifest.revision):
        reasons.append(f"Its tables have revision {manifest.revision}; this version of auditor has {REVISION}.")
    config = None if audit is None else load_stored_config(audit.config)
    if audit is not None and config is not None:
        reasons += config.probes.missing.values()
        for name, version in _list_reader_versions(audit).items():
            if manifest.probes.get(name, version) != version:
                reasons.append(f"The probe {name} had reader version {manifest.probes[name]}; here it has {version}.")
    return reasons


def _iterate_figures(value: Any, path: FigurePath = ()) -> Iterator[tuple[FigurePath, Any]]:
    """Yield all values of a JSON document that contain no others, after the keys and indices that lead to them."""
    if isinstance(value, dict | list) and value:
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _iterate_figures(child, (*path, key))
    else:
        yield path, value


def _is_equal_figure(reported: Any, computed: Any) -> bool:
    """Whether two values are equal, numbers within the tolerance; true is not 1."""
    return isinstance(reported, bool) is isinstance(computed, bool) and is_equal_value(reported, computed)


def _find_changed_survey(db: Database, audit: Audit, folder: Path) -> list[str]:
    """Say which score of people is another one in the survey's file than in the records; empty if there is none."""
    config, survey = load_stored_config(audit.config), audits.load_audit_survey(db, audit)
    file = Path(survey.file if config is None or config.survey is None else config.survey.source)
    if survey.task is not None or not file.is_relative_to(folder):
        return []
    try:
        scores = load_survey(str(file)).scores
    except AuditorError as error:
        return [f"The survey {file.name} cannot be read: {error.message.replace(f'{folder}/', '')}"]
    for cell in survey.cells:
        if cell.score is not None and not is_equal_value(scores.get(cell.cell), cell.score):
            return [f"The survey {file.name} has another score of people than the records on {', '.join(cell.cell)}."]
    return []


# --- reading an archive -----------------------------------------------------------------------------------------


def _unpack(path: Path, folder: Path) -> None:
    """Unpack an archive whose members all are as they were written. Raises ImportFileError."""
    require_file(path, ImportFileError)
    check_archive(path, ImportFileError, "archive of evidence", lambda name: name.endswith(".jsonl") or "/" in name)
    try:
        with zipfile.ZipFile(path) as archive:
            members = [_check_member(path, member) for member in archive.infolist()]
            if len(set(members)) < len(members):
                raise _make_error(path, "has two members of one name")
            if missing := {*SINGLE_MEMBERS, SUMS} - set(members):
                raise _make_error(path, f"has no member {min(missing)}, so it is no archive of evidence")
            for member in members:
                target = folder / member
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as packed, target.open("wb") as file:
                    shutil.copyfileobj(packed, file)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        raise _make_error(path, f"cannot be unpacked: {str(error).rstrip('.')}") from None
    listed, expected = (folder / SUMS).read_bytes(), _list_sums(folder, sorted(set(members) - {SUMS})).encode()
    if listed != expected:
        lines = set(listed.decode("utf-8", "replace").split("\n"))
        changed = [line.partition("  ")[2] for line in expected.decode().splitlines() if line not in lines]
        raise _make_error(path, f"{', '.join(changed[:5]) or SUMS} was changed after the archive was written")


def _check_member(path: Path, member: zipfile.ZipInfo) -> str:
    """The name of a member that an archive of evidence may have. Raises ImportFileError."""
    name, mode = member.filename, member.external_attr >> 16
    is_known = name in (*SINGLE_MEMBERS, SUMS) or (
        _MEMBER_NAME.fullmatch(name) is not None and name.rpartition("/")[2] not in (".", "..")
    )
    if not is_known or (stat.S_IFMT(mode) not in (0, stat.S_IFREG)):
        raise _make_error(path, f"has a member that no export writes: {truncate_text(name)!r}")
    return name


def _read_manifest(file: Path, path: Path) -> Manifest:
    """Read what an archive says of itself. Raises ImportFileError."""
    _read_json(file)
    try:
        manifest = Manifest.model_validate_json(file.read_bytes())
    except ValidationError:
        raise _make_error(path, f"{MANIFEST} is not that of an archive of evidence") from None
    if manifest.format != FORMAT:
        raise _make_error(path, f"has the unknown format {truncate_text(manifest.format)!r}")
    return manifest


def _require_named_inputs(folder: Path, manifest: Manifest, path: Path) -> None:
    """Raise ImportFileError if there is an input that no setting names, and that is not beside one that is named."""
    named = [folder / entry.member for entry in manifest.inputs]
    known = {*named, *(file.with_name(file.stem + suffix) for file in named for suffix in SIDE_SUFFIXES)}
    if other := sorted(set((folder / INPUTS_FOLDER).glob("*/*")) - known):
        raise _make_error(path, f"has the input {other[0].name!r}, which {MANIFEST} does not name")


def _read_json(file: Path) -> Any:
    """The value of a member in JSON. Raises ImportFileError, also for a key that an object has twice."""
    try:
        return parse_json(file.read_text(encoding="utf-8"), file.name, ImportFileError)
    except ImportFileError as error:
        raise ImportFileError(error.message, "Ask for the original file.") from None
    except UnicodeDecodeError:
        raise _make_error(file.name, "is not UTF-8 text") from None


def _read_lines(file: Path, source: Path | str) -> Iterator[Any]:
    """Yield the values of a member in JSON Lines. Raises ImportFileError."""
    with file.open(encoding="utf-8") as lines:
        try:
            for line in lines:
                yield json.loads(line, parse_constant=_refuse_constant, object_pairs_hook=_refuse_repeated_keys)
        except (ValueError, RecursionError):
            raise _make_error(source, f"{file.name} is not JSON Lines") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object; raise ValueError for a key that is there twice, of which programs read one or the other."""
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError(pairs)
    return value


@contextmanager
def _restore(folder: Path, manifest: Manifest, source: str) -> Iterator[tuple[Database, Audit, str]]:
    """Yield a temporary database with the rows and links of an unpacked archive, its audit, and the chain's head.

    Raises:
        ImportFileError: the archive has other rows than an export writes.
    """
    with open_temporary_database() as db:
        files = {file.stem: file for file in (folder / ROWS_FOLDER).glob("*.jsonl")}
        if unknown := set(files) - set(list_kinds()):
            raise _make_error(source, f"has rows of the unknown table {min(unknown)}")
        for kind in list_kinds():
            if kind in files:
                rows = _read_lines(files[kind], source)
                is_audit = kind == "audit"
                restore_rows(db, kind, _bind_inputs(rows, folder, manifest, source) if is_audit else rows, source)
        head = restore_links(db, manifest.audit_id, _read_lines(folder / CHAIN, source), source)
        audit = audits.find_audit(db, manifest.audit)
        if audit is None or audit.id != manifest.audit_id:
            raise _make_error(source, f"has no records of the audit {truncate_text(manifest.audit)!r}")
        yield db, audit, head


def _bind_inputs(rows: Iterable[Any], folder: Path, manifest: Manifest, source: str) -> Iterator[Any]:
    """Yield the row of the audit with the unpacked files in place of the names that its settings give."""
    for row in rows:
        for column in COLUMNS_WITH_PATHS:
            if not isinstance(row, dict) or not isinstance(row.get(column), str):
                continue
            try:
                settings = hash_chain.strip_folders(json.loads(row[column]), KEPT_PATHS)
                for entry in manifest.inputs:
                    if entry.setting[0] == column:
                        _bind_input(settings, entry, folder)
            except (LookupError, TypeError, ValueError):
                raise _make_error(source, f"{MANIFEST} names a file that its settings do not") from None
            row = row | {column: json.dumps(settings, ensure_ascii=False)}
        yield row


def _bind_input(settings: Any, entry: Input, folder: Path) -> None:
    """Replace the name that a setting gives by the path of the unpacked file; changes `settings`."""
    *keys, last = entry.setting[1:]
    for key in keys:
        settings = settings[key]
    file = folder / entry.member
    if settings[last] != file.name or _MEMBER_NAME.fullmatch(entry.member) is None or not file.is_file():
        raise ValueError(entry.member)
    settings[last] = str(file)


def _make_error(source: Path | str, problem: str) -> ImportFileError:
    return ImportFileError(f"{source}: {problem}.", "Ask for the original file.")
