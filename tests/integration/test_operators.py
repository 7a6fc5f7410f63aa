"""What operators have: health checks, a real Prometheus, and the dashboard and alerts for it."""

import json
import re
import signal
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml
from operators import ask, figure, figures, is_ready
from processes import COMMANDS, REPOSITORY, SMALL_SAC, Process, Training, free_port, wait_for
from programs import needs, program

pytestmark = pytest.mark.integration

DEPLOY = REPOSITORY / "deploy"
NEEDS_PROMETHEUS = needs(
    program("prometheus") is not None, "needs Prometheus (apt install prometheus)"
)

#: The servers of a training with a learner; the job in Prometheus is the command.
SERVERS = ("parameter-server", "rlx-server", "learner", "replay-server")

#: Figures that a training has only where somebody evaluates.
OF_EVALUATIONS = {"relaax_mean_evaluation"}

#: Of a training with TLS alone.
OF_TLS = {"relaax_certificate_expires_timestamp_seconds", "relaax_grpc_connections_total"}


class Prometheus:
    """A Prometheus with the shipped configuration, other addresses, and less patience.

    It has the jobs of ``targets``, and finds trials by files.
    """

    def __init__(self, training: Training, targets: dict[str, str]) -> None:
        self._url = f"127.0.0.1:{free_port()}"
        content = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
        content["global"] = {"scrape_interval": "500ms", "evaluation_interval": "500ms"}
        content["rule_files"] = [str(DEPLOY / "prometheus" / "alerts.yml")]
        *jobs, trials = content["scrape_configs"]
        assert {job["job_name"] for job in jobs} == {f"relaax-{name}" for name in SERVERS}
        for job in jobs:
            own = targets.get(job["job_name"])
            job["static_configs"] = [] if own is None else [{"targets": [own]}]
        for each in trials["file_sd_configs"]:
            (pattern,) = each["files"]
            each["files"] = [str(training.directory / Path(pattern).relative_to("/srv/relaax"))]
            each["refresh_interval"] = "1s"
        path = training.directory / "prometheus.yml"
        path.write_text(yaml.safe_dump(content))
        data = training.directory / "prometheus"
        self.process: Process = training.start(
            "prometheus",
            ["prometheus", f"--config.file={path}", f"--storage.tsdb.path={data}",
             f"--web.listen-address={self._url}"],
        )  # fmt: skip
        wait_for(lambda: ask(self._url, "/-/ready")[0] == 200, "Prometheus' start")

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://{self._url}/api/v1/{path}", timeout=20) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._get(f"query?query={urllib.parse.quote(expression)}")[
            "result"
        ]
        return found

    def names(self) -> set[str]:
        """The names of all figures, those of histograms as a whole included."""
        names = set(self._get("label/__name__/values"))
        return names | {name.removesuffix("_bucket") for name in names}

    def rules(self) -> list[dict[str, Any]]:
        return [rule for group in self._get("rules")["groups"] for rule in group["rules"]]


@pytest.fixture(name="ports")
def _ports() -> dict[str, str]:
    return {name: f"127.0.0.1:{free_port()}" for name in SERVERS}


@pytest.fixture(name="sac")
def _sac(training: Training, ports: dict[str, str]) -> Training:
    """A training with a learner and a replay server, and a port for operators on each."""
    replay = f"127.0.0.1:{free_port()}"
    own = {name: {"http-bind": ports[name]} for name in SERVERS}
    training.configure(
        SMALL_SAC,
        parameter_server=own["parameter-server"] | {"goal-return": 1e6, "checkpoint-interval": 1},
        rlx_server=own["rlx-server"] | {"workers": 1},
        learner=own["learner"] | {"replay-servers": [replay]},
        replay_server=own["replay-server"] | {"bind": replay},
    )
    training.start_parameter_server()
    training.start_replay_server(replay)
    training.start_learner()
    training.start_rlx_server()
    training.start_environments(2, env="Pendulum-v1", is_paced=True)
    return training


