"""The mistakes of an algorithm's author, and what the author and a client are shown.

Each test takes the algorithm that docs/your_algorithm.md shows, and puts one mistake into it.
"""

import shutil
from pathlib import Path

import pytest
from processes import Process, Training
from worker_modes import IN_BOTH_MODES, SHARED
from your_algorithm_page import whole_algorithm

from relaax.client import Client, Failure

pytestmark = pytest.mark.integration

BOTH_SERVERS = pytest.mark.parametrize("command", ["relaax-parameter-server", "relaax-rlx-server"])

#: An algorithm that learns, from the library's parts.
REINFORCE = Path(__file__).parents[1] / "learning" / "reinforce_gaussian"

#: A batch agent that is put behind the exports; what it does in ``act`` is filled in.
BATCHES = """

import numpy as np
from relaax.algorithm_base import BatchAgentBase


class Batches(BatchAgentBase):
    def open(self, slots): pass
    def close_slots(self, slots): pass
    def check(self, states): return np.asarray(states, np.float32)
    def act(self, transitions, states, finals):
        {act}
    def close(self): pass


def make_batch_agent(config, parameter_server, seed, learns_in_background):
    {make}
    return Batches()
"""


class Author:
    """Writes the algorithm, and makes mistakes in it."""

    def __init__(self, training: Training) -> None:
        self._training = training
        self.directory = training.directory / "mine"
        self.directory.mkdir()
        for name, text in whole_algorithm().items():
            (self.directory / name).write_text(text)
        self.configure()

    def configure(self, **keys: object) -> None:
        section = {"path": "mine", "state_size": 4, "action_size": 2, **keys}
        self._training.configure(section)

    def puts(self, new: str, instead_of: str, into: str) -> Path:
        """Replace some code in a module; return the file."""
        path = self.directory / into
        text = path.read_text()
        assert instead_of in text
        path.write_text(text.replace(instead_of, new, 1))
        return path

    def adds_batches(self, act: str = "return np.zeros(len(states), np.int64)", make: str = "pass"):
        path = self.directory / "__init__.py"
        path.write_text(path.read_text() + BATCHES.format(act=act, make=make))


@pytest.fixture(name="author")
def _author(training: Training) -> Author:
    return Author(training)


def refusal(training: Training, command: str, *flags: str) -> str:
    """The only line that a server prints before it exits with status 2."""
    process = training.start_command(command, *flags)
    assert process.wait() == 2, process.output()
    (line,) = process.output().strip().splitlines()
    return line.removeprefix(f"{command}: error: ")


def end_of_a_client(training: Training) -> str:
    """What a client says that stops by itself, without trying again and again."""
    client = training.start_environments(1, "--attempts", "20")
    assert client.wait(30) == 1, client.output()
    assert "attempts" not in client.output()
    return client.output()


def play(client: Client, episodes: int) -> None:
    for _ in range(episodes):
        client.init([0.0] * 4)
        client.send(1.0, [0.0] * 4)
        client.reset(1.0)


def tracebacks(*processes: Process) -> list[int]:
    return [process.output().count("Traceback (most recent call last)") for process in processes]


