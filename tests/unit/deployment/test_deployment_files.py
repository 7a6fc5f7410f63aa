"""The files of deploy/: what they render to is valid, and says what our programs understand."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from programs import needs, program

from relaax.server.common.checkpoint_place import spool_of
from relaax.server.common.configuration import (
    AwsAccess,
    S3Location,
    load_learner,
    load_parameter_server,
    load_replay_server,
    load_rlx_server,
)

DEPLOY = Path(__file__).parents[3] / "deploy"
COMPOSE = DEPLOY / "compose"
KUBERNETES = DEPLOY / "kubernetes"
RENDERED = ["base", *(f"overlays/{path.name}" for path in sorted(KUBERNETES.glob("overlays/*")))]

LOAD = {
    "relaax-parameter-server": load_parameter_server,
    "relaax-rlx-server": load_rlx_server,
    "relaax-learner": load_learner,
    "relaax-replay-server": load_replay_server,
}

#: Where containers find the file of the training.
CONFIG = "/etc/relaax/training.yaml"

KUBECTL = program("kubectl")


def loads(words: list[str], training: Path) -> None:
    """Check that the program understands its command line, and the file of the training."""
    load = LOAD[words[0]]
    options = [word.replace(CONFIG, str(training)) for word in words[1:]]
    assert ":" in str(load(options).options.http_bind)


def compose() -> dict[str, Any]:
    services: dict[str, Any] = yaml.safe_load((COMPOSE / "compose.yaml").read_text())["services"]
    return services


def test_the_compose_file_follows_the_published_schema():
    checked = subprocess.run(
        [
            sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec",
            str(COMPOSE / "compose.yaml"),
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_servers_of_the_compose_file_understand_their_command_lines():
    commands = [str(service.get("command", "")).split() for service in compose().values()]
    servers = [words for words in commands if words and words[0] in LOAD]
    assert {words[0] for words in servers} == set(LOAD)
    for words in servers:
        loads(words, COMPOSE / "training.yaml")


def test_containers_of_the_compose_file_may_do_little():
    for name, service in compose().items():
        if service["image"].startswith(("relaax-", "${ENVIRONMENT_IMAGE}")):
            assert service["read_only"], name
            assert service["cap_drop"] == ["ALL"], name


def test_files_that_the_compose_file_mounts_are_there():
    mounts = [mount for service in compose().values() for mount in service.get("volumes", ())]
    files = [mount.split(":")[0] for mount in mounts if mount.startswith(".")]
    assert files
    for name in files:
        assert (COMPOSE / name).is_file(), name


def test_what_waits_for_s3_outlives_a_container(monkeypatch: pytest.MonkeyPatch):
    """Without --aws-spool; the container may be removed, and the volume stays."""
    dockerfile = (DEPLOY / "containers" / "Dockerfile").read_text()
    for line in dockerfile.splitlines():
        if line.startswith("ENV "):
            for variable in line.split()[1:]:
                monkeypatch.setenv(*variable.split("=", 1))
    assert "\nWORKDIR /training\n" in dockerfile
    spool = spool_of(S3Location("bucket", "checkpoints"), AwsAccess())
    assert spool.is_relative_to("/training")
    assert ":/training " in (DEPLOY / "cloud" / "cloud-init.yaml").read_text()


@pytest.fixture(name="documents", scope="module", params=RENDERED)
def _documents(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    """What kubectl makes of a folder."""
    rendered = subprocess.run(
        [str(KUBECTL), "kustomize", str(KUBERNETES / request.param)],
        capture_output=True, text=True, check=False, env={**os.environ, "HOME": "/nonexistent"},
    )  # fmt: skip
    assert rendered.returncode == 0, rendered.stderr
    return list(yaml.safe_load_all(rendered.stdout))


def mib(quantity: str) -> int:
    """Return the MiB of Kubernetes' 512Mi or 2Gi."""
    return int(quantity[:-2]) * {"Mi": 1, "Gi": 1024}[quantity[-2:]]


