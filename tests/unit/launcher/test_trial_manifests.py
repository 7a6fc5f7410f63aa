"""``relaax-experiment run --on kubernetes``: what kubectl makes of it, and what others say."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from cartpole_processes import EXAMPLE, PROCESSES, programs_of
from experiment_parts import INLINE, actor, buffer, experiment, trainer
from programs import needs, program

from relaax.configuration import (
    load_actor,
    load_inference_server,
    load_learner,
    load_parameter_server,
)
from relaax.configuration.addresses import known_addresses
from relaax.experiments.files import load_experiment
from relaax.experiments.trial import Trial
from relaax.experiments.written import to_yaml
from relaax.launcher import experiment as command

KUBECTL = program("kubectl")
NEEDS_KUBECTL = needs(KUBECTL is not None, "needs kubectl (apt install kubernetes-client)")
LOADERS = {
    "relaax-parameter-server": load_parameter_server,
    "relaax-learner": load_learner,
    "relaax-inference-server": load_inference_server,
    "relaax-actor": load_actor,
}
NAME = "cartpole-remote-trial1"


@pytest.fixture(name="run")
def _run(tmp_path, monkeypatch, capsys):
    """Runs the command in a folder of its own; what it returns and prints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RELAAX_INSECURE", raising=False)
    (tmp_path / "access.yaml").write_text("--insecure: true\n")

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["relaax-experiment", *map(str, words)])
        status = command.main()
        said = capsys.readouterr()
        return status, said.out + said.err

    return run


def render(run, *more, file=EXAMPLE, name="cartpole-remote"):
    words = ["-e", name, "--on", "kubernetes", "--image", "my/relaax:1", "--access", "access.yaml"]
    status, said = run("run", file, *words, *more)
    assert status == 0, said
    return Path("training", "experiments", name, "trial1", "kubernetes")


