"""The commands' help, and their exit status."""

import logging
import signal
import subprocess
import sys

import pytest

from relaax import __version__
from relaax.configuration import commands, load_parameter_server, load_rlx_server, run_command
from relaax.configuration.command_line import build_parser
from relaax.errors import BridgeError, CheckpointError, CheckpointMismatch, ConfigurationError

LOADERS = pytest.mark.parametrize("load", [load_parameter_server, load_rlx_server])


def exit_status_and_output(load, arguments, capsys):
    with pytest.raises(SystemExit) as exit_:
        load(arguments)
    output = capsys.readouterr()
    return exit_.value.code, " ".join((output.out + output.err).split())


@pytest.mark.parametrize("command", commands.COMMANDS, ids=lambda command: command.name)
def test_the_help_explains_every_option_with_its_default(command):
    text = " ".join(build_parser(command).format_help().split())
    for name, field in command.options.model_fields.items():
        explained = field.description
        if field.default not in (None, False):
            explained += f" (default: {field.default})"
        assert f"--{name.replace('_', '-')}" in text
        assert explained in text
    assert "A flag beats the YAML file, and the YAML file beats the default." in text


def test_the_help_shows_the_options_of_the_seed_and_their_values(capsys):
    _, parameter_server = exit_status_and_output(load_parameter_server, ["--help"], capsys)
    _, rlx_server = exit_status_and_output(load_rlx_server, ["--help"], capsys)
    for option in ("--config FILE", "--bind HOST:PORT", "--log-level LEVEL"):
        assert option in parameter_server
        assert option in rlx_server
    for option in (
        "--checkpoint-dir DIR",
        "--checkpoint-aws-s3 BUCKET KEY",
        "--metrics-dir DIR",
        "--metrics-aws-s3 BUCKET KEY",
        "--aws-keys FILE",
        "--checkpoint-aws-s3 my_bucket training/checkpoints",
    ):
        assert option in parameter_server
    for option in ("--parameter-server HOST:PORT", "--timeout SECONDS", "--timeout 120"):
        assert option in rlx_server


@LOADERS
def test_the_version_is_that_of_the_package(load, capsys):
    status, text = exit_status_and_output(load, ["--version"], capsys)
    assert status == 0
    assert text.endswith(f" {__version__}")


@LOADERS
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "the following arguments are required: --config"),
        (["--config", "x.yaml", "--log", "INFO"], "unrecognized arguments: --log INFO"),
        (["--config", "x.yaml", "--bind"], "argument --bind: expected one argument"),
    ],
)
def test_a_malformed_command_line_is_status_2(load, arguments, reason, capsys):
    status, text = exit_status_and_output(load, arguments, capsys)
    assert status == 2
    assert text.endswith(f"error: {reason}")


@pytest.mark.parametrize(
    ("error", "status"), [(ConfigurationError, 2), (CheckpointMismatch, 2), (CheckpointError, 1)]
)
def test_a_known_error_is_one_line_and_a_status(error, status, capsys):
    def fail():
        raise error("first\n  second")

    assert run_command("program", fail) == status
    assert capsys.readouterr().err == "program: error: first second\n"


@pytest.mark.parametrize("flags", [["--log-level", "DEBUG"], ["--log-level=DEBUG"]])
def test_where_everything_is_logged_a_known_error_has_its_traceback_too(
    flags, capsys, caplog, tmp_path
):
    """The flag counts, since an error may come before the log is started."""
    missing = ["--config", str(tmp_path / "missing.yaml")]
    with caplog.at_level(logging.WARNING):  # it is WARNING again after this
        assert run_command("program", lambda: load_rlx_server([*missing, *flags])) == 2
    assert "Traceback (most recent call last)" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_the_exit_does_not_change_the_status(number):
    program = f"""if True:
        import os, sys
        from relaax.configuration import leave_undisturbed
        class RemovedAtTheExit:
            def __del__(self, kill=os.kill, pid=os.getpid()):
                kill(pid, {int(number)})  # Python has removed its signal handlers by now
        last = RemovedAtTheExit()
        leave_undisturbed()
        sys.exit(5)
    """
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 5


def test_a_process_ends_with_all_that_it_has_said_though_a_thread_goes_on():
    program = """if True:
        import logging, sys, threading
        from relaax.configuration import leave_at_once
        logging.basicConfig(stream=sys.stderr, level=logging.INFO)
        threading.Thread(target=threading.Event().wait).start()
        print("printed")
        logging.info("logged")
        leave_at_once(5)
    """
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout) == (5, "printed\n")
    assert "logged" in ended.stderr


def test_other_errors_and_the_status_of_the_command_go_through():
    def fail():
        raise BridgeError("x")

    assert run_command("program", lambda: 3) == 3
    with pytest.raises(BridgeError):
        run_command("program", fail)
