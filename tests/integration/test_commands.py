"""The commands refuse mistakes with one line, exit status 2 and no traceback."""

import re
import socket

import pytest
import yaml
from processes import COMMANDS, SMALL_DA3C, Training

from relaax.parameters import Bridge

pytestmark = pytest.mark.integration

BOTH = pytest.mark.parametrize("command", ["relaax-parameter-server", "relaax-rlx-server"])


def refusal(training: Training, command: str, *flags: str) -> str:
    """The one line that the command prints before it exits with status 2."""
    process = training.start_command(command, *flags)
    assert process.wait() == 2, process.output()
    (line,) = process.output().strip().splitlines()
    prefix = f"{command}: error: "
    assert line.startswith(prefix)
    return line.removeprefix(prefix)


@BOTH
def test_an_unknown_key_is_named_with_its_file(training: Training, command: str):
    training.configure(SMALL_DA3C, {"bimd": "localhost:1"}, {"bimd": "localhost:1"})
    assert refusal(training, command).startswith(f"{training.yaml}: {command}: --bimd: no such key")


@BOTH
def test_a_value_of_another_type_is_named_with_its_file(training: Training, command: str):
    training.configure(SMALL_DA3C, {"log-level": 5}, {"log-level": 5})
    assert refusal(training, command).startswith(f"{training.yaml}: {command}: --log-level: ")


@BOTH
def test_a_key_that_the_algorithm_cannot_use_is_named_with_its_file(
    training: Training, command: str
):
    training.configure({**SMALL_DA3C, "action_size": "many"})
    assert refusal(training, command).startswith(f"{training.yaml}: algorithm: action_size: ")


@BOTH
def test_a_missing_file_is_named(training: Training, command: str):
    training.yaml = training.directory / "absent.yaml"
    assert refusal(training, command) == f"cannot read {training.yaml}: No such file or directory"


@BOTH
def test_a_port_in_use_is_named(training: Training, command: str):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        message = refusal(training, command, "--bind", address, "--log-level", "ERROR")
    assert message.startswith(f"--bind: cannot listen at {address}")


@BOTH
def test_a_missing_folder_of_an_algorithm_is_named(training: Training, command: str):
    training.configure({"path": "no/such/folder"})
    message = refusal(training, command)
    assert message.startswith(f"{training.yaml}: algorithm: path: no/such/folder is not a folder")


@BOTH
def test_an_unknown_name_of_an_algorithm_is_named_with_the_known_ones(
    training: Training, command: str
):
    training.configure({"name": "muzero"})
    message = refusal(training, command)
    assert message.startswith(f"{training.yaml}: algorithm: name: ")
    assert "dqn" in message
    assert "da3c" in message


@BOTH
def test_the_help_shows_examples_and_the_yaml(training: Training, command: str):
    process = training.start(command, [str(COMMANDS / command), "--help"])
    assert process.wait() == 0
    message = process.output()
    assert f"  {command} --config config.yaml" in message
    assert f"  {command}:\n    --bind: " in message
    assert "(default: localhost:700" in message


@BOTH
def test_an_algorithm_that_cannot_be_imported_is_one_line_too(training: Training, command: str):
    package = training.directory / "broken"
    package.mkdir()
    (package / "__init__.py").write_text("import no_such_module\n")
    training.configure({"path": "broken"})
    assert re.search("broken cannot be imported: .*no_such_module", refusal(training, command))


def test_two_places_for_checkpoints_are_refused(training: Training):
    flags = ("--checkpoint-dir", "here", "--checkpoint-aws-s3", "bucket", "key")
    message = refusal(training, "relaax-parameter-server", *flags)
    assert message == "give --checkpoint-dir or --checkpoint-aws-s3, not both"


def test_metrics_in_s3_without_a_directory_to_copy_are_refused(training: Training):
    flags = ("--metrics-aws-s3", "bucket", "key")
    message = refusal(training, "relaax-parameter-server", *flags)
    assert message == "--metrics-aws-s3 needs --metrics-dir, whose files it copies"


def test_a_training_without_a_place_for_checkpoints_begins_with_a_warning(training: Training):
    content = yaml.safe_load(training.yaml.read_text())
    del content["relaax-parameter-server"]["--checkpoint-dir"]
    training.yaml.write_text(yaml.safe_dump(content))
    parameter_server = training.start_parameter_server()
    parameter_server.says("WARNING:no checkpoint will be saved: give --checkpoint-dir or ")


def test_a_checkpoint_of_another_network_is_refused_saying_what_differs(
    training: Training, bridge: Bridge
):
    parameter_server = training.start_parameter_server()
    bridge.increment_global_t(5)
    parameter_server.signal(2)
    assert parameter_server.wait() == 0
    training.configure({**SMALL_DA3C, "hidden_layers": [32]}, {"log-level": "ERROR"})
    message = refusal(training, "relaax-parameter-server")
    assert "dense_units is [16] in the checkpoint and [32] here" in message


def test_a_damaged_checkpoint_is_skipped_with_a_warning_and_the_one_before_is_used(
    training: Training, bridge: Bridge
):
    first = training.start_parameter_server()
    bridge.increment_global_t(5)
    first.signal(2)
    assert first.wait() == 0
    (training.checkpoints / "cp-77.json").write_text("{}")
    second = training.start_parameter_server()
    second.says("WARNING:skipping the damaged checkpoint cp-77.json")
    second.says("global step is 5")
