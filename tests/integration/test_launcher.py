"""``relaax-train``: the processes of a Procfile, and one live line."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import psutil
import pytest
from processes import COMMANDS, REPOSITORY, SMALL_DA3C, Training, free_port, wait_for
from terminal_screen import on_screen

from relaax.configuration.algorithm_loader import load_algorithm
from relaax.parameters.process.progress import TrainingProgress
from relaax.telemetry.live_lines import Figure, LiveLine, as_line

pytestmark = pytest.mark.integration

TRAIN = COMMANDS / "relaax-train"

#: Prints "ready", and exits with status 0 after SIGTERM.
OBEDIENT = """
import pathlib, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print("saved", flush=True), sys.exit(0)))
print("ready", flush=True)
pathlib.Path(__file__).with_suffix(".ready").touch()
time.sleep(60)
"""

#: The same, but it needs half a second to save.
SLOW = OBEDIENT.replace('(print("saved"', '(time.sleep(0.5), print("saved"')

#: Ignores SIGTERM.
STUBBORN = OBEDIENT.replace("sys.exit(0)", "None")

#: Prints again and again, and makes a file when it saves.
CHATTY = """
import pathlib, signal, sys, time
saved = pathlib.Path(__file__).with_suffix(".saved")
signal.signal(signal.SIGTERM, lambda *_: (saved.touch(), sys.exit(0)))
pathlib.Path(__file__).with_suffix(".ready").touch()
while True:
    print("ready", flush=True)
    time.sleep(0.02)
"""

#: Exits with status 3 when the process named "other" is ready.
IMPATIENT = """
import pathlib, time
while not pathlib.Path(__file__).with_name("other.ready").exists():
    time.sleep(0.01)
raise SystemExit(3)
"""


@pytest.fixture(name="procfile")
def _procfile(tmp_path: Path):
    def write(**programs: str) -> Path:
        lines = []
        for name, program in programs.items():
            script = tmp_path / f"{name}.py"
            script.write_text(program)
            lines.append(f"{name}: exec {sys.executable} {script}\n")
        path = tmp_path / "Procfile"
        path.write_text("".join(lines))
        return path

    return write


def run(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [TRAIN, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=cwd)


def test_the_first_process_to_end_gives_the_status_and_the_others_are_stopped(procfile):
    completed = run(procfile(first=IMPATIENT, other=OBEDIENT))
    assert completed.returncode == 3
    assert "other  | ready" in completed.stdout
    assert "other  | saved" in completed.stdout


#: Prints the progress of a training that is half done, and a warning.
PROGRESS = TrainingProgress(
    global_t=5000, steps_per_s=100, mean_return=9.5, episodes=100, checkpoints=1, last_t=10_000,
    goal_return=20, environments=8, connections=2, seconds_left=50,
)  # fmt: skip
TRAINING = f"""
print({as_line(PROGRESS)!r})
print("a warning")
"""


def test_progress_without_a_terminal_is_an_ordinary_line(procfile):
    assert f"ps     | {PROGRESS}" in run(procfile(ps=TRAINING)).stdout


def started_on_a_terminal(path: Path, rows: int = 24, columns: int = 80, **variables: str):
    """Start the launcher on a new terminal; return the terminal's other end and the process."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(
        [TRAIN, path], stdout=theirs, env={**without("COLUMNS"), "TERM": "xterm", **variables}
    )
    os.close(theirs)
    return ours, process


def without_times(rows: list[str]) -> list[str]:
    return [re.sub(r"^\d\d:\d\d:\d\d |\d+(?=\))", "", row) for row in rows]


def test_on_a_terminal_a_bar_and_the_figures_stay_below_the_log(procfile):
    ours, process = started_on_a_terminal(procfile(ps=TRAINING))
    shown = everything_of(ours)
    assert process.wait(60) == 0
    while_running = shown[: shown.index("ps stopped")]
    *_, warning, bar, figures = on_screen(while_running[: while_running.rindex("\r")])
    assert warning.endswith("ps     | a warning")
    assert re.fullmatch(r"training [━╸╺]+ 50%  100/s  1 checkpoint  at most 0:00:50 left", bar)
    assert figures == "step 5,000 of 10,000 | return 9.5 of 20 | 8 environments on 2 connections"
    *_, last = on_screen(shown)
    assert last.startswith("training: step 5,000 of 10,000 at 100/s | return 9.5 of 20")
    assert last.endswith("at most 0:00:50 left")


