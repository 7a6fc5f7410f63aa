"""The files of deploy/: what they render to is valid, and says what our programs understand."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from programs import needs, program

from relaax.configuration import (
    load_learner,
    load_parameter_server,
    load_replay_server,
    load_rlx_server,
)
from relaax.configuration.access import begin_access
from relaax.net.access import current_access, require_guarded
from relaax.net.access.process_access import INSECURE, access_while
from relaax.server.certificates.secrets_folder import SecretsFolder

DEPLOY = Path(__file__).parents[3] / "deploy"
COMPOSE = DEPLOY / "compose"
DEPLOYMENT_PAGE = DEPLOY.parent / "docs" / "deployment.md"
KUBERNETES = DEPLOY / "kubernetes"
#: What the overlay with TLS and tokens is laid over, instead of base, where a user says so.
OFF_POLICY = "overlays/guarded over off-policy"
RENDERED = [
    "base",
    *(f"overlays/{path.name}" for path in sorted(KUBERNETES.glob("overlays/*"))),
    OFF_POLICY,
]

LOAD = {
    "relaax-parameter-server": load_parameter_server,
    "relaax-rlx-server": load_rlx_server,
    "relaax-learner": load_learner,
    "relaax-replay-server": load_replay_server,
}

#: Where containers find the file of the training.
CONFIG = "/etc/relaax/training.yaml"

#: Where containers find the files of TLS and tokens.
SECRETS = "/etc/relaax-secrets"

KUBECTL = program("kubectl")


@pytest.fixture(autouse=True)
def _not_insecure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(INSECURE, raising=False)


@pytest.fixture(name="secrets", scope="module")
def _secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What relaax-certificates makes."""
    folder = SecretsFolder(tmp_path_factory.mktemp("secrets"))
    folder.sign(["rlx-server"], 1, 1)
    folder.write_tokens(renew=False)
    return folder.path


def starts(words: list[str], training: Path) -> bool:
    """Check that the program understands its command line, and may listen where that says.

    Return whether TLS and tokens guard it.
    """
    options = LOAD[words[0]](
        [word.replace(CONFIG, str(training)) for word in words[1:]]
    ).options  # fmt: skip
    with access_while(current_access()):
        begin_access(options)
        access = current_access()
        assert options.http_bind is not None
        for address in (options.bind, options.http_bind):
            require_guarded(address, access)
    return not access.is_insecure


def write(files: dict[str, str], folder: Path, secrets: Path) -> Path:
    """Write what a container finds in the folder of its configuration; return the training."""
    for name, text in files.items():
        (folder / name).write_text(text.replace(SECRETS, str(secrets)))
    return folder / "training.yaml"


def compose(name: str = "compose.yaml") -> dict[str, Any]:
    services: dict[str, Any] = yaml.safe_load((COMPOSE / name).read_text())["services"]
    return services


def mounts(*services: dict[str, Any]) -> dict[str, str]:
    """Return what is mounted where; where two files name a place, the last one has it."""
    all_of_them = [mount for service in services for mount in service.get("volumes", ())]
    return {mount.split(":")[1]: mount.split(":")[0] for mount in all_of_them}


