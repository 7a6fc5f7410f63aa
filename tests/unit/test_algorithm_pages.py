"""docs/algorithms: each algorithm has a page, all of one shape, which names all of its keys."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, get_args, get_origin

import pytest
from processes import REPOSITORY
from pydantic import BaseModel
from trained import CONTINUOUS, DISCRETE, SECTIONS, algorithm_of

from relaax.configuration.yaml_reader import load_yaml

PAGES = REPOSITORY / "docs" / "algorithms"
SHAPE = ["When to choose it", "How to start", "How it works", "Keys", "Beside the paper", "Results"]
NAMES = sorted(path.name for path in (REPOSITORY / "algorithms").iterdir() if path.is_dir())

#: The keys of a section by name, those of sections within it as ``section: key``.
Keys = dict[str, Any]


def page(name: str) -> str:
    return (PAGES / f"{name}.md").read_text()


def part(text: str, title: str) -> str:
    """Return a page's part below ``## title``."""
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rows(text: str) -> dict[str, str]:
    """Return the rows of the tables of keys by the keys in their first columns."""
    found = re.findall(r"^\| (.*?) \| (.*) \|$", text, re.MULTILINE)
    return {key: rest for first, rest in found for key in re.findall(r"`([^`]+)`", first)}


COMMON = rows(page("common"))


@cache
def keys_of(name: str) -> Keys:
    """Return the keys that may be set, of discrete and of continuous actions, with their kinds."""
    config = algorithm_of(name, SECTIONS[name])[1]
    kinds = [type(config.settings)]
    if "continuous" in kinds[0].model_fields:
        for section in (DISCRETE, CONTINUOUS | {"continuous": True}):
            kinds.append(type(algorithm_of(name, section)[1].settings))
    return {key: kind for settings in kinds for key, kind in _keys(settings)}


def _keys(settings: type[BaseModel], section: str = "") -> Iterator[tuple[str, Any]]:
    for name, field in settings.model_fields.items():
        yield section + name, field.annotation
        for inner in _sections(field.annotation):
            yield from _keys(inner, f"{section}{name}: ")


def _sections(kind: Any) -> Iterator[type[BaseModel]]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
    for each in get_args(kind):
        yield from _sections(each)


def is_choice(kind: Any) -> bool:
    """Return whether a key may have another value than its default."""
    return kind is not type(None) and not (get_origin(kind) is Literal and len(get_args(kind)) == 1)


def named_on(name: str) -> dict[str, str]:
    """Return the rows of a page, and of pages whose keys it says it has: ``[..](es.md#keys)``."""
    text = part(page(name), "Keys")
    others = re.findall(r"^The \[keys of [^]]*\]\((\w+)\.md#keys\)", text, re.MULTILINE)
    return {key: rest for other in others for key, rest in named_on(other).items()} | rows(text)


def is_named(key: str, named: dict[str, str]) -> bool:
    """Return whether a page, or the common one, has a key; one of a section also in its row."""
    section, *within = key.split(": ")
    if not within:
        return key in named
    described = " ".join(table[section] for table in (named, COMMON) if section in table)
    return key in named or re.search(rf"\b{within[-1]}\b", described) is not None


@pytest.mark.parametrize("name", NAMES)
def test_every_algorithm_has_a_page_of_the_same_shape(name: str) -> None:
    text = page(name)
    assert re.match(r"# [^:\n]+: \w", text)
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == SHAPE


@pytest.mark.parametrize("name", NAMES)
def test_the_table_of_a_page_names_every_key_of_its_section(name: str) -> None:
    named = named_on(name)
    choices = [key for key, kind in keys_of(name).items() if is_choice(kind)]
    assert [key for key in choices if not is_named(key, named)] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_table_of_a_page_names_no_key_that_does_not_exist(name: str) -> None:
    assert rows(part(page(name), "Keys")).keys() - keys_of(name).keys() == set()


def test_the_common_page_names_no_key_that_does_not_exist() -> None:
    known = {key.rpartition(": ")[2] for name in NAMES for key in keys_of(name)}
    tables = page("common").partition("\n## Keys of all algorithms\n")[2]
    assert rows(tables).keys() - known == set()


@pytest.mark.parametrize("name", NAMES)
def test_a_page_starts_a_training_of_its_algorithm(name: str) -> None:
    """Its Procfiles are there, and its YAML is a configuration that the algorithm takes."""
    start = part(page(name), "How to start")
    procfiles = re.findall(r"Procfiles/\w+\.Procfile", start)
    assert procfiles
    for procfile in procfiles:
        text = (REPOSITORY / procfile).read_text()
        (config,) = {*re.findall(r"--config (\S+)", text)}
        section = load_yaml((REPOSITORY / config).read_text())["algorithm"]
        assert name in (section.get("name"), section.get("path", "").rpartition("/")[2])
    sections = [
        load_yaml(block)["algorithm"]
        for block in re.findall(r"```yaml\n(.*?)```", start, re.DOTALL)
    ]
    assert sections
    for section in sections:
        assert section.pop("name") == name
        algorithm_of(name, section)


def test_the_list_of_algorithms_has_all_of_them() -> None:
    listed = re.findall(r"^\| \[.*?\]\((\w+)\.md\) \| `(\w+)` \|", page("index"), re.MULTILINE)
    assert {(name, name) for name in NAMES} - {*listed} == set()


def test_the_table_of_simulators_has_all_algorithms_and_files_that_are_there() -> None:
    concepts = (REPOSITORY / "docs" / "concepts.md").read_text()
    table = part(concepts, "Which algorithm for my simulator")
    assert {*NAMES} - {*re.findall(r"\(algorithms/(\w+)\.md\)", table)} == set()
    files = re.findall(r"`(config/\w+\.yaml)`", table)
    assert len(files) >= len(NAMES)
    assert [path for path in files if not (REPOSITORY / path).exists()] == []
