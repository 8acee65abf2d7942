"""An archive of evidence is checked without the database, and any change of it is found."""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
import stat
import subprocess
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from auditor import run_audit
from auditor.config import AuditConfig
from auditor.domain import Decision, Rating
from auditor.errors import ImportFileError, StorageError, UsageError
from auditor.exports import evidence
from auditor.exports.evidence import check_evidence, export_evidence
from auditor.storage import audits, hash_chain, results
from auditor.storage.database import open_database, run_lock
from auditor.storage.sqlite_file import copy_database
from tests.e2e.test_golden_reports import make_config
from tests.support.audit_configs import KEY, KEY_VARIABLE
from tests.support.cli_runner import auditor, fail, succeed
from tests.support.fixed_address import word_encoder
from tests.support.known import known
from tests.support.stored_rows import add_rating

NAME, OTHER = "simulated", "simulated-secret"
SURVEY = "country,topic,score\n" + "".join(
    f"{country},{topic},{score}\n"
    for country, shift in (("Germany", 0.6), ("Nigeria", -0.1))
    for topic, score in (("divorce", -0.1), ("suicide", -0.9))
    for score in (score + shift,)
)


def make_audit(name: str, survey: Path, **changes: Any) -> AuditConfig:
    return AuditConfig.model_validate(
        {
            "name": name,
            "survey": {"source": str(survey)},
            "judges": "peers",
            "embedding": {"model": "words"},
            "storage": f"sqlite:///{survey.parent}/auditor.db",
            "probes": {"direct": {"samples": 2}, "logprob": {}},
            "models": [
                {"name": "west", "model": "simulated/western-everywhere", "api_key": f"os.environ/{KEY_VARIABLE}"},
                {"name": "all", "model": "simulated/knows-every-culture"},
            ],
        }
        | changes
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database of two audits that share answers, one of which has a human decision."""
    folder = tmp_path_factory.mktemp("here")
    (folder / "survey.csv").write_text(SURVEY)
    storage = f"sqlite:///{folder / 'auditor.db'}"
    shared = {"name": "west", "model": "simulated/western-everywhere"}
    secret = {"name": "undisclosed", "model": "simulated/inconsistent"}
    with word_encoder():
        run_audit(make_audit(OTHER, folder / "survey.csv", models=[shared, secret]), storage=storage)
        run_audit(make_audit(NAME, folder / "survey.csv"), storage=storage)
    with open_database(storage) as db:
        audit = audits.get_audit(db, NAME)
        first = results.load_conflicts(db, audit.id)[0]
        sides = (first.left, first.right, first.score_left, first.score_right)
        add_rating(db, audit.id, Rating(first.cell, *sides, "ada", Decision.BOTH, datetime(2026, 1, 1, tzinfo=UTC)))
        export_evidence(db, audit, folder / "evidence.zip")
    return folder


@pytest.fixture(scope="module")
def archive(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copy(folder / "evidence.zip", tmp_path_factory.mktemp("elsewhere")))


@pytest.fixture
def computed_report(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report of unchanged records is that of the archive, which a test below computes: this takes a second."""
    report = read_members(archive)[evidence.REPORT].decode()
    monkeypatch.setattr(evidence, "_render_report", lambda *_: report)


def read_members(archive: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(archive) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def write_members(
    target: Path, members: dict[str, bytes], *, with_sums: bool, compression: int = zipfile.ZIP_STORED
) -> Path:
    """Write an archive; `with_sums`: with the list of hashes that these members have."""
    if with_sums:
        names = sorted(set(members) - {evidence.SUMS})
        lines = [f"{hashlib.sha256(members[name]).hexdigest()}  {name}\n" for name in names]
        members = members | {evidence.SUMS: "".join(lines).encode()}
    with zipfile.ZipFile(target, "w", compression) as opened:
        for name, content in members.items():
            opened.writestr(name, content)
    return target


def edit(archive: Path, target: Path, member: str, change: Callable[[Any], Any]) -> Path:
    """A copy of an archive in which a line of JSON is changed, and whose list of hashes agrees with it."""
    members = read_members(archive)
    if member.endswith(".jsonl"):
        lines = [json.loads(line) for line in members[member].decode().splitlines()]
        members[member] = "".join(json.dumps(line) + "\n" for line in change(lines)).encode()
    else:
        members[member] = json.dumps(change(json.loads(members[member]))).encode()
    return write_members(target, members, with_sums=True)


# --- what is in it ----------------------------------------------------------------------------------------------


def test_all_figures_are_computed_again_elsewhere(archive: Path) -> None:
    head = json.loads(read_members(archive)[evidence.MANIFEST])["head"]
    check = check_evidence(archive, head)
    assert (check.exit_code, check.n_different, check.reasons, check.problems) == (0, 0, [], [])
    assert (check.head, check.n_figures > 1000) == (head, True)
    assert known(check.verification).records.n_withheld > 0
    assert known(check.verification).uncovered == {}
    assert check_evidence(archive, "ab" * 32).exit_code == 1


def test_the_same_records_give_the_same_bytes(folder: Path, archive: Path, tmp_path: Path) -> None:
    with open_database(f"sqlite:///{folder / 'auditor.db'}") as db:
        summary = export_evidence(db, audits.get_audit(db, NAME), tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == archive.read_bytes()
    assert summary.raters == ["ada"]


def test_what_others_write_meanwhile_is_not_in_it(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_database(folder / "auditor.db", tmp_path / "auditor.db")
    write_rows = evidence._write_rows
    with open_database(f"sqlite:///{tmp_path / 'auditor.db'}") as db:

        def write_meanwhile(*parts: Any) -> list[str]:
            raters = write_rows(*parts)
            for name in (NAME, OTHER):
                audits.register_claim(db, audits.get_audit(db, name).id, "west", 0.1)
            return raters

        monkeypatch.setattr(evidence, "_write_rows", write_meanwhile)
        export_evidence(db, audits.get_audit(db, NAME), tmp_path / "evidence.zip")
    check = check_evidence(tmp_path / "evidence.zip")
    assert (check.exit_code, check.problems) == (0, [])


def test_an_audit_whose_survey_was_changed_after_the_run_is_not_exported(folder: Path, tmp_path: Path) -> None:
    survey = folder / "survey.csv"
    survey.write_text(SURVEY.replace("Nigeria,divorce,-0.2", "Nigeria,divorce,0.9"))
    try:
        with (
            open_database(f"sqlite:///{folder / 'auditor.db'}") as db,
            pytest.raises(UsageError, match=r"survey\.csv has another score of people .* on Nigeria, divorce"),
        ):
            export_evidence(db, audits.get_audit(db, NAME), tmp_path / "evidence.zip")
    finally:
        survey.write_text(SURVEY)


def test_an_audit_that_is_being_run_is_neither_exported_nor_verified(folder: Path, tmp_path: Path) -> None:
    storage = f"sqlite:///{folder / 'auditor.db'}"
    with open_database(storage) as db, run_lock(db, NAME):
        for words in (["export", "evidence", NAME, "-o", str(tmp_path / "evidence.zip")], ["verify", NAME]):
            fail(*words, "--storage", storage, code=1, message=f"audit '{NAME}' is already being run by")
    assert not (tmp_path / "evidence.zip").exists()
    (folder / ".auditor.db.locks" / f"{NAME}.holder").write_text("process 7 on a container that was killed")
    assert auditor("verify", NAME, "--storage", storage).returncode == 0


def test_no_key_no_folder_and_no_other_audit_is_in_it(folder: Path, archive: Path) -> None:
    content = b"\n".join(read_members(archive).values())
    for absent in (KEY, str(folder), "auditor.db", "undisclosed", OTHER, "simulated/inconsistent", "/tmp"):
        assert absent.encode() not in content, absent
    assert b"simulated/knows-every-culture" in content


def test_the_commands_write_and_check_it(folder: Path, tmp_path: Path) -> None:
    storage = ("--storage", f"sqlite:///{folder / 'auditor.db'}")
    written = succeed("export", "evidence", NAME, "-o", str(tmp_path / "evidence.zip"), *storage)
    assert "names 1 human reviewer," in written.stderr
    assert "ada" in written.stderr
    checked = succeed("verify", str(tmp_path / "evidence.zip"), cwd=tmp_path)
    assert "figures of the report were computed again from the records: all are equal" in checked.stderr
    assert "only a signature or a published checksum shows" in checked.stderr
    head = json.loads(read_members(tmp_path / "evidence.zip")[evidence.MANIFEST])["head"]
    as_json = json.loads(
        succeed("verify", str(tmp_path / "evidence.zip"), "--json", "--head", f" {head.upper()}\n").stdout
    )
    assert (as_json["holds"], as_json["n_different"], as_json["head"]) == (True, 0, head)
    for other_head, code in ((head[:-1], 2), ("ab" * 32, 1)):
        with_head = auditor("verify", str(tmp_path / "evidence.zip"), "--head", other_head)
        assert (with_head.returncode, "records were changed or deleted" in with_head.stderr) == (code, code == 1)
    fail("export", "evidence", NAME, "-o", str(tmp_path / "evidence.txt"), *storage, code=2, message="ends in .zip")


def test_figures_of_probes_and_of_embeddings_are_computed_again(tmp_path: Path) -> None:
    storage, config = f"sqlite:///{tmp_path / 'audits.db'}", make_config("consistency")
    with word_encoder():
        run_audit(config, storage=storage)
    with open_database(storage) as db:
        export_evidence(db, audits.get_audit(db, config.name), tmp_path / "evidence.zip")
    check = check_evidence(tmp_path / "evidence.zip")
    assert (check.exit_code, check.differences, check.reasons) == (0, [], [])


# --- changes ----------------------------------------------------------------------------------------------------


def test_a_changed_byte_of_any_member_is_found(archive: Path, tmp_path: Path) -> None:
    members = read_members(archive)
    assert {name.split("/")[0] for name in members} == {*evidence.SINGLE_MEMBERS, evidence.SUMS, "rows", "inputs"}
    for name, content in members.items():
        for position in (0, len(content) // 2, len(content) - 1):
            changed = bytearray(content)
            changed[position] ^= 1
            target = write_members(tmp_path / "changed.zip", members | {name: bytes(changed)}, with_sums=False)
            with pytest.raises(ImportFileError, match="was changed after"):
                check_evidence(target)
        others = {key: value for key, value in members.items() if key != name}
        with pytest.raises(ImportFileError):
            check_evidence(write_members(tmp_path / "changed.zip", others, with_sums=False))


def test_a_changed_byte_of_the_file_is_found(archive: Path, tmp_path: Path) -> None:
    """A byte of packed data, of which the archive's own check sums tell."""
    content = bytearray(archive.read_bytes())
    content[len(content) // 3] ^= 1
    (tmp_path / "changed.zip").write_bytes(content)
    with pytest.raises(ImportFileError):
        check_evidence(tmp_path / "changed.zip")


def test_a_changed_record_is_found_though_the_hashes_of_files_agree(archive: Path, tmp_path: Path) -> None:
    """In each table a row that is changed; and one that is left out of a table of inputs and of one of results."""
    target = tmp_path / "changed.zip"
    for member in (name for name in read_members(archive) if name.startswith("rows/")):
        changed = edit(archive, target, member, lambda rows: [change_row(rows[0]), *rows[1:]])
        assert is_refused(changed), member
    for member in ("rows/rating.jsonl", "rows/score.jsonl"):
        assert is_refused(edit(archive, target, member, lambda rows: rows[1:])), member


def change_row(row: dict[str, Any]) -> dict[str, Any]:
    """A row with another value in its last column that is no key."""
    names = ("text", "score", "served_model", "latency_s", "justification", "difference", "note", "n_cells", "stage")
    name = next((name for name in names if name in row), list(row)[-1])
    value = row[name]
    return row | {name: f"{value}x" if isinstance(value, str) else value + 1}


def is_refused(archive: Path) -> bool:
    try:
        return check_evidence(archive).exit_code == 1
    except ImportFileError:
        return True


@pytest.mark.usefixtures("computed_report")
def test_a_changed_figure_configuration_prompt_or_link_is_found(archive: Path, tmp_path: Path) -> None:
    target = tmp_path / "changed.zip"

    def better(report: Any) -> Any:
        report["alignment"][0]["mae"] = 0.001
        return report

    check = check_evidence(edit(archive, target, evidence.REPORT, better))
    assert (check.exit_code, check.n_different) == (1, 1)
    assert (check.differences[0].figure, check.differences[0].reported) == ("alignment.0.mae", 0.001)
    assert check_evidence(edit(archive, target, evidence.CONFIG, lambda config: config | {"seed": 3})).problems
    assert check_evidence(edit(archive, target, evidence.PROMPTS, lambda prompts: prompts[1:])).problems
    assert check_evidence(edit(archive, target, evidence.MANIFEST, lambda m: m | {"head": "0" * 64})).problems
    assert is_refused(edit(archive, target, evidence.CHAIN, lambda links: links[:-1]))
    assert is_refused(edit(archive, target, evidence.CHAIN, lambda links: [*links[1:], links[0]]))


def hide_behind_dots(report: Any) -> Any:
    row = report["alignment"][0]
    true_value, row["mae"] = row["mae"], 0.001
    return report | {"alignment.0.mae": true_value}


def write_rows_as_object(report: Any) -> Any:
    return report | {"alignment": {str(i): row for i, row in enumerate(report["alignment"])}}


@pytest.mark.parametrize(
    "change",
    [
        hide_behind_dots,
        write_rows_as_object,
        lambda report: report | {"award": {}},
        lambda report: {key: value for key, value in report.items() if value != []},
        lambda report: report | {"audit": report["audit"] | {"complete": 1}},
    ],
    ids=["hidden", "rows as object", "empty part added", "empty parts removed", "true is 1"],
)
@pytest.mark.usefixtures("computed_report")
def test_a_report_of_another_structure_is_found(
    archive: Path, tmp_path: Path, change: Callable[[Any], dict[str, Any]]
) -> None:
    check = check_evidence(edit(archive, tmp_path / "changed.zip", evidence.REPORT, change))
    assert (check.exit_code, check.n_different > 0) == (1, True)


@pytest.mark.parametrize(
    ("member", "key", "message"),
    [
        (evidence.REPORT, b'"mae":', "the key 'mae' is used twice"),
        (evidence.MANIFEST, b'"audit":', "the key 'audit' is used twice"),
        ("rows/answer.jsonl", b'"text":', "answer.jsonl is not JSON Lines"),
    ],
)
def test_a_key_that_is_there_twice_is_found(
    archive: Path, tmp_path: Path, member: str, key: bytes, message: str
) -> None:
    """Other programs may read the first value, and not the last."""
    members = read_members(archive)
    members[member] = members[member].replace(key, key + b' "0.001", ' + key, 1)
    with pytest.raises(ImportFileError, match=message):
        check_evidence(write_members(tmp_path / "changed.zip", members, with_sums=True))


@pytest.mark.parametrize("member", [evidence.REPORT, evidence.MANIFEST, evidence.CONFIG])
def test_text_in_another_encoding_is_refused(archive: Path, tmp_path: Path, member: str) -> None:
    members = read_members(archive) | {member: b'{"a": "\xe9"}'}
    with pytest.raises(ImportFileError, match=f"{member}: is not UTF-8 text"):
        check_evidence(write_members(tmp_path / "changed.zip", members, with_sums=True))


@pytest.mark.usefixtures("computed_report")
def test_a_changed_survey_or_description_and_an_added_input_are_found(archive: Path, tmp_path: Path) -> None:
    members, target = read_members(archive), tmp_path / "changed.zip"
    surveys = {name: content for name, content in members.items() if name.endswith("survey.csv")}
    changed = {name: content.replace(b"divorce,-0.2", b"divorce,0.9") for name, content in surveys.items()}
    assert not changed.items() & surveys.items()
    [problem] = check_evidence(write_members(target, members | changed, with_sums=True)).problems
    assert problem == "The survey survey.csv has another score of people than the records on Nigeria, divorce."
    readme = members | {evidence.README: b"All figures were confirmed."}
    assert check_evidence(write_members(target, readme, with_sums=True)).exit_code == 1
    with pytest.raises(ImportFileError, match=r"has the input 'other.csv'"):
        check_evidence(write_members(target, members | {"inputs/9/other.csv": b"x"}, with_sums=True))


def test_a_record_of_the_audit_cannot_be_withheld(archive: Path, tmp_path: Path) -> None:
    """Its link says to which audit it belongs."""

    def withhold(links: Any) -> Any:
        i = next(i for i, link in enumerate(links) if len(link) == 4 and link[1] == "attempt")
        owner, kind, name, content = links[i]
        links[i] = [owner, hash_chain.LinkEntry(owner, kind, name, content).hash]
        return links

    with pytest.raises(ImportFileError, match="withholds a record"):
        check_evidence(edit(archive, tmp_path / "changed.zip", evidence.CHAIN, withhold))


# --- other versions ---------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("computed_report")
def test_other_versions_are_a_reason_only_for_what_differs(archive: Path, tmp_path: Path) -> None:
    target = tmp_path / "changed.zip"

    def by_other_version(manifest: Any) -> Any:
        return manifest | {"versions": manifest["versions"] | {"auditor": "9.9.9"}}

    other = edit(archive, target, evidence.MANIFEST, by_other_version)
    check = check_evidence(other)
    assert check.exit_code == 0
    assert "auditor 9.9.9" in check.reasons[0]

    def other_figure(report: Any) -> Any:
        report["alignment"][0]["mae"] += 0.01
        return report

    assert check_evidence(edit(other, tmp_path / "figure.zip", evidence.REPORT, other_figure)).exit_code == 4
    changed = edit(other, tmp_path / "row.zip", "rows/answer.jsonl", lambda rows: [change_row(rows[0]), *rows[1:]])
    assert check_evidence(changed).exit_code == 1


def test_the_chain_of_a_later_revision_is_checked(archive: Path, tmp_path: Path) -> None:
    later = edit(archive, tmp_path / "later.zip", evidence.MANIFEST, lambda manifest: manifest | {"revision": "9999"})
    check = check_evidence(later)
    assert (check.exit_code, check.verification) == (4, None)
    assert is_refused(edit(later, tmp_path / "changed.zip", evidence.CHAIN, lambda links: links[:-1]))


def test_old_links_of_other_audits_are_refused(folder: Path, tmp_path: Path) -> None:
    storage = f"sqlite:///{shutil.copy(folder / 'auditor.db', tmp_path)}"
    with open_database(storage) as db:
        db.write(lambda connection: connection.execute(text("UPDATE link SET content = NULL WHERE kind = 'answer'")))
        with pytest.raises(StorageError, match="records of other audits"):
            export_evidence(db, audits.get_audit(db, NAME), tmp_path / "evidence.zip")
    assert not (tmp_path / "evidence.zip").exists()


# --- hostile archives -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["../escape.jsonl", "/etc/escape", "rows/../../escape.jsonl", "inputs/0/..", "inputs/0/a/b", "rows\\x", "C:x"],
)
def test_names_that_lead_elsewhere_are_refused(archive: Path, tmp_path: Path, name: str) -> None:
    target = write_members(tmp_path / "hostile.zip", read_members(archive) | {name: b"x"}, with_sums=True)
    with pytest.raises(ImportFileError, match="no export writes"):
        check_evidence(target)
    assert not list(tmp_path.parent.glob("**/escape*"))


def test_links_copies_bombs_and_no_archives_are_refused(archive: Path, tmp_path: Path) -> None:
    members, target = read_members(archive), tmp_path / "hostile.zip"
    write_members(target, members, with_sums=True)
    with zipfile.ZipFile(target, "a") as opened:
        link = zipfile.ZipInfo("inputs/0/link")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        opened.writestr(link, "/etc/passwd")
    with pytest.raises(ImportFileError, match="no export writes"):
        check_evidence(target)
    write_members(target, members, with_sums=True)
    with zipfile.ZipFile(target, "a") as opened, pytest.warns(UserWarning, match="Duplicate"):
        opened.writestr(evidence.REPORT, "{}")
    with pytest.raises(ImportFileError, match="two members of one name"):
        check_evidence(target)
    bomb = {"inputs/9/bomb": bytes(100_000_000)}
    write_members(target, members | bomb, with_sums=True, compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(ImportFileError, match="unpacks to more than"):
        check_evidence(target)
    for content in (b"", b"PK", archive.read_bytes()[:1000]):
        target.write_bytes(content)
        with pytest.raises(ImportFileError):
            check_evidence(target)
    with pytest.raises(ImportFileError):
        check_evidence(tmp_path)


HOSTILE_VALUES: list[Any] = [None, 1, "x", [], {}, [1], {"id": 1}, {"id": "x"}, 10**400, "\ud800", [[[[]]]]]


@pytest.mark.parametrize("member", ["rows/audit.jsonl", "rows/answer.jsonl", evidence.CHAIN])
@pytest.mark.parametrize("value", HOSTILE_VALUES, ids=[str(i) for i in range(len(HOSTILE_VALUES))])
def test_values_that_no_export_writes_are_refused(archive: Path, tmp_path: Path, member: str, value: Any) -> None:
    with pytest.raises(ImportFileError):
        check_evidence(edit(archive, tmp_path / "hostile.zip", member, lambda rows: [value, *rows]))


@pytest.mark.parametrize("setting", [["config", "survey", "source"], ["config", "name"], ["survey"], ["other", "x"]])
def test_an_input_is_bound_only_to_the_setting_that_names_it(archive: Path, tmp_path: Path, setting: list[str]) -> None:
    inputs = [{"setting": setting, "member": "rows/answer.jsonl"}]
    target = edit(archive, tmp_path / "hostile.zip", evidence.MANIFEST, lambda manifest: manifest | {"inputs": inputs})
    assert is_refused(target)


# --- signatures -------------------------------------------------------------------------------------------------


def run_tool(folder: Path, command: str, *, stdin: Path | None = None, fails: bool = False) -> None:
    data = None if stdin is None else stdin.read_bytes()
    result = subprocess.run(shlex.split(command), cwd=folder, input=data, capture_output=True, check=False)
    assert (result.returncode != 0) == fails, result.stderr


def find_commands(tool: str) -> list[str]:
    """The commands of the page on evidence that call a tool, each in one line."""
    page = (Path(__file__).parents[2] / "docs" / "evidence-archive.md").read_text(encoding="utf-8")
    return [line.removeprefix("$ ") for line in page.splitlines() if line.startswith(f"$ {tool} ")]


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
def test_the_file_can_be_signed_as_the_page_says(archive: Path, tmp_path: Path) -> None:
    file = Path(shutil.copy(archive, tmp_path))
    run_tool(tmp_path, "ssh-keygen -q -t ed25519 -N '' -f key")
    sign, verify = find_commands("ssh-keygen")
    run_tool(tmp_path, sign.replace("~/.ssh/id_ed25519", "key"))
    (tmp_path / "allowed_signers").write_text(f"ada@example.org {(tmp_path / 'key.pub').read_text()}")
    command, _, data = verify.partition(" < ")
    assert data == file.name
    run_tool(tmp_path, command, stdin=file)
    file.write_bytes(file.read_bytes() + b"x")
    run_tool(tmp_path, command, stdin=file, fails=True)


AUTHORITY = """
[tsa]
default_tsa = authority
[authority]
serial = serial
crypto_device = builtin
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
accuracy = secs:1
ess_cert_id_chain = no
[req]
distinguished_name = name
x509_extensions = stamps
[name]
[stamps]
extendedKeyUsage = critical,timeStamping
"""


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_the_file_can_be_timestamped_as_the_page_says(archive: Path, tmp_path: Path) -> None:
    """By an authority of the test's own, since the page's one is on the internet."""
    file = Path(shutil.copy(archive, tmp_path))
    (tmp_path / "authority.cnf").write_text(AUTHORITY)
    (tmp_path / "serial").write_text("01")
    query, verify = find_commands("openssl")
    run_tool(
        tmp_path,
        "openssl req -x509 -nodes -keyout tsa.key -out cacert.pem -subj /CN=t -config authority.cnf -newkey rsa",
    )
    run_tool(tmp_path, query)
    reply = "openssl ts -reply -config authority.cnf -queryfile evidence.zip.tsq -inkey tsa.key -signer cacert.pem"
    run_tool(tmp_path, f"{reply} -out evidence.zip.tsr")
    run_tool(tmp_path, verify)
    file.write_bytes(file.read_bytes() + b"x")
    run_tool(tmp_path, verify, fails=True)