@pytest.mark.parametrize("columns", [1, 2, 20, 50, 200])
@pytest.mark.parametrize("rows", [1, 2, 24])
def test_progress_fits_a_terminal_of_any_size(procfile, rows, columns):
    ours, process = started_on_a_terminal(procfile(ps=TRAINING), rows, columns)
    shown = everything_of(ours)
    assert process.wait(60) == 0
    assert without_times(on_screen(shown))[-3:-1] == [
        "ps     | a warning",
        "system | ps stopped (rc=)",
    ]


#: What two learners and environments say of themselves; the first learner says more than once.
def says(group: str, *figures: Figure) -> str:
    """Return a program that prints the line of a group."""
    return f"print({as_line(LiveLine(group, figures))!r}, flush=True)"


GROUPS = {
    "one": "\n".join(
        says("learner", Figure(n * 1000, "updates"), Figure(0.5, "updates per step"))
        for n in range(3)
    ),
    "two": says("learner", Figure(500, "updates"), Figure(1, "updates per step"))
    + "; print('a warning')",
    "env": says("environments", Figure(3, "connected", of=4)),
}
GROUPS = {name: f"{program}\n{OBEDIENT}" for name, program in GROUPS.items()}

#: Ends when all of them have said it.
LAST = "".join(IMPATIENT.replace("other", name).replace("raise", "#") for name in GROUPS)


def test_on_a_terminal_each_group_of_processes_has_a_row(procfile):
    ours, process = started_on_a_terminal(procfile(ps=TRAINING + LAST, **GROUPS))
    shown = everything_of(ours)
    assert process.wait(60) == 0
    *_, learners, environments, training = without_times(on_screen(shown))
    assert learners == "learner: updates 2,500 | updates per step 0.75"
    assert environments == "environments: connected 3 of 4"
    assert training.startswith("training: step 5,000 of 10,000")
    assert "environments connected 3 of 4" in shown
    assert any(row.endswith("two    | a warning") for row in on_screen(shown))


def test_without_a_terminal_the_lines_of_all_processes_are_ordinary_ones(procfile):
    completed = run(procfile(ps=LAST, **GROUPS))
    for line in ("one    | learner: updates 2,000", "env    | environments: connected 3 of 4"):
        assert line in completed.stdout


def test_processes_are_asked_for_such_lines(procfile):
    asked = "import os; print('every', os.environ['RELAAX_LIVE_LINES'], 'seconds')"
    assert "every 10.0 seconds" in run(procfile(ps=asked)).stdout
    ours, process = started_on_a_terminal(procfile(ps=asked))
    assert "every 2.0 seconds" in everything_of(ours)
    assert process.wait(60) == 0


#: It waits until the other one is ready, logs half a line, and is killed.
KILLED = """
import os, pathlib, sys, time
while not pathlib.Path(__file__).with_name("other.ready").exists():
    time.sleep(0.01)
print("relaax-learner: error: no", flush=True)
sys.stderr.write("half a line")
sys.stderr.flush()
os.kill(os.getpid(), 9)
"""


def test_the_output_of_all_processes_is_in_one_file_with_their_names(procfile, tmp_path):
    log = tmp_path / "new" / "log"
    completed = run("--log-file", log, procfile(ps=KILLED, other=OBEDIENT))
    assert completed.returncode == 137
    lines = log.read_text().splitlines()
    assert all(re.match(r"[\d-]+ [\d:,]+ \S+ \[\d+\] (INFO|ERROR): ", line) for line in lines)
    said = [re.sub(r"^.{23} |\d+(?=[\])])", "", line) for line in lines]
    assert {
        "system [] INFO: ps started (pid=)", "ps [] ERROR: relaax-learner: error: no",
        "ps [] INFO: half a line", "system [] INFO: sending SIGTERM to other (pid )",
    } <= set(said)  # fmt: skip
    assert "relaax-learner: error: no" in completed.stdout