class TestConfiguration:
    @BOTH_SERVERS
    @pytest.mark.parametrize(
        ("space", "reason"),
        [
            ('raise OSError("no such simulator")', "fails: OSError: no such simulator ("),
            ('return {"type": "Discreet", "n": 2}', "unknown type 'Discreet'; did you mean Disc"),
        ],
        ids=["raises", "malformed"],
    )
    def test_a_wrong_space_stops_a_server_at_its_start(
        self, training: Training, author: Author, command: str, space: str, reason: str
    ):
        author.puts(space, "return discrete(self.keys.action_size)", "config.py")
        said = refusal(training, command)
        assert said.startswith(f"algorithm {author.directory}: Config.action_space ")
        assert reason in said

    @BOTH_SERVERS
    def test_a_wrong_key_is_answered_with_the_one_that_was_meant(
        self, training: Training, author: Author, command: str
    ):
        author.configure(noize=0.5)
        reason = "algorithm: noize: no such key; did you mean noise?"
        assert refusal(training, command) == f"{training.yaml}: {reason}"

    @BOTH_SERVERS
    def test_a_mistake_in_the_syntax_is_named_with_its_file_and_line(
        self, training: Training, author: Author, command: str
    ):
        path = author.puts("return int(", "return int(np.argmax(", "agent.py")
        last = path.read_text().rstrip().count("\n") + 1
        assert refusal(training, command) == (
            f"algorithm {author.directory} cannot be imported: "
            f"SyntaxError: unmatched ')' ({path}:{last})"
        )

    @BOTH_SERVERS
    @pytest.mark.parametrize("place", ["flag", "file"])
    def test_a_server_that_shows_everything_shows_where_an_error_comes_from(
        self, training: Training, author: Author, command: str, place: str
    ):
        path = author.puts("raise ValueError", "super().__init__(config)", "config.py")
        flags = ["--log-level", "DEBUG"] if place == "flag" else []
        if place == "file":
            written = training.yaml.read_text()
            training.yaml.write_text(written.replace("--log-level: INFO", "--log-level: DEBUG"))
        process = training.start_command(command, *flags)
        assert process.wait() == 2
        assert f'File "{path}", line' in process.output()
        assert process.output().splitlines()[-1].startswith(f"{command}: error: ")

    def test_it_shows_that_of_an_option_that_is_gone_too(self, training: Training):
        flags = ["--inference", "batched", "--log-level", "DEBUG"]
        process = training.start_command("relaax-rlx-server", *flags)
        assert process.wait() == 2
        assert "Traceback" in process.output()


class TestTheParameterServer:
    @IN_BOTH_MODES
    @pytest.mark.parametrize(
        "line",
        [
            "is_known = known is not None and known.number == self._version",
            "if self.is_over or gradients[0] <= self._vector[0]:",
        ],
        ids=["get_values", "synchronize"],
    )
    def test_what_it_raises_is_one_traceback_there_and_one_reason_for_a_client(
        self, training: Training, author: Author, line: str
    ):
        raising = 'if True: raise ValueError("it is too early")\n            '
        author.puts(raising + line, line, "parameter_server.py")
        parameter_server = training.start_parameter_server()
        rlx_server = training.start_rlx_server()
        assert "ValueError: it is too early" in end_of_a_client(training)
        assert tracebacks(parameter_server, rlx_server) == [1, 0]
        assert "it is too early" in rlx_server.output()

    @SHARED
    def test_what_it_always_raises_stops_an_rlx_server_that_cannot_start(
        self, training: Training, author: Author
    ):
        author.adds_batches(make="parameter_server.get_values()")
        line = "is_known = known is not None and known.number == self._version"
        author.puts('raise ValueError("it is too early")', line, "parameter_server.py")
        parameter_server = training.start_parameter_server()
        rlx_server = training.start_command("relaax-rlx-server")
        assert rlx_server.wait() == 1
        assert rlx_server.output().count("the worker ends: ") == 1
        assert tracebacks(parameter_server, rlx_server) == [1, 0]

    def test_a_report_from_before_its_restart_is_not_dropped_unsaid(
        self, training: Training, author: Author
    ):
        first = training.start_parameter_server()
        rlx_server = training.start_rlx_server()
        with Client(training.rlx_server_url, timeout_s=60) as client:
            client.init([0.0] * 4)
            first.kill()
            training.start_parameter_server()
            client.reset(1.0)
        rlx_server.says(
            "WARNING:a gradient(, which counts 1 steps,)? (was refused: it was|may be lost: )"
        )