def pods(documents: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for document in documents:
        if document["kind"] in {"Deployment", "StatefulSet"}:
            yield document["metadata"]["name"], document["spec"]["template"]["spec"]


NEEDS_KUBECTL = needs(KUBECTL is not None, "needs kubectl (apt install kubernetes-client)")


@NEEDS_KUBECTL
def test_kubernetes_accepts_what_is_rendered(documents: list[dict[str, Any]]):
    kinds = {document["kind"] for document in documents}
    assert {
        "ConfigMap", "Deployment", "HorizontalPodAutoscaler", "Namespace", "NetworkPolicy",
        "PodDisruptionBudget", "Secret", "Service", "StatefulSet",
    } <= kinds  # fmt: skip
    for document in documents:
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
        assert document["kind"] == "Namespace" or document["metadata"]["namespace"] == "relaax"


@NEEDS_KUBECTL
def test_all_servers_of_a_cluster_have_the_image_that_is_named(documents: list[dict[str, Any]]):
    """A name without a tag is one that no kustomization has replaced: no registry has it."""
    images = {name: pod["containers"][0]["image"] for name, pod in pods(documents)}
    assert images.pop("environments") == "relaax-gym:latest"
    assert set(images.values()) == {"relaax-servers:latest"}, images


@NEEDS_KUBECTL
def test_rlx_servers_grow_by_connections_and_memory(documents: list[dict[str, Any]]):
    [scaler] = [d["spec"] for d in documents if d["kind"] == "HorizontalPodAutoscaler"]
    assert scaler["scaleTargetRef"]["name"] == "rlx-server"
    connections, memory = scaler["metrics"]
    assert connections["pods"]["metric"]["name"] == "relaax_connections"
    assert memory["resource"]["name"] == "memory"
    [limit] = [
        pod["containers"][0]["resources"]["limits"]["memory"]
        for name, pod in pods(documents) if name == "rlx-server"
    ]  # fmt: skip
    # More of them are started before one refuses connections for want of memory.
    assert mib(memory["resource"]["target"]["averageValue"]) < mib(limit)


@NEEDS_KUBECTL
def test_pods_may_do_little(documents: list[dict[str, Any]]):
    for name, pod in pods(documents):
        assert pod["securityContext"]["runAsNonRoot"], name
        assert not pod["automountServiceAccountToken"], name
        for container in pod["containers"]:
            allowed = container["securityContext"]
            assert allowed["readOnlyRootFilesystem"], name
            assert not allowed["allowPrivilegeEscalation"], name
            assert allowed["capabilities"] == {"drop": ["ALL"]}, name
            assert container["resources"]["limits"]["memory"], name


@NEEDS_KUBECTL
def test_servers_in_pods_understand_their_command_lines(
    documents: list[dict[str, Any]], tmp_path: Path
):
    texts = [d["data"]["training.yaml"] for d in documents if d["kind"] == "ConfigMap"]
    assert len(texts) == 1
    training = tmp_path / "training.yaml"
    training.write_text(texts[0])
    seen = set()
    for name, pod in pods(documents):
        arguments = pod["containers"][0]["args"]
        if name == "environments":
            continue
        if arguments[0] == "sh":  # which knows the number of its pod
            words = subprocess.run(
                [*arguments[:2], arguments[2].replace("exec ", "printf '%s\\n' ", 1)],
                capture_output=True, text=True, check=True, env={"HOSTNAME": f"{name}-1"},
            ).stdout.split()  # fmt: skip
            assert any(f"{name}-1." in word or "2/" in word for word in words)
        else:
            words = arguments
        loads(words, training)
        seen.add(words[0])
    assert {"relaax-parameter-server", "relaax-rlx-server"} <= seen


@NEEDS_KUBECTL
def test_addresses_in_the_training_are_those_of_pods(documents: list[dict[str, Any]]):
    sets = {
        document["metadata"]["name"]: document["spec"]
        for document in documents
        if document["kind"] == "StatefulSet"
    }
    [text] = [d["data"]["training.yaml"] for d in documents if d["kind"] == "ConfigMap"]
    named = {word for word in text.replace("[", " ").replace("]", " ").replace(",", " ").split()
             if word.endswith((":7000", ":7003"))}  # fmt: skip
    assert named
    for address in named:
        pod, service = address.split(":")[0].split(".")
        name, _, number = pod.rpartition("-")
        assert sets[name]["serviceName"] == service
        assert int(number) < sets[name]["replicas"]
