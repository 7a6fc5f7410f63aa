"""Nothing that is read becomes code: no pickle, no eval, no loader that runs what it finds.

Libraries that import pickle for themselves are not meant here;
tests/integration/test_no_unpickling.py watches whether one of them uses it.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml
from shebang import begins_with

from relaax.configuration.yaml_reader import Loader, read_yaml
from relaax.errors import ConfigurationError

ROOT = Path(__file__).parents[2]
FOLDERS = ("relaax", "algorithms", "environments", "examples", "deploy", "requirements")

#: Modules that make objects of what they read, by running what it names.
FORBIDDEN_MODULES = {
    "_pickle", "cloudpickle", "dill", "joblib", "jsonpickle", "marshal", "pickle", "shelve",
}  # fmt: skip

#: Python's own functions that run texts.
FORBIDDEN_FUNCTIONS = {"__import__", "compile", "eval", "exec"}

#: Functions of libraries that run what a file says, by the end of their names.
FORBIDDEN_CALLS = {
    "full_load", "full_load_all", "load_model", "model_from_json", "read_pickle",
    "saved_model.load", "to_pickle", "torch.load", "unsafe_load", "unsafe_load_all",
}  # fmt: skip

#: What may be there all the same, and why.
ALLOWED = {
    # relaax-export reads what it has written a moment ago, to compare it.
    ("relaax/server/export/files_tf.py", "tf.saved_model.load"),
    # Its loader is one of those that make numbers, texts, lists and mappings alone: see below.
    ("relaax/configuration/yaml_reader.py", "yaml.load"),
}


#: A program without one of these words needs no closer look.
_WORDS = re.compile(
    "pickle|marshal|shelve|dill|joblib|eval|exec|compile|__import__|yaml|full_load|load_model"
    "|from_json|saved_model|torch|unsafe_load"
)


@cache
def programs() -> dict[str, str]:
    """Return the text of each, by its path."""
    return {
        str(path.relative_to(ROOT)): path.read_text()
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*"))
        if path.is_file()
        and "_pb2" not in path.name
        and (path.suffix == ".py" or begins_with(path, "python"))
    }


def uses(tree: ast.Module) -> Iterator[str]:
    """Yield what a program uses of all that."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names if _is_forbidden(each.name))
            case ast.ImportFrom(module=str(module)) if _is_forbidden(module):
                yield module
            case ast.Name(id=name) if name in FORBIDDEN_FUNCTIONS:
                yield name
            case ast.Call(func=called, keywords=keywords):
                name = ast.unparse(called)
                if _ends_with(name, FORBIDDEN_CALLS) or name in ("yaml.load", "yaml.load_all"):
                    yield name
                yield from ("allow_pickle" for each in keywords if _allows_pickle(each))


def _is_forbidden(module: str) -> bool:
    return module.partition(".")[0] in FORBIDDEN_MODULES


def _ends_with(name: str, ends: set[str]) -> bool:
    return any(f".{name}".endswith(f".{end}") for end in ends)


def _allows_pickle(keyword: ast.keyword) -> bool:
    return keyword.arg == "allow_pickle" and ast.unparse(keyword.value) != "False"


def test_no_program_makes_code_of_what_it_reads() -> None:
    found = {
        (path, use)
        for path, text in programs().items()
        if _WORDS.search(text)
        for use in uses(ast.parse(text))
    }
    assert found == ALLOWED
    assert len(programs()) > 400


def test_the_yaml_file_makes_no_objects(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("!!python/object/apply:os.getcwd []\n")
    with pytest.raises(ConfigurationError, match="python/object"):
        read_yaml(path)
    with pytest.raises(yaml.constructor.ConstructorError):
        yaml.load(path.read_text(), Loader)  # noqa: S506 - that is what is asked


@pytest.mark.parametrize(
    ("text", "use"),
    [
        ("import pickle as p", "pickle"),
        ("from joblib.externals import loky", "joblib.externals"),
        ("run = eval", "eval"),
        ("exec('1')", "exec"),
        ("np.load(file, allow_pickle=True)", "allow_pickle"),
        ("yaml.load(file, Loader)", "yaml.load"),
        ("keras.models.load_model(path)", "keras.models.load_model"),
        ("unsafe_load(file)", "unsafe_load"),
    ],
)
def test_each_way_is_found(text: str, use: str) -> None:
    assert list(uses(ast.parse(text))) == [use]
    assert _WORDS.search(text)


def test_what_is_harmless_is_not() -> None:
    for text in ("re.compile('a')", "np.load(file, allow_pickle=False)", "yaml.safe_load(file)"):
        assert list(uses(ast.parse(text))) == []