class TestTheAgent:
    @IN_BOTH_MODES
    @pytest.mark.parametrize(
        ("code", "instead_of"),
        [
            ("self._rng = undefined", "self._random = np.random.default_rng(seed)"),
            ("undefined", "self._score, self._steps = 0.0, 0"),
            ("undefined", "self._steps += 1"),
        ],
        ids=["made", "acts", "counts"],
    )
    def test_what_it_raises_is_one_traceback_and_one_reason(
        self, training: Training, author: Author, code: str, instead_of: str
    ):
        author.puts(code, instead_of, "agent.py")
        training.start_parameter_server()
        rlx_server = training.start_rlx_server()
        reason = "NameError: name 'undefined' is not defined"
        assert reason in end_of_a_client(training)
        assert tracebacks(rlx_server) == [1]
        assert rlx_server.is_running()

    @SHARED
    def test_what_it_raises_for_many_clients_is_one_traceback(
        self, training: Training, author: Author
    ):
        """Of both versions, in one process."""
        author.puts("undefined", "self._steps += 1", "agent.py")
        training.start_parameter_server()
        rlx_server = training.start_rlx_server()
        for protocol in (1, 2, 1, 2):
            with (
                Client(training.rlx_server_url, timeout_s=60, protocol=protocol) as client,
                pytest.raises(Failure),
            ):
                play(client, episodes=1)
        assert tracebacks(rlx_server) == [1]
        assert rlx_server.output().count("the agent failed again: NameError: ") == 3

    @IN_BOTH_MODES
    @pytest.mark.parametrize("action", ["float('nan')", "7"])
    def test_a_bad_action_in_an_episode_is_one_reason_and_stops_the_client(
        self, training: Training, author: Author, action: str
    ):
        goes_on = "self._count(reward)\n        return "
        author.puts(f"{goes_on}{action}", f"{goes_on}self._choose(state)", "agent.py")
        training.start_parameter_server()
        rlx_server = training.start_rlx_server()
        assert "the algorithm mine returned" in end_of_a_client(training)
        assert rlx_server.output().count("closing the connection") == 1
        assert tracebacks(rlx_server) == [0]

    @IN_BOTH_MODES
    def test_what_a_batch_agent_raises_is_one_traceback_and_one_reason(
        self, training: Training, author: Author
    ):
        author.adds_batches(act="return 1 / 0")
        training.start_parameter_server()
        rlx_server = training.start_rlx_server()
        assert "the algorithm failed: ZeroDivisionError: " in end_of_a_client(training)
        assert tracebacks(rlx_server) == [1]
        assert rlx_server.is_running()

    @IN_BOTH_MODES
    def test_what_a_learner_raises_is_one_traceback_and_one_reason(self, training: Training):
        """In a shared worker it learns on a thread of its own."""
        directory = training.directory / "learning"
        shutil.copytree(REINFORCE, directory)
        builder = directory / "builder.py"
        line = "    if learns_in_background:\n"
        assert line in builder.read_text()
        builder.write_text(builder.read_text().replace(line, f"    learner.steps = None\n{line}"))
        keys = {"state_size": 4, "action_size": 1, "episode_len": 5}
        training.configure({"path": "learning", **keys})
        training.start_parameter_server()
        rlx_server = training.start_rlx_server()
        with (
            Client(training.rlx_server_url, timeout_s=60) as client,
            pytest.raises(Failure, match="TypeError: 'NoneType' object is not callable"),
        ):
            play(client, episodes=1000)
        assert tracebacks(rlx_server) == [1]
        assert rlx_server.is_running()

    @pytest.mark.parametrize("training", [2], indirect=True)
    def test_a_batch_agent_that_cannot_be_made_is_not_made_again_and_again(
        self, training: Training, author: Author
    ):
        author.adds_batches(make="1 / 0")
        training.start_parameter_server()
        rlx_server = training.start_command("relaax-rlx-server")
        assert rlx_server.wait() == 1
        assert "the algorithm cannot be started: the RLX server stops" in rlx_server.output()
        assert tracebacks(rlx_server)[0] in (1, 2), "two workers may have tried, each once"