def test_a_log_that_cannot_be_written_is_an_error_that_names_the_option(procfile, tmp_path):
    path = procfile(ps="")
    completed = run("--log-file", path / "log", path)
    assert completed.returncode == 2
    assert "cannot write the log" in completed.stderr
    assert "--log-file" in completed.stderr


def test_a_terminal_that_cannot_erase_gets_ordinary_lines(procfile):
    ours, process = started_on_a_terminal(procfile(ps=TRAINING), TERM="dumb")
    shown = everything_of(ours)
    assert process.wait(60) == 0
    assert "ps     | training: step 5,000 of 10,000" in shown
    assert not re.search(r"\x1b\[[0-9]*[A-JL-Z]", shown)


def test_ctrl_c_leaves_the_cursor_below_the_last_progress(procfile):
    ours, process = started_on_a_terminal(procfile(ps=TRAINING + OBEDIENT))
    shown = b""
    while b"ready" not in shown:
        shown += os.read(ours, 4096)
    process.send_signal(signal.SIGINT)
    text = everything_of(ours, shown)
    assert process.wait(60) == 130
    rows = on_screen(text)
    assert sum("saved" in row for row in rows) == 1
    assert rows[-1].startswith("training: step 5,000 of 10,000")
    assert text.endswith("\n")
    assert "\x1b[?25l" not in text  # the cursor was never hidden


def without(name: str) -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key != name}


def everything_of(terminal: int, shown: bytes = b"") -> str:
    try:
        while chunk := os.read(terminal, 4096):
            shown += chunk
    except OSError:
        pass  # Linux raises EIO when the other end of a terminal is closed
    os.close(terminal)
    return shown.decode()


@pytest.fixture(name="no_nohup")
def _no_nohup():
    """Undo what nohup does to the tests: relaax-train ignores SIGHUP where its parent does."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)]
)
def test_a_signal_gives_every_process_time_to_save(procfile, number, status, no_nohup):
    process = subprocess.Popen(
        [TRAIN, procfile(one=OBEDIENT, two=OBEDIENT)], stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert process.stdout is not None
    printed = ""
    while printed.count("ready") < 2:
        printed += process.stdout.readline()
    process.send_signal(number)
    rest = process.stdout.read()
    process.stdout.close()
    assert rest.count("saved") == 2
    assert process.wait(60) == status


def test_processes_save_and_stop_when_the_output_is_closed(procfile, tmp_path):
    process = subprocess.Popen(
        [TRAIN, procfile(chatty=CHATTY)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(60) == 143
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert (tmp_path / "chatty.saved").exists()


def test_a_process_that_a_signal_ends_gives_the_status_that_a_shell_gives(procfile):
    assert run(procfile(killed="import os; os.kill(os.getpid(), 9)")).returncode == 137


#: Is killed at its first start, and exits with status 3 at its second when "other" is ready.
KILLED_ONCE = IMPATIENT.replace(
    "while not",
    """first = pathlib.Path(__file__).with_suffix(".first")
if not first.exists():
    import os, signal
    first.touch()
    os.kill(os.getpid(), signal.SIGKILL)
while not""",
)

SAYS_WHICH_START = KILLED_ONCE.replace(
    "first = pathlib",
    """import os
