"""Servers that are killed between what they do and their answer: nothing is counted twice."""

import json
import signal
import sys
import textwrap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import failpoints
import numpy as np
import pytest
from processes import REPOSITORY, SMALL_SAC, Process, Training, free_port, repeated, wait_for
from safetensors.numpy import load_file

from relaax.algorithm_base import Values
from relaax.parameters import Bridge, stub
from relaax.replay.client.stub import ReplayStub
from relaax.replay.client.writer import ReplayWriter
from relaax.replay.schema import Schema
from relaax.replay.step_batch import StepBatch
from relaax.replay.storage import START

pytestmark = pytest.mark.integration

#: What a writer sends at once.
STEPS = 64


class TestParameterServer:
    """It saves ten times a second, if not said otherwise, and the test is its worker."""

    @pytest.fixture(name="start")
    def _start(self, training: Training, monkeypatch: pytest.MonkeyPatch):
        def start(fault: str = "", interval_s: float = 0.1) -> Process:
            monkeypatch.setenv(failpoints.VARIABLE, fault)
            return training.start_parameter_server("--checkpoint-interval", str(interval_s))

        return start

    def saved(self, training: Training, step: int) -> None:
        wait_for((training.checkpoints / f"cp-{step}.json").exists, f"step {step} being saved")

    @pytest.mark.parametrize(("fault", "saved"), [("kill@3", 20), ("wait:600@3", 30)])
    def test_steps_that_were_counted_before_it_was_killed_are_counted_once(
        self, training: Training, start, monkeypatch: pytest.MonkeyPatch, fault, saved
    ):
        monkeypatch.setattr(stub, "FIRST_WAIT_S", 60.0)  # the kill comes before a repetition
        server = start(f"bridge.counted={fault}")
        with (
            closing(Bridge(training.parameter_server_url)) as worker,
            closing(Bridge(training.parameter_server_url)) as another,
        ):
            assert worker.increment_global_t(10) == 10
            assert another.increment_global_t(10) == 20
            self.saved(training, 20)
            with ThreadPoolExecutor(1) as thread:
                third = thread.submit(worker.increment_global_t, 10)
                if "wait" in fault:  # a checkpoint has them when it is killed
                    self.saved(training, saved)
                    server.kill()
                server.wait()
                start().says(f"global step is {saved}\n")
                assert third.result() == 30
            assert another.increment_global_t(10) == 40
            assert worker.increment_global_t(10) == 50

    def stop_and_start_while(
        self, training: Training, start, call: Callable[[Bridge], object]
    ) -> tuple[int, int, int]:
        """Stop one that saves for a while, and start it again, while a worker calls.

        Return how often that has called, the global step restored, and the last one.
        """
        server = start("saver.data=wait:1.5", interval_s=600)
        with (
            closing(Bridge(training.parameter_server_url)) as worker,
            closing(Bridge(training.parameter_server_url)) as another,
            repeated(lambda: call(worker)) as called,
        ):
            wait_for(lambda: another.increment_global_t(0) > 100, "steps")
            server.signal(signal.SIGTERM)
            assert server.wait() == 0
            restored = int(start().says(r"global step is (\d+)\n")[1])
            wait_for(lambda: another.increment_global_t(0) > restored, "steps behind those saved")
            return called(), restored, another.increment_global_t(0)

    def test_no_step_is_lost_while_one_that_is_stopped_saves(self, training: Training, start):
        counted, restored, last = self.stop_and_start_while(
            training, start, lambda worker: worker.increment_global_t(1)
        )
        assert counted == last > restored > 100

    def test_a_gradient_that_comes_while_one_that_is_stopped_saves_is_lost_with_a_warning(
        self, training: Training, start, caplog: pytest.LogCaptureFixture
    ):
        newest: list[Values] = []

        def send(worker: Bridge) -> None:
            values = newest.pop() if newest else worker.get_values()
            gradient = np.zeros_like(values.vector)
            newest.append(worker.synchronize(gradient, 20, values.version))

        sent, restored, last = self.stop_and_start_while(training, start, send)
        assert caplog.text.count("a gradient, which counts 20 steps, may be lost") == 1
        assert 20 * (sent - 1) == last > restored > 100

    def test_a_gradient_is_applied_at_most_once_whenever_it_or_the_worker_is_killed(
        self, training: Training, start, monkeypatch: pytest.MonkeyPatch
    ):
        server = start("bridge.applied=kill@3")
        with closing(Bridge(training.parameter_server_url)) as worker:
            values = worker.get_values()
            gradient = np.ones_like(values.vector)
            for _ in range(2):
                values = worker.synchronize(gradient, 10, values.version)
            self.saved(training, 20)
            for next_fault in ("bridge.apply=kill", ""):
                with ThreadPoolExecutor(1) as thread:
                    lost = thread.submit(worker.synchronize, gradient, 10, values.version)
                    server.wait()
                    server = start(next_fault)
                    values = lost.result()
                assert (values.global_t, values.version.number) == (20, 2)
            monkeypatch.setenv(failpoints.VARIABLE, "bridge.call=kill@2")
            run_until_killed(
                training,
                f"""
                from relaax.parameters import Bridge
                bridge = Bridge({training.parameter_server_url!r})
                values = bridge.get_values()
                for _ in range(9):
                    values = bridge.synchronize(values.vector, 10, values.version)
                """,
            )
            assert worker.increment_global_t(0) == 30

    def test_one_that_may_not_write_for_a_moment_says_so_and_saves_the_next_time(
        self, training: Training, start
    ):
        server = start("directory.write=EROFS@3")  # the second checkpoint's data
        with closing(Bridge(training.parameter_server_url)) as worker:
            for step in (10, 20):
                worker.increment_global_t(10)
                self.saved(training, step)
        server.says("no checkpoint was saved in ")
        server.says(r"cannot write .*/cp-20\..*: Read-only file system")


