"""The lock files: all that is installed is named in them, with a version and hashes."""

import json
import re
import subprocess
import sysconfig
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path

import audit
import lock
import locks
import pytest
from locks import Pin, chosen, linux, lock_files, read
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from programs import needs

WANTED = lock.wanted()
HASHED = "--require-hashes --only-binary :all:"
PYTHONS = ("3.11", "3.12", "3.13")

ROOT = Path(__file__).parents[3]

#: Of this environment, by name.
INSTALLED = {
    canonicalize_name(each.name): each
    # Of this environment alone: Ray, once it is imported, has others in folders of its own.
    for each in distributions(path=[sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
}


def test_there_is_a_file_for_each_list_of_requirements_and_no_other() -> None:
    assert lock_files() == sorted(WANTED)


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("name", WANTED)
def test_each_requirement_is_met_by_one_version(name: str, python: str) -> None:
    """Those of packages, too, where their metadata is at hand: so nothing else is looked for."""
    pins = chosen(read(name), linux(python))
    unmet = [
        str(requirement)
        for requirement in _with_what_they_need(map(Requirement, WANTED[name]), python)
        if not _meets(pins.get(canonicalize_name(requirement.name)), requirement)
    ]
    assert not unmet


@pytest.mark.parametrize("name", WANTED)
def test_a_file_says_nothing_of_where_packages_come_from(name: str) -> None:
    pins = read(name)  # it refuses any other line, such as --index-url
    assert all(len(digest) == 64 for pin in pins for digest in pin.sha256)
    assert "://" not in (locks.FOLDER / name).read_text()


@pytest.mark.parametrize(
    "name", sorted(set(WANTED) - {"test.txt", "fuzz.txt", "pip.txt", "build.txt"})
)
def test_what_is_run_has_the_versions_that_are_tested(name: str) -> None:
    tested = set(read("test.txt"))
    # What TensorFlow's kinds for a processor alone and for GPUs bring.
    others = {"tensorflow-cpu", "box2d"}
    assert {
        pin.name
        for pin in set(read(name)) - tested
        if pin.name not in others and not pin.name.startswith("nvidia-")
    } == set()


def test_the_packages_of_npm_have_hashes_and_no_registry() -> None:
    folder = ROOT / "examples" / "browser"
    locked = json.loads((folder / "package-lock.json").read_text())["packages"]
    wanted = json.loads((folder / "package.json").read_text())["dependencies"]
    assert locked.pop("")["dependencies"] == wanted
    assert all(locked[f"node_modules/{name}"]["version"] == wanted[name] for name in wanted)
    assert all(package["integrity"].startswith("sha512-") for package in locked.values())
    assert not any("resolved" in package for package in locked.values())


def test_a_pin_without_a_hash_and_a_range_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "FOLDER", tmp_path)
    for line in ("numpy==2.4.6", f"numpy>=2 --hash=sha256:{'0' * 64}"):
        (tmp_path / "one.txt").write_text(line)
        with pytest.raises(ValueError, match="names no version, or no hash"):
            read.__wrapped__("one.txt")


def test_make_installs_what_the_lock_files_name_and_nothing_else(tmp_path: Path) -> None:
    told = subprocess.run(
        ["make", "--dry-run", f"VENV={tmp_path}", "install-test"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    installs = re.findall(r"-m pip (install .*)", told.stdout.replace(" --quiet", ""))
    assert len(installs) == 4
    assert not [each for each in installs if not _is_locked(each)]


def test_images_install_what_the_lock_files_name_and_nothing_else() -> None:
    script = (ROOT / "deploy" / "containers" / "install").read_text()
    installs = re.findall(r"\$pip ((?:install|wheel) .*)", script)
    assert len(installs) == 5
    assert not [each for each in installs if not _is_locked(each)]


def _is_locked(install: str) -> bool:
    """Return whether each file has a known hash, or is one that was built here."""
    if install.replace('"', "").startswith(f"install {HASHED} -r requirements/"):
        return True
    if "--editable" in install or install.startswith("wheel"):
        return "--no-deps --build-constraint requirements/build.txt" in install
    return install.startswith("install --no-deps")


@needs(False, "asks whether the environment of .ci/run is what the lock files say")
def test_what_is_installed_is_what_the_lock_files_name() -> None:
    pins = chosen([*read("test.txt"), *read("pip.txt")], default_environment())
    locked = {name: pin.version for name, pin in pins.items()}
    there = {name: each.version for name, each in INSTALLED.items() if name != "relaax"}
    assert there == locked


def _with_what_they_need(roots: Iterable[Requirement], python: str) -> Iterator[Requirement]:
    """Yield requirements and, again and again, those of the packages that they name."""
    waiting, seen = list(roots), set()
    while waiting:
        requirement = waiting.pop()
        if str(requirement) in seen:
            continue
        seen.add(str(requirement))
        if requirement.marker and not requirement.marker.evaluate(linux(python)):
            continue
        yield requirement
        waiting += _needed(INSTALLED.get(canonicalize_name(requirement.name)), requirement, python)


def _needed(package: Distribution | None, asked: Requirement, python: str) -> Iterator[Requirement]:
    for line in (package.requires if package else None) or ():
        requirement = Requirement(line)
        if requirement.marker is None or any(
            requirement.marker.evaluate(linux(python) | {"extra": extra})
            for extra in asked.extras or {""}
        ):
            requirement.marker = None
            yield requirement


def _meets(pin: Pin | None, requirement: Requirement) -> bool:
    return pin is not None and requirement.specifier.contains(pin.version, prereleases=True)


def test_an_audit_that_hangs_has_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def hangs(command: list[str], **options: float) -> None:
        raise subprocess.TimeoutExpired(command, options["timeout"])

    monkeypatch.setattr(audit.subprocess, "run", hangs)
    with pytest.raises(audit.NoAnswer, match="nothing came within 600 s"):
        audit.ask({}, [])
