"""How an algorithm's package is loaded from its folder."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from relaax.configuration import AlgorithmSection
from relaax.configuration.algorithm_loader import load_algorithm, make_config
from relaax.errors import ConfigurationError
from relaax.parameters import BridgeControl

REPOSITORY = Path(__file__).parents[3]

PACKAGE = """\
    from .config import Config

    __all__ = ["Agent", "Config", "ParameterServer"]

    def __getattr__(name):
        if name not in __all__:
            raise AttributeError(name)
        from . import classes
        return getattr(classes, name)
"""
CLASSES = """\
    class Agent:
        def __init__(self, config, parameter_server):
            self.given = (config, parameter_server)

    class ParameterServer: pass
"""
CONFIG = """\
    from pydantic import BaseModel, field_validator, model_validator

    class Inner(BaseModel, extra="forbid"):
        decay: float = 0.9

    class Settings(BaseModel, extra="forbid"):
        size: int
        shape: list[int] = []
        inner: Inner = Inner()
        even: int = 0
        low: int = 0
        high: int = 1

        @field_validator("even")
        @classmethod
        def _even(cls, value):
            if value % 2:
                raise ValueError("must be even")
            return value

        @model_validator(mode="after")
        def _ordered(self):
            if self.low > self.high:
                raise ValueError(f"low must not exceed high, is {self.low} > {self.high}")
            return self

    class Config:
        def __init__(self, config):
            if "fail" in config:
                errors = {"value": ValueError, "key": KeyError}
                if config["fail"] == "said":
                    raise ValueError("algorithm: size: too small")
                raise errors[config["fail"]]("x")
            self.settings = Settings(**config)
