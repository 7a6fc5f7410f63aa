import re
from pathlib import Path

import pytest

from relaax.client.connector import Backoff
from relaax.client.run_options import VideoOptions, parse_options
from relaax.steps import Evaluation

REQUIRED = ["--rlx-server", "localhost:7001", "--env", "CartPole-v1"]


def test_defaults() -> None:
    options = parse_options(REQUIRED)
    assert (options.rlx_server, options.env) == ("localhost:7001", "CartPole-v1")
    assert (options.count, options.seeds.seed, options.episodes) == (1, None, None)
    assert options.backoff == Backoff()
    assert options.env_kwargs == {}


def test_everything_can_be_given() -> None:
    options = parse_options(
        [
            *REQUIRED,
            *("--count", "3", "--seed", "5", "--episodes", "8", "--attempts", "2"),
            *("--env-kwargs", '{"sutton_barto_reward": true}'),
        ]
    )
    assert (options.count, options.seeds.seed, options.episodes) == (3, 5, 8)
    assert options.backoff.attempts == 2
    assert options.env_kwargs == {"sutton_barto_reward": True}


@pytest.mark.parametrize(
    ("count", "episodes", "shares"), [("3", "8", [3, 3, 2]), ("3", "2", [1, 1]), ("2", "2", [1, 1])]
)
def test_the_episodes_are_shared_out(count: str, episodes: str, shares: list[int]) -> None:
    options = parse_options([*REQUIRED, "--count", count, "--episodes", episodes])
    assert [options.episodes_of(index) for index in range(options.environments)] == shares


@pytest.mark.parametrize(
    ("count", "per_connection", "episodes", "sizes", "shares"),
    [
        (5, 4, 100, [4, 1], [80, 20]),
        (32, 16, 7, [7], [7]),
        (6, 3, 10, [3, 3], [6, 4]),
        (4, 1, 6, [1, 1, 1, 1], [2, 2, 1, 1]),
        (5, 2, None, [2, 2, 1], [None] * 3),
    ],
)
def test_environments_share_connections_and_each_plays_as_many_episodes(
    count: int, per_connection: int, episodes: int | None, sizes: list[int], shares: list[int]
) -> None:
    arguments = [*REQUIRED, "--count", str(count), "--per-connection", str(per_connection)]
    options = parse_options(arguments + (["--episodes", str(episodes)] if episodes else []))
    assert [len(numbers) for numbers in options.connections] == sizes
    assert [options.episodes_of(index) for index in range(len(sizes))] == shares


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "required: --rlx-server, --env"),
        (
            ["--rlx-server", "localhost", "--env", "x"],
            "an address is HOST:PORT.*this is 'localhost'",
        ),
        ([*REQUIRED, "--count", "0"], "--count: a whole number of at least 1 is needed, not '0'"),
        ([*REQUIRED, "--episodes", "many"], "--episodes: a whole number"),
        ([*REQUIRED, "--attempts", "-1"], "--attempts"),
        ([*REQUIRED, "--seed", "x"], "--seed"),
        ([*REQUIRED, "--env-kwargs", "{"], "this is not JSON"),
        ([*REQUIRED, "--env-kwargs", "[1]"], "a JSON object is needed"),
        ([*REQUIRED, "localhost:7001"], "unrecognized arguments"),
    ],
)
def test_bad_arguments_are_status_2_and_say_why(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_options(arguments)
    assert caught.value.code == 2
    assert re.search(message, capsys.readouterr().err)


@pytest.mark.parametrize(
    ("given", "evaluation"),
    [
        ((), None),
        (("--evaluate",), Evaluation.DETERMINISTIC),
        (("--evaluate", "deterministic"), Evaluation.DETERMINISTIC),
        (("--evaluate", "stochastic"), Evaluation.STOCHASTIC),
    ],
)
def test_how_to_evaluate(given: tuple[str, ...], evaluation: Evaluation | None) -> None:
    assert parse_options([*given, *REQUIRED]).evaluate is evaluation


def test_recorded_episodes_are_rendered_as_pictures() -> None:
    options = parse_options([*REQUIRED, "--record-video", "here", "--max-videos", "3"])
    assert options.video == VideoOptions(Path("here"), every=10, most=3)
    assert options.env_kwargs == {"render_mode": "rgb_array"}
    kwargs = ("--env-kwargs", '{"render_mode": "rgb_array_list"}')
    options = parse_options([*REQUIRED, "--record-video", "here", *kwargs])
    assert options.env_kwargs == {"render_mode": "rgb_array_list"}