def metric_names(text: str) -> set[str]:
    return set(re.findall(r"\brelaax_\w+", text))


@NEEDS_PROMETHEUS
def test_prometheus_finds_all_that_dashboard_and_alerts_ask_for(
    sac: Training, ports: dict[str, str]
) -> None:
    prometheus = Prometheus(sac, {f"relaax-{name}": url for name, url in ports.items()})
    wait_for(lambda: len(prometheus.query("up == 1")) == len(SERVERS), "all targets up")
    rules = (DEPLOY / "prometheus" / "alerts.yml").read_text()
    dashboard = (DEPLOY / "grafana" / "relaax.json").read_text()
    wanted = metric_names(rules) | metric_names(dashboard)
    assert len(wanted) > 25
    wanted -= OF_EVALUATIONS | OF_TLS
    wait_for(lambda: wanted <= prometheus.names(), f"all of {sorted(wanted)}")
    for panel in json.loads(dashboard)["panels"]:
        for target in panel.get("targets", []):
            prometheus.query(target["expr"].replace("$__rate_interval", "1m"))  # they are valid
    wait_for(lambda: {rule["health"] for rule in prometheus.rules()} == {"ok"}, "all alerts")
    (step,) = prometheus.query("relaax_global_step")
    wait_for(
        lambda: (
            float(prometheus.query("relaax_global_step")[0]["value"][1]) > float(step["value"][1])
        ),
        "steps",
    )