"""


@pytest.fixture
def package(tmp_path):
    """A function that writes an algorithm, whole unless a file of it is given, into a folder."""

    def write(name="mine", **files):
        directory = tmp_path / name
        directory.mkdir(parents=True)
        for module, text in {
            "__init__": PACKAGE,
            "classes": CLASSES,
            "config": CONFIG,
            **files,
        }.items():
            (directory / f"{module}.py").write_text(textwrap.dedent(text))
        return directory

    return write


def complaint(load, *arguments):
    with pytest.raises(ConfigurationError) as error:
        load(*arguments)
    return error.value


class TestLoading:
    def test_the_three_classes_are_at_hand(self, package):
        algorithm = load_algorithm(package())
        for name in ("Agent", "Config", "ParameterServer"):
            assert getattr(algorithm, name).__name__ == name
        with pytest.raises(AttributeError, match="an algorithm has no 'agent'"):
            _ = algorithm.agent

    def test_a_class_is_imported_when_it_is_asked_for(self, package):
        algorithm = load_algorithm(package())
        lazy = f"{algorithm.module.__name__}.classes"
        assert lazy not in sys.modules
        _ = algorithm.Agent
        assert lazy in sys.modules

    @pytest.mark.parametrize("name", ["json", "mine.v2", "my algorithm", "2nd-try"])
    def test_any_folder_name_will_do(self, package, name):
        algorithm = load_algorithm(package(name))
        assert algorithm.Config.__name__ == "Config"
        assert "Agent" not in dir(sys.modules["json"])

    def test_algorithms_of_one_name_are_kept_apart(self, package):
        first = load_algorithm(package("a/mine"))
        second = load_algorithm(package("b/mine"))
        assert first.Config is not second.Config
        assert first.Config.__module__ != second.Config.__module__

    def test_an_algorithm_is_loaded_once(self, package, monkeypatch):
        directory = package()
        first = load_algorithm(directory)
        monkeypatch.chdir(directory.parent)
        assert load_algorithm(Path("mine")).module is first.module

    def test_da3c_serves_without_tensorflow_until_its_agent_is_asked_for(self):
        code = f"""
            import sys
            from pathlib import Path
            from relaax.configuration.algorithm_loader import load_algorithm

            algorithm = load_algorithm(Path({str(REPOSITORY / "algorithms" / "da3c")!r}))
            algorithm.Config, algorithm.ParameterServer, algorithm.BridgeControl
            sys.exit("tensorflow" in sys.modules)
        """
        command = [sys.executable, "-c", textwrap.dedent(code)]
        assert subprocess.run(command, check=False).returncode == 0


class TestOptionalExports:
    def loaded(self, package, *lines):
        """Return the algorithm with more in its ``__init__``."""
        return load_algorithm(package(__init__=textwrap.dedent(PACKAGE) + "\n".join(lines) + "\n"))

    def test_the_generic_bridge_serves_a_package_that_brings_none(self, package):
        assert load_algorithm(package()).BridgeControl is BridgeControl

    def test_a_package_may_bring_a_bridge_of_its_own(self, package):
        algorithm = self.loaded(package, "class BridgeControl: mine = True")
        assert algorithm.BridgeControl.mine

    def test_an_algorithm_knows_batches_if_it_makes_agents_of_them(self, package):
        assert not load_algorithm(package("alone")).knows_batches
        algorithm = self.loaded(package, "def make_batch_agent(*given): return given")
        assert algorithm.knows_batches
        assert algorithm.make_batch_agent("config", "stub", 5, True) == ("config", "stub", 5, True)

    def test_an_agent_that_takes_a_seed_is_given_one(self, package):
        classes = CLASSES.replace("parameter_server)", "parameter_server, seed)", 1)
        plain = load_algorithm(package("plain")).make_agent("config", "stub", 7)
        assert plain.given == ("config", "stub")
        seeded = classes.replace(
            "(config, parameter_server)\n", "(config, parameter_server, seed)\n"
        )
        agent = load_algorithm(package("seeded", classes=seeded)).make_agent("config", "stub", 7)
        assert agent.given == ("config", "stub", 7)

    def test_before_the_fork_the_package_imports_what_it_says(self, package):
        algorithm = self.loaded(
            package, "prepared = []", "prepare_to_fork = lambda: prepared.append(1)"
        )
        algorithm.prepare_to_fork()
        assert algorithm.module.prepared == [1]
        assert f"{algorithm.module.__name__}.classes" not in sys.modules

    def test_before_the_fork_the_agent_is_imported_if_the_package_says_nothing(self, package):
        algorithm = load_algorithm(package())
        algorithm.prepare_to_fork()
        assert f"{algorithm.module.__name__}.classes" in sys.modules

    @pytest.mark.parametrize(
        "lines", [(), ("def prepare_to_fork():", "    from . import classes")], ids=["agent", "own"]
    )
    def test_before_the_fork_an_import_that_fails_is_named(self, package, lines):
        directory = package(
            __init__=textwrap.dedent(PACKAGE) + "\n".join(lines) + "\n",
            classes="import no_such_module\n",
        )
        error = complaint(load_algorithm(directory).prepare_to_fork)
        assert "No module named 'no_such_module'" in str(error)
        assert f"({directory / 'classes.py'}:1)" in str(error)


class TestComplaints:
    def test_a_folder_without_an_init_is_no_algorithm(self, tmp_path):
        error = complaint(load_algorithm, tmp_path)
        assert str(error) == f"algorithm {tmp_path} is no folder with an __init__.py"

    def test_missing_classes_are_named(self, package):
        directory = package(__init__="from .classes import Agent\n")
        error = complaint(load_algorithm, directory)
        assert str(error) == f"algorithm {directory} does not export Config, ParameterServer"

    def test_an_error_of_an_import_is_told_with_its_place(self, package):
        directory = package(config="size = 1\nundefined\n")
        error = complaint(load_algorithm, directory)
        assert str(error) == (
            f"algorithm {directory} cannot be imported: "
            f"NameError: name 'undefined' is not defined ({directory / 'config.py'}:2)"
        )
        assert isinstance(error.__cause__, NameError)

    def test_a_mistake_in_the_syntax_is_told_with_its_own_place(self, package):
        directory = package(config="size = 1\nsize = = 2\n")
        error = complaint(load_algorithm, directory)
        assert str(error) == (
            f"algorithm {directory} cannot be imported: "
            f"SyntaxError: invalid syntax ({directory / 'config.py'}:2)"
        )

    def test_a_mended_algorithm_loads(self, package):
        directory = package(__init__="import no_such_module\n")
        assert "No module named 'no_such_module'" in str(complaint(load_algorithm, directory))
        (directory / "__init__.py").write_text(textwrap.dedent(PACKAGE))
        assert load_algorithm(directory).Config.__name__ == "Config"

    def test_an_error_of_a_late_import_is_told_with_its_place(self, package):
        directory = package(classes="import no_such_module\n")
        algorithm = load_algorithm(directory)
        error = complaint(getattr, algorithm, "Agent")
        assert str(error) == (
            f"algorithm {directory}: Agent cannot be imported: ModuleNotFoundError: "
            f"No module named 'no_such_module' ({directory / 'classes.py'}:1)"
        )

    def test_a_name_that_a_configuration_needs_and_is_not_exported_is_said_so(self, package):
        directory = package()
        error = complaint(getattr, load_algorithm(directory), "make_learner")
        assert str(error) == (
            f"algorithm {directory}: this configuration needs make_learner, which __init__.py does "
            "not export"
        )

    def test_a_name_that_is_promised_and_not_imported_is_said_so(self, package):
        directory = package(__init__='__all__ = ["Agent", "Config", "ParameterServer"]\n')
        error = complaint(getattr, load_algorithm(directory), "Agent")
        assert str(error) == (
            f"algorithm {directory}: __init__.py has Agent in __all__, but does not import it"
        )


class TestConfiguration:
    def section(self, directory, **parameters):
        return AlgorithmSection(directory, parameters, Path("x.yaml"))

    def test_the_section_becomes_the_algorithms_configuration(self, package):
        directory = package()
        config = make_config(load_algorithm(directory), self.section(directory, size=4))
        assert config.settings.size == 4

    @pytest.mark.parametrize(
        ("parameters", "reason"),
        [
            ({}, "size: is missing"),
            ({"size": 1, "sise": 2}, "sise: no such key"),
            ({"size": 1.5}, "size: must be an integer, is 1.5"),
            ({"size": "many"}, "size: must be an integer, is 'many'"),
            ({"size": 1, "shape": 5}, "shape: must be a list, is 5"),
            ({"size": 1, "inner": {"decay": []}}, "inner: decay: must be a number, is []"),
            ({"size": 1, "shape": [1, None]}, "shape: 1: must be an integer, is empty"),
            ({"size": 1, "even": 3}, "even: must be even, is 3"),
            ({"size": 1, "low": 2}, "low must not exceed high, is 2 > 1"),
            (
                {"size": [], "inner": 5},
                "size: must be an integer, is []; inner: must be a section of keys, is 5",
            ),
            ({"fail": "value"}, "x"),
            ({"fail": "key"}, "x: is missing"),
            ({"fail": "said"}, "size: too small"),
        ],
    )
    def test_what_it_cannot_use_is_named_with_file_and_key(self, package, parameters, reason):
        directory = package()
        algorithm = load_algorithm(directory)
        error = complaint(make_config, algorithm, self.section(directory, **parameters))
        assert str(error) == f"x.yaml: algorithm: {reason}"

    def test_a_key_that_was_meant_is_named_where_another_is_missing(self, package):
        directory = package(
            config="class Config:\n    def __init__(self, config):\n        config['state_size']\n"
        )
        section = self.section(directory, state_sise=4)
        error = complaint(make_config, load_algorithm(directory), section)
        reason = "state_size: is missing; did you mean it by state_sise?"
        assert str(error) == f"x.yaml: algorithm: {reason}"

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            ("config.absent", "AttributeError: 'dict' object has no attribute 'absent'"),
            ("config + 1", "TypeError: unsupported operand type(s) for +: 'dict' and 'int'"),
        ],
    )
    def test_another_error_of_its_code_is_told_with_its_place(self, package, line, reason):
        directory = package(
            config=f"class Config:\n    def __init__(self, config):\n        {line}\n"
        )
        error = complaint(make_config, load_algorithm(directory), self.section(directory))
        assert f"Config fails: {reason}" in str(error)
        assert str(error).endswith(f"({directory / 'config.py'}:3)")

    @pytest.mark.parametrize(
        ("body", "reason"),
        [
            ("1 / 0", "observation_space fails: ZeroDivisionError: division by zero ("),
            ("return 5", "returns 5: a space must be a dict"),
        ],
    )
    def test_a_space_that_cannot_be_used_is_named_before_a_client_comes(
        self, package, body, reason
    ):
        directory = package(
            config=f"""\
            class Config:
                def __init__(self, config): pass
                def observation_space(self):
                    {body}
            """
        )
        error = complaint(make_config, load_algorithm(directory), self.section(directory))
        assert str(error).startswith(f"algorithm {directory}: Config.observation_space ")
        assert reason in str(error)