print("start", os.environ["RELAAX_INCARNATION"], flush=True)
first = pathlib""",
)

DYING = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"


class TestRestart:
    def test_a_process_that_is_killed_is_started_again_and_the_others_run_on(self, procfile):
        completed = run("--restart", procfile(first=KILLED_ONCE, other=OBEDIENT))
        assert completed.returncode == 3
        said = completed.stdout
        assert said.count("first was ended by signal 9: it is started again") == 1
        assert said.count("first started (pid=") == 2
        assert said.count("other  | ready") == 1
        assert "other  | saved" in said

    def test_it_knows_that_it_is_started_again(self, procfile):
        said = run("--restart", procfile(first=SAYS_WHICH_START, other=OBEDIENT)).stdout
        assert "first  | start 0" in said
        assert "first  | start 1" in said

    def test_it_is_also_started_again_where_a_shell_reports_that_it_was_killed(self, procfile):
        path = procfile(first=KILLED_ONCE, other=OBEDIENT)
        path.write_text(re.sub("first: exec (.*)", r"first: \1; exit $?", path.read_text()))
        completed = run("--restart", path)
        assert completed.returncode == 3
        assert completed.stdout.count("first was ended by signal 9: it is started again") == 1

    def test_one_that_is_killed_again_and_again_ends_all(self, procfile):
        completed = run("--restart", procfile(first=DYING, other=OBEDIENT))
        assert completed.returncode == 128 + signal.SIGKILL
        assert completed.stdout.count("it is started again") == 5
        assert "first was started again 5 times within 60 s: all others" in completed.stdout
        assert "first stopped (rc=-9)" in completed.stdout

    def test_one_that_ends_by_itself_ends_all(self, procfile):
        completed = run("--restart", procfile(first=IMPATIENT, other=OBEDIENT))
        assert completed.returncode == 3
        assert "started again" not in completed.stdout
        assert "first has ended with status 3, and was not killed: all others" in completed.stdout


def test_a_process_that_needs_some_time_to_save_is_not_killed(procfile):
    completed = run(procfile(first=IMPATIENT, other=SLOW))
    assert "other  | saved" in completed.stdout
    assert "SIGKILL" not in completed.stdout


def test_a_process_that_does_not_end_in_its_time_is_killed(procfile):
    completed = subprocess.run(
        [sys.executable, "-c", patched("runner.GRACE_S = 0.3"),
         procfile(first=IMPATIENT, other=STUBBORN)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "sending SIGKILL to other" in completed.stdout
    assert "other stopped (rc=-9)" in completed.stdout
    assert completed.returncode == 3


def test_processes_save_and_stop_when_the_launcher_is_killed(procfile, tmp_path):
    """One that does not is killed, and none of them shows a traceback."""
    path = procfile(chatty=CHATTY, other=STUBBORN)
    launcher = subprocess.Popen(
        [sys.executable, "-c", patched("runner.GRACE_S = 0.5"), path],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        wait_for((tmp_path / "other.ready").exists, "the start of the processes")
        wait_for((tmp_path / "chatty.ready").exists, "the start of the processes")
        started = psutil.Process(launcher.pid).children(recursive=True)
        assert len(started) == 4  # each, and the one that reads its output
    finally:
        launcher.kill()
    _, errors = launcher.communicate(timeout=60)
    assert "Traceback" not in errors
    _, running = psutil.wait_procs(started, timeout=60)
    assert not running
    assert (tmp_path / "chatty.saved").exists()


def patched(patch: str) -> str:
    return f"""if True:
        import sys
        from relaax.launcher import main, runner
        {patch}
        sys.exit(main.main())
    """


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot read"),
        ("", "names no process"),
        ("# x\n", "names no process"),
        ("a: x\na: y\n", "process names must be unique"),
        ("\udcff", "is not UTF-8 text"),
    ],
)
def test_a_procfile_that_cannot_be_used_is_named(tmp_path: Path, content, reason):
    path = tmp_path / "Procfile"
    if content is not None:
        path.write_bytes(content.encode(errors="surrogateescape"))
    completed = run(path)
    assert completed.returncode == 2
    assert "Traceback" not in completed.stderr
    assert reason in completed.stderr.splitlines()[-1]
    assert str(path) in completed.stderr.splitlines()[-1]


@pytest.mark.parametrize("arguments", [(), ("--serial",)])
def test_a_procfile_of_the_checkout_that_is_started_elsewhere_says_where_to_start_it(
    tmp_path: Path, arguments
):
    path = REPOSITORY / "Procfiles" / "cartpole.Procfile"
    completed = run(*arguments, path, cwd=tmp_path)
    assert completed.returncode == 2
    (said,) = completed.stderr.splitlines()
    assert "names config/da3c_cartpole.yaml, which is not below this folder" in said
    assert f"after 'cd {REPOSITORY}'" in said
    assert "relaax-new" in said
    assert completed.stdout == ""
    assert not list(tmp_path.iterdir())


def test_a_procfile_that_is_not_here_says_where_those_of_relaax_are(tmp_path: Path):
    completed = run("Procfiles/cartpole.Procfile", cwd=tmp_path)
    assert completed.returncode == 2
    (said,) = completed.stderr.splitlines()
    assert "RELAAX's checkout" in said
    assert "relaax-new" in said


class TestANewAlgorithm:
    @pytest.mark.parametrize("name", ["new", "deep/down", "empty"])
    def test_the_files_are_written_and_the_next_command_is_said(self, tmp_path: Path, name):
        (tmp_path / "empty").mkdir()
        completed = run("--new-algorithm", tmp_path / name)
        assert completed.returncode == 0
        names = {path.name for path in (tmp_path / name).iterdir()}
        assert names >= {"__init__.py", "agent.py", "config.py", "training.yaml", "Procfile"}
        assert f"cd {tmp_path / name}\n  relaax-train Procfile" in completed.stdout
        assert load_algorithm(tmp_path / name).Config({"state_size": 4, "action_size": 2})

    def test_a_folder_that_is_not_empty_is_refused_and_left_alone(self, tmp_path: Path):
        (tmp_path / "work.txt").write_text("months of it")
        completed = run("--new-algorithm", tmp_path)
        assert completed.returncode == 2
        reason = f"error: --new-algorithm: {tmp_path} is not empty: name a new folder\n"
        assert completed.stderr.endswith(reason)
        assert [path.name for path in tmp_path.iterdir()] == ["work.txt"]

    def test_a_file_is_no_folder(self, tmp_path: Path):
        (tmp_path / "file").touch()
        completed = run("--new-algorithm", tmp_path / "file")
        assert completed.returncode == 2
        assert "File exists" in completed.stderr

    @pytest.mark.parametrize("arguments", [(), ("Procfile", "--new-algorithm", "new")])
    def test_a_procfile_or_a_new_folder_must_be_given(self, arguments):
        completed = run(*arguments)
        assert completed.returncode == 2
        assert "--new-algorithm" in completed.stderr


def test_copies_of_servers_have_addresses_of_their_own(training: Training):
    """Two RLX servers on this machine, two shards, and three programs of environments in turn."""
    urls = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    training.configure(
        {**SMALL_DA3C, "max_global_step": 4_000}, {"shards": urls}, {"parameter-server": urls}
    )
    servers = [
        f"ps{n}: exec relaax-parameter-server --config {training.yaml} --shard {n}/2 --bind {url}\n"
        for n, url in enumerate(urls, 1)
    ]
    path = training.directory / "Procfile"
    path.write_text(
        f"{''.join(servers)}"
        f"rlx: exec relaax-rlx-server --config {training.yaml} --workers 1\n"
        f"env: exec {sys.executable} -m relaax.client.gymnasium_runner --count 2"
        " --seed $RELAAX_COPY"
        f" --env {training.paced('CartPole-v1')} --rlx-server {training.rlx_server_url}\n"
    )
    train = training.start("relaax-train", [str(TRAIN), str(path), "--concurrency", "rlx=2,env=3"])
    assert train.wait() == 0
    assert f"serving at {training.rlx_server_url}" in train.output()
    served = re.findall(r"(rlx\.\d) .* serves ", train.output())
    assert [served.count(name) for name in ("rlx.1", "rlx.2")] == [4, 2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--on", "mesos"], "must be one of ray=ADDRESS, ray, slurm, is 'mesos'"),
        (["--on", "slurm"], "--on slurm runs in an allocation, and here is none"),
        (["--on", "ray=127.0.0.1:1"], "--on ray: no cluster at 127.0.0.1:1"),
        (["--concurrency", "one"], "must be NAME=N,..., is 'one'"),
        (["--concurrency", "one=1.5"], "numbers of processes must be whole"),
        (["--concurrency", "two=2"], "--concurrency: the Procfile has no 'two'; it has one"),
        (["--gpus", "one=1"], "--gpus is for --on"),
        (["--on", "ray", "--cpus", "two=2"], "--cpus: the Procfile has no 'two'; it has one"),
    ],
)
def test_what_cannot_be_started_is_status_2_and_one_line(procfile, arguments, said):
    done = run(procfile(one=OBEDIENT), *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