def rendered(folder):
    """What kubectl makes of a folder."""
    done = subprocess.run(
        [str(KUBECTL), "kustomize", str(folder)],
        capture_output=True, text=True, check=False, env={**os.environ, "HOME": "/nonexistent"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def pods(documents):
    """The process of each Job and Deployment, with how many there are."""
    for document in documents:
        if document["kind"] in ("Job", "Deployment"):
            spec = document["spec"]
            count = spec.get("completions", spec.get("replicas", 1))
            name = document["metadata"]["name"].removeprefix(f"{NAME}-")
            yield name, count, document["kind"], spec["template"]["spec"]


@NEEDS_KUBECTL
def test_kubernetes_accepts_what_is_rendered(run):
    import kubernetes_validate  # here: it takes a second, in each process that collects tests

    documents = rendered(render(run))
    for document in documents:
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
    kinds = {name: kind for name, _, kind, _ in pods(documents)}
    ends = {"default-ps": "Job", "default-trainer0": "Job", "actors0": "Job"}
    assert kinds == {**ends, "policy0": "Deployment", "policy1": "Deployment"}
    services = {d["metadata"]["name"] for d in documents if d["kind"] == "Service"}
    servers = ("default-ps", "default-trainer0", "policy0", "policy1")
    assert services == {f"{NAME}-{server}" for server in servers}
    (claim,) = (d for d in documents if d["kind"] == "PersistentVolumeClaim")
    keeps = {
        name for name, _, _, pod in pods(documents)
        if {"claimName": claim["metadata"]["name"]} in
        [volume.get("persistentVolumeClaim") for volume in pod["volumes"]]
    }  # fmt: skip
    assert keeps == {"default-ps", "default-trainer0"}


def with_a_buffer(folder):
    """An experiment whose trainer draws from a buffer, in a file."""
    described = experiment([actor([INLINE], ["steps"])], [], [trainer()], buffers=[buffer()])
    (folder / "buffered.yaml").write_text(to_yaml(described))
    return folder / "buffered.yaml", described.name


@NEEDS_KUBECTL
@pytest.mark.parametrize(
    ("name", "has"),
    [
        ("pbt", {"population0": "Deployment"}),
        ("league", {"population0": "Deployment", "exploiter-ps": "Job"}),
        ("", {"default-buffer0": "Job", "default-trainer0": "Job"}),
    ],
)
def test_kubernetes_accepts_populations_and_buffers(run, tmp_path, name, has):
    import kubernetes_validate

    file, name = (EXAMPLE.with_name(f"{name}.py"), name) if name else with_a_buffer(tmp_path)
    documents = rendered(render(run, file=file, name=name))
    for document in documents:
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
    kinds = {each.partition("-trial1-")[2]: kind for each, _, kind, _ in pods(documents)}
    assert kinds.items() >= has.items()


@NEEDS_KUBECTL
def test_pods_are_the_processes_of_the_other_engines(run, tmp_path):
    found = {}
    for name, count, _, pod in pods(rendered(render(run))):
        (container,) = pod["containers"]
        asked = container["resources"]["requests"]
        process = (container["command"][0], int(asked["cpu"]), int(asked["memory"][:-2]))
        copies = [name] if count == 1 else [f"{name}.{n}" for n in range(1, count + 1)]
        found |= dict.fromkeys(copies, process)
    assert found == PROCESSES
    # And here, where actors that are alike are one process, and nothing is asked for.
    trial = Trial(
        load_experiment(EXAMPLE, "cartpole-remote"),
        tmp_path / "one",
        iter(range(7100, 7200)).__next__,
    )
    trial.write()
    here = programs_of(tmp_path / "one")
    assert here == {name.partition(".")[0]: what[0] for name, what in PROCESSES.items()}
    (actors,) = (words for name, words in trial.lines() if name == "actors0")
    assert actors[actors.index("--actors") + 1] == "4"


@NEEDS_KUBECTL
def test_processes_in_pods_read_their_files_and_find_each_other(run, tmp_path):
    documents = rendered(render(run))
    hosts = {d["metadata"]["name"] for d in documents if d["kind"] == "Service"}
    (files,) = (d["data"] for d in documents if d["kind"] == "ConfigMap")
    for _, _, _, pod in pods(documents):
        (mounted,) = (each["configMap"] for each in pod["volumes"] if "configMap" in each)
        for item in mounted["items"]:
            path = tmp_path / "pod" / item["path"]
            path.parent.mkdir(parents=True, exist_ok=True)
            text = files[item["key"]]
            assert str(tmp_path) not in text
            path.write_text(text.replace("/etc/relaax", str(tmp_path / "pod")))
        words = pod["containers"][0]["command"]
        words = [word.replace("/etc/relaax", str(tmp_path / "pod")) for word in words]
        options = LOADERS[words[0]](words[1:]).options
        if words[0] == "relaax-actor":
            assert {str(each) for each in options.moved.values()} == {
                f"{NAME}-default-ps:7100", f"{NAME}-default-trainer0:7101"
            }  # fmt: skip
            assert pod["containers"][0]["env"][-1]["name"] == "RELAAX_COPY"
        else:
            assert options.bind.host == pod["hostname"]
            assert {each.host for each in known_addresses(options)} <= hosts


@NEEDS_KUBECTL
def test_an_environment_of_a_file_goes_with_the_files(run, tmp_path):
    (tmp_path / "plant.py").write_text("class Plant: ...\n")
    shown = run("show", EXAMPLE, "-e", "cartpole")[1]
    (tmp_path / "twin.yaml").write_text(shown.replace("CartPole-v1", "plant.py:Plant"))
    documents = rendered(render(run, file="twin.yaml", name="cartpole"))
    (files,) = (d["data"] for d in documents if d["kind"] == "ConfigMap")
    assert "class Plant: ...\n" in files.values()
    commands = [pod["containers"][0]["command"] for _, _, _, pod in pods(documents)]
    (words,) = (words for words in commands if words[0] == "relaax-actor")
    last = len(words) - words[::-1].index("--env")  # a later one beats an earlier one
    assert words[last] == "/etc/relaax/environments/plant.py:Plant"


def test_manifests_stay_where_new_ones_are_refused(run):
    folder = render(run)
    before = {path: path.read_text() for path in folder.rglob("*") if path.is_file()}
    shown = run("show", EXAMPLE, "-e", "cartpole-remote")[1]
    Path("twin.yaml").write_text(shown.replace("type_: ppo", "type_: ppoo"))
    words = ["--on", "kubernetes", "--image", "my/relaax:2", "--access", "access.yaml"]
    status, said = run("run", "twin.yaml", "-e", "cartpole-remote", *words)
    assert status == 2
    assert "did you mean ppo?" in said
    assert {path: path.read_text() for path in folder.rglob("*") if path.is_file()} == before


def test_other_commands_name_kubectl_for_a_trial_in_kubernetes(run):
    render(run)
    for name, ask in (
        ("status", "get jobs,deployments,pods"),
        ("logs", "logs --prefix --tail=-1"),
        ("stop", "delete jobs,deployments"),
    ):
        status, said = run(name, "-e", "cartpole-remote")
        assert status == 2
        assert f"ask kubectl {ask} --selector relaax-trial={NAME}" in said


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "--on kubernetes needs --image NAME"),
        (["--image", "x", "--restart"], "--restart: no effect with --on kubernetes"),
        (["--image", "x", "--wandb"], "--wandb: no effect with --on kubernetes"),
        (["--image", "x", "--http-port-base", "7300"], "--http-port-base: no effect with --on kub"),
        (["--image", "x", "--gpus", "2"], "--gpus 2: no effect with --on kubernetes"),
        (["--image", "x"], "give --access FILE with the files that 'relaax-certificates"),
        (["--image", "x", "--access", "access.yaml", "-f", "t" * 60], "is too long for Kubernetes"),
    ],
)
def test_what_kubernetes_does_not_do_is_refused(run, words, why):
    status, said = run("run", EXAMPLE, "-e", "cartpole", "--on", "kubernetes", *words)
    assert status == 2
    assert why in said