@NEEDS_PROMETHEUS
def test_prometheus_finds_the_workers_of_a_trial_while_it_runs(training: Training) -> None:
    command = str(COMMANDS / "relaax-experiment")
    example = str(REPOSITORY / "examples" / "experiments" / "cartpole.py")
    shown = subprocess.run(
        [command, "show", example, "-e", "cartpole-remote"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    twin = training.directory / "twin.yaml"
    twin.write_text(shown.replace("60000", "10000000").replace("count: 4", "count: 2"))
    run = training.start(
        "experiment", [command, "run", str(twin), "-f", "one", "--http-port-base", "7600"]
    )
    prometheus = Prometheus(training, {})
    wait_for(lambda: len(prometheus.query("up == 1")) == 6, "all workers up")
    found = [each["metric"] for each in prometheus.query("up")]
    names = ("experiment", "trial", "worker", "worker_id", "process", "policy")
    assert {tuple(each.get(name) for name in names) for each in found} == {
        ("cartpole-remote", "one", "parameter_server", "0", "default-ps", "default"),
        ("cartpole-remote", "one", "trainer", "0", "default-trainer0", "default"),
        ("cartpole-remote", "one", "policy", "0", "policy0", "default"),
        ("cartpole-remote", "one", "policy", "1", "policy1", "default"),
        ("cartpole-remote", "one", "actor", "0", "actors0", None),
        ("cartpole-remote", "one", "actor", "1", "actors0", None),
    }
    for part in ("queue_wait", "inference", "network", "environment"):
        each = f'relaax_{part}_seconds_count{{worker="actor", policy="default"}} > 0'
        wait_for(lambda each=each: len(prometheus.query(each)) == 2, f"{part} of both actors")
    run.signal(signal.SIGINT)
    assert run.wait() == 130
    wait_for(lambda: not prometheus.query("up"), "no worker looked for after the end")


def test_figures_of_all_servers_agree_with_one_another(
    sac: Training, ports: dict[str, str]
) -> None:
    rlx, learner, replay = (ports[name] for name in ("rlx-server", "learner", "replay-server"))
    server = ports["parameter-server"]
    wait_for(lambda: all(is_ready(url) for url in ports.values()), "all servers ready")
    wait_for(lambda: figures(learner).get(("relaax_learner_updates_total",), 0) > 20, "updates")
    wait_for(lambda: figure(server, "relaax_training_environments") == 2, "environments")
    wait_for(lambda: figure(rlx, "relaax_environments") == 2, "environments at the RLX server")
    assert figure(rlx, "relaax_connections") == 2
    stored = figure(replay, "relaax_replay_steps_stored_total")
    acted = figure(rlx, "relaax_steps_total")
    assert 0 < stored <= acted
    assert figure(rlx, "relaax_batch_size_sum") >= acted
    wait_for(lambda: figure(server, "relaax_global_step") >= stored, "counted steps")
    of_learner = figures(learner)
    updates = of_learner["relaax_learner_updates_total",]
    learnt = of_learner["relaax_learner_items_total",]
    assert abs(learnt - 16 * updates) <= 16  # it may be in the middle of an update
    assert learnt <= figure(replay, "relaax_replay_items_drawn_total")
    wait_for(lambda: figure(server, "relaax_checkpoints_saved_total") >= 1, "a checkpoint")
    assert figure(server, "relaax_checkpoint_age_seconds") < 60
    wait_for(
        lambda: ("relaax_scalar", "learner/learn time") in figures(server), "the newest scalars"
    )


def test_without_the_parameter_server_nobody_is_ready_and_all_are_alive(
    sac: Training, ports: dict[str, str]
) -> None:
    others = [ports[name] for name in SERVERS if name != "parameter-server"]
    wait_for(lambda: all(is_ready(url) for url in ports.values()), "all servers ready")
    sac.processes[0].kill()
    away = (503, "the parameter server does not answer\n")
    wait_for(lambda: all(ask(url, "/readyz") == away for url in others), "nobody to be ready")
    assert all(ask(url, "/healthz") == (200, "ok\n") for url in others)
    assert figure(ports["rlx-server"], "relaax_parameter_server_up") == 0
    sac.start_parameter_server()
    wait_for(lambda: all(is_ready(url) for url in ports.values()), "all servers ready again")


def test_a_worker_that_hangs_is_replaced_and_its_environments_come_back(
    training: Training, ports: dict[str, str]
) -> None:
    url = ports["rlx-server"]
    training.start_parameter_server()
    server = training.start_rlx_server(
        "--workers", "1", "--http-bind", url, "--worker-timeout", "2"
    )
    training.start_environments(2, is_paced=True)
    wait_for(lambda: figure(url, "relaax_environments") == 2, "the environments")
    worker = int(server.says(r"worker 1 starts \(pid (\d+)\)")[1])
    (stuck,) = [child for child in server.children() if child.pid == worker]
    stuck.send_signal(signal.SIGSTOP)
    server.says(f"worker {worker} has hung for more than 2 s: killed")
    steps = figure(url, "relaax_steps_total")
    assert figure(url, "relaax_workers_lost_total", "hung") == 1
    wait_for(lambda: figure(url, "relaax_steps_total") > steps + 100, "more steps")
    wait_for(lambda: figure(url, "relaax_environments") == 2, "both environments again")


@NEEDS_PROMETHEUS
@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "rules", "alerts.yml"),
        ("check", "config", "prometheus.yml"),
        ("test", "rules", "alerts_test.yml"),
    ],
)
def test_promtool_finds_nothing_wrong(arguments: tuple[str, ...]) -> None:
    completed = subprocess.run(
        ["promtool", *arguments], cwd=DEPLOY / "prometheus", capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert completed.returncode == 0, completed.stdout + completed.stderr


def test_a_replica_is_ready_while_it_hears_its_primary(training: Training, tmp_path: Path) -> None:
    url = f"127.0.0.1:{free_port()}"
    primary = training.start_parameter_server()
    training.start_command(
        "relaax-parameter-server", "--bind", f"127.0.0.1:{free_port()}",
        "--replica-of", training.parameter_server_url, "--http-bind", url,
    )  # fmt: skip
    wait_for(lambda: is_ready(url), "the replica")
    primary.kill()
    wait_for(lambda: "the primary has not answered" in ask(url, "/readyz")[1], "no primary")