@pytest.mark.parametrize("name", ["compose.yaml", "guarded.yaml"])
def test_the_compose_files_follow_the_published_schema(name: str):
    checked = subprocess.run(
        [
            sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec",
            str(COMPOSE / name),
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("guarded", [False, True])
def test_servers_of_the_compose_files_start(guarded: bool, tmp_path: Path, secrets: Path):
    added = compose("guarded.yaml") if guarded else {}
    started = set()
    for name, service in compose().items():
        words = str(service.get("command", "")).split()
        if not words or words[0] not in LOAD:
            continue
        mounted = mounts(service, added.get(name, {}))
        files = {
            Path(place).name: (COMPOSE / file).read_text()
            for place, file in mounted.items()
            if Path(place).parent == Path(CONFIG).parent and (COMPOSE / file).is_file()
        }
        assert mounted.get(SECRETS) == ("./secrets/servers" if guarded else None)
        assert starts(words, write(files, tmp_path, secrets)) is guarded
        started.add(words[0])
    assert started == set(LOAD)


def test_a_container_finds_the_files_that_are_handed_out_to_it(secrets: Path):
    """deploy/containers/secrets makes folders, guarded.yaml mounts them."""
    script = (DEPLOY / "containers" / "secrets").read_text()
    lines = [line.split() for line in script.splitlines() if line.startswith("hand_out ")]
    handed_out = {folder: set(files) for _, folder, _, *files in lines}
    assert set.union(*handed_out.values()) == {path.name for path in secrets.iterdir()} - {"ca.key"}
    added = compose("guarded.yaml")
    access = yaml.safe_load((COMPOSE / "access.guarded.yaml").read_text())
    prometheus = (COMPOSE / "prometheus.guarded.yml").read_text()
    environments = added["environments"]
    for service, texts in {
        "rlx-server": access.values(),
        "environments": environments["environment"].values(),
        "prometheus": [word for word in prometheus.replace("}", ",").replace(",", " ").split()
                       if word.startswith("secrets/")],
    }.items():  # fmt: skip
        [folder] = [file for file in mounts(added[service]).values() if "secrets" in file]
        named = {Path(text).name for text in texts}
        assert named == handed_out[Path(folder).name], service


def test_prometheus_of_the_guarded_form_asks_the_same_servers():
    def jobs(name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = yaml.safe_load((COMPOSE / name).read_text())["scrape_configs"]
        return found

    guarded = jobs("prometheus.guarded.yml")
    shown = ("scheme", "tls_config", "authorization")
    assert all(set(shown) <= set(job) for job in guarded)
    assert [{key: job[key] for key in job if key not in shown} for job in guarded] == jobs(
        "prometheus.yml"
    )


def test_other_machines_reach_no_port_of_the_compose_file_until_a_user_says_so():
    variables = dict(
        line.split("=", 1)
        for line in (COMPOSE / ".env").read_text().splitlines()
        if "=" in line and not line.startswith("#")
    )
    ports = [port for service in compose().values() for port in service.get("ports", ())]
    assert "${ADDRESS:-127.0.0.1}:7001:7001" in ports
    assert variables["ADDRESS"] == "127.0.0.1"
    for port in ports:
        assert port.replace("${ADDRESS:-127.0.0.1}", "127.0.0.1").startswith("127.0.0.1:")


def test_containers_of_the_compose_file_may_do_little():
    for name, service in compose().items():
        if service["image"].startswith(("relaax-", "${ENVIRONMENT_IMAGE}")):
            assert service["read_only"], name
            assert service["cap_drop"] == ["ALL"], name


def test_files_that_the_compose_file_mounts_are_there():
    services = [*compose().values(), *compose("guarded.yaml").values()]
    found = [mount for service in services for mount in service.get("volumes", ())]
    files = [mount.split(":")[0] for mount in found if mount.startswith(".")]
    files = [name for name in files if not name.startswith("./secrets/")]
    assert files
    for name in files:
        assert (COMPOSE / name).is_file(), name


def test_a_machine_of_a_cloud_starts_its_server(tmp_path: Path, secrets: Path):
    """And those that docs/deployment.md names in the place of its command."""
    machine = yaml.safe_load((DEPLOY / "cloud" / "cloud-init.yaml").read_text())
    files = {file["path"]: file["content"] for file in machine["write_files"]}
    training = files[CONFIG].replace("/etc/relaax/secrets", SECRETS) + "algorithm: {name: da3c}\n"
    found = write({"training.yaml": training}, tmp_path, secrets)
    texts = [files["/etc/default/relaax"], DEPLOYMENT_PAGE.read_text()]
    commands = [words for text in texts for words in re.findall(r'COMMAND="([^"]*)"', text)]
    assert len(commands) == 3
    for command in commands:
        assert starts(command.replace("PARAMETER-SERVER", "ps").split(), found)
    fetches = files["/usr/local/sbin/relaax-fetch-secrets"]
    assert subprocess.run(["sh", "-n"], input=fetches, text=True, check=False).returncode == 0
    assert "ExecStartPre=/usr/local/sbin/relaax-fetch-secrets" in str(files)


def test_the_containers_of_the_page_start():
    """Those that are started by hand, with the image's own configuration."""
    text = DEPLOYMENT_PAGE.read_text().replace("\\\n", " ")
    found = re.findall(r"docker run .* (relaax-(?:parameter|rlx)-server --config .*)", text)
    assert len(found) == 2
    for command in found:
        config = re.sub("/opt/relaax/config", str(DEPLOY.parent / "config"), command)
        assert not starts(config.split(), Path())


def test_environments_of_a_cloud_find_what_is_handed_out_to_them():
    lines = (DEPLOY / "cloud" / "environments.env").read_text().splitlines()
    variables = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
    assert variables == compose("guarded.yaml")["environments"]["environment"]


@pytest.fixture(name="documents", scope="module", params=RENDERED)
def _documents(
    request: pytest.FixtureRequest, secrets: Path, tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    """What kubectl makes of a folder, once relaax-certificates has made the secrets."""
    folder = shutil.copytree(KUBERNETES, tmp_path_factory.mktemp("kubernetes") / "kubernetes")
    shutil.rmtree(folder / "overlays" / "guarded" / "secrets", ignore_errors=True)
    shutil.copytree(secrets, folder / "overlays" / "guarded" / "secrets")
    if request.param == OFF_POLICY:
        _lay_over_off_policy(folder / "overlays" / "guarded" / "kustomization.yaml")
    rendered = subprocess.run(
        [str(KUBECTL), "kustomize", str(folder / request.param.partition(" ")[0])],
        capture_output=True, text=True, check=False, env={**os.environ, "HOME": "/nonexistent"},
    )  # fmt: skip
    assert rendered.returncode == 0, rendered.stderr
    return list(yaml.safe_load_all(rendered.stdout))


def _lay_over_off_policy(kustomization: Path) -> None:
    """Do as its comment says."""
    text = kustomization.read_text()
    for before, after in (("  - ../../base\n", "  - ../off-policy\n"), ("  # - lea", "  - lea")):
        assert text.count(before) == 1
        text = text.replace(before, after)
    kustomization.write_text(text)


def is_guarded(documents: list[dict[str, Any]]) -> bool:
    """Return whether TLS and tokens are to guard these pods."""
    return any(d["metadata"]["name"].startswith("server-secrets") for d in documents)


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
    import kubernetes_validate  # here: it takes a second, in each process that collects tests

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
def test_servers_in_pods_start(documents: list[dict[str, Any]], tmp_path: Path, secrets: Path):
    [files] = [d["data"] for d in documents if d["kind"] == "ConfigMap"]
    training = write(files, tmp_path, secrets)
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
        assert starts(words, training) is is_guarded(documents)
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


@NEEDS_KUBECTL
def test_pods_have_the_secrets_that_they_need_and_no_others(documents: list[dict[str, Any]]):
    if not is_guarded(documents):
        volumes = [each for _, pod in pods(documents) for each in pod["volumes"]]
        assert not any("secret" in each for each in volumes)
        return
    held = {d["metadata"]["name"]: set(d["data"]) for d in documents if d["kind"] == "Secret"}
    assert not any("ca.key" in files for files in held.values())
    for name, pod in pods(documents):
        [container] = pod["containers"]
        [volume] = [each["secret"] for each in pod["volumes"] if "secret" in each]
        files = held[volume["secretName"]]
        if name == "environments":
            named = {each["value"] for each in container["env"]}
        else:
            [text] = [d["data"]["access.yaml"] for d in documents if d["kind"] == "ConfigMap"]
            named = set(yaml.safe_load(text).values())
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                assert container[probe]["httpGet"]["scheme"] == "HTTPS"
        assert named == {f"{SECRETS}/{file}" for file in files}
        assert {"name": "secrets", "mountPath": SECRETS, "readOnly": True} in (
            container["volumeMounts"]
        )
        # The group of the user reads them, and others do not.
        assert (volume["defaultMode"], pod["securityContext"]["fsGroup"]) == (0o440, 10001)