class TestReplayServer:
    """It saves ten times a second, and the test is its writer."""

    @pytest.fixture(name="start")
    def _start(self, training: Training, monkeypatch: pytest.MonkeyPatch):
        self.place = training.directory / "replay"
        self.url = f"127.0.0.1:{free_port()}"
        options = {"checkpoint-dir": str(self.place), "checkpoint-interval": 0.1}
        training.configure({**SMALL_SAC, "updates_per_step": None}, replay_server=options)

        def start(fault: str = "") -> Process:
            monkeypatch.setenv(failpoints.VARIABLE, fault)
            return training.start_replay_server(self.url)

        return start

    @pytest.mark.parametrize(
        "fault", ["replay.store=kill@2", "replay.stored=kill@2", "replay.stored=wait:600@2"]
    )
    def test_steps_whose_answer_it_was_killed_before_are_stored_once(self, start, fault):
        server = start(fault)
        stub = ReplayStub(self.url, call_timeout_s=0.5)
        schema, _ = stub.describe()
        writer = ReplayWriter(stub, schema)
        writer.put(numbered(schema, 0))
        wait_for(lambda: self.saved() == numbers(1), "the first steps being saved")
        writer.put(numbered(schema, 1))
        if "wait" in fault:  # they are saved before it is killed
            wait_for(lambda: self.saved() == numbers(2), "all steps being saved")
            server.kill()
        server.wait()
        assert writer.waiting == STEPS
        again = start()
        wait_for(lambda: writer.waiting == 0, "an answer")
        writer.close()
        again.signal(signal.SIGTERM)
        assert again.wait() == 0
        assert self.saved() == numbers(2)

    def test_one_that_is_killed_while_it_copies_restores_what_it_has_saved_before(self, start):
        server = start("replay.copy=kill@2")
        stub = ReplayStub(self.url)
        schema, _ = stub.describe()
        writer = ReplayWriter(stub, schema)
        writer.put(numbered(schema, 0))
        wait_for(lambda: self.saved() == numbers(1), "the first steps being saved")
        writer.put(numbered(schema, 1))
        server.wait()
        assert "restored 64 steps from" in start().output()
        writer.close()

    @pytest.mark.parametrize(("fault", "messages"), [("writer.send", 1), ("writer.stored", 2)])
    def test_a_writer_that_is_killed_leaves_each_step_at_most_once(
        self, training: Training, start, monkeypatch, fault, messages
    ):
        start()
        monkeypatch.setenv(failpoints.VARIABLE, f"{fault}=kill@2")
        run_until_killed(
            training,
            f"""
            sys.path.append({str(REPOSITORY / "tests/integration")!r})
            from test_failpoints import ReplayStub, ReplayWriter, numbered
            stub = ReplayStub({self.url!r})
            schema, _ = stub.describe()
            writer = ReplayWriter(stub, schema)
            for number in range(9):
                writer.put(numbered(schema, number))
                writer.flush(60)
            """,
        )
        wait_for(lambda: self.saved() == numbers(messages), "what was stored being saved")

    def saved(self) -> list[int]:
        """The numbers of the steps that were saved last."""
        for manifest in self.place.glob("*/cp-*.json"):
            try:
                content = load_file(manifest.with_name(json.loads(manifest.read_text())["data"]))
            except FileNotFoundError:  # another one has just taken its place
                continue
            order = np.argsort(content["storage/serials"])
            return content["storage/column/observation"][order, 0].astype(int).tolist()
        return []


def run_until_killed(training: Training, program: str) -> None:
    """Run a worker's program until a failpoint kills it."""
    tests = str(REPOSITORY / "tests")
    begin = f"import sys\nsys.path.append({tests!r})\nimport failpoints\nfailpoints.install()\n"
    process = training.start("worker", [sys.executable, "-c", begin + textwrap.dedent(program)])
    assert process.wait() == -signal.SIGKILL


def numbers(messages: int) -> list[int]:
    return list(range(STEPS * messages))


def numbered(schema: Schema, message: int) -> StepBatch:
    """Steps of environment 0, with their numbers."""
    count = np.arange(STEPS * message, STEPS * (message + 1))
    rows = schema.rows(STEPS)
    rows["observation"][:] = count[:, None]
    flags = np.where(count == 0, START, 0).astype(np.uint8)
    return StepBatch(np.zeros(STEPS, np.int64), flags, rows)
