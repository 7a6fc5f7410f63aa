"""The processes of a trial as manifests of Kubernetes: Jobs, Deployments and Services.

Nothing is started: ``kubectl apply --kustomize`` does that.
"""

import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from relaax.address import Address
from relaax.configuration.commands import (
    ACTOR,
    INFERENCE_SERVER,
    LEARNER,
    PARAMETER_SERVER,
    REPLAY_SERVER,
)
from relaax.errors import ConfigurationError
from relaax.launcher.described import Described, Placement, told
from relaax.processes.run_variables import COPY, LINE, RUN

#: Labels of all pods: the trial's, and the process's own.
TRIAL, PROCESS = "relaax-trial", "relaax-process"

#: Where pods find the trial's files, the folder of what is learnt, and a Secret that may be there.
FILES, LEARNT, SECRETS = "/etc/relaax", "/training", "/etc/relaax-secrets"
_SECRET_NAME = "relaax-secrets"  # noqa: S105  # its files are what nobody sees

#: Programs that end with the training; others serve until they are stopped.
_END = (PARAMETER_SERVER.name, LEARNER.name, REPLAY_SERVER.name, ACTOR.name)

#: Programs that keep nothing.
_KEEP_NOTHING = (ACTOR.name, INFERENCE_SERVER.name)

#: The port of a server that lets the system choose one: in a pod all are free.
_ANY_PORT = 7005

#: How long a process may take for its last checkpoint, and how often a Job starts a process again.
_GRACE_S, _BACKOFF_LIMIT = 120, 6

#: A name of a pod, and of the host in it, has 63 characters, and a Job adds an index.
_LONGEST_NAME = 57

#: The user of the images in deploy/containers.
_USER = 10001

#: The index of a pod among those of its Job.
_INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"


@dataclass(frozen=True)
class Manifests:
    """What is the same for all processes of a trial.

    ``name`` is a name of Kubernetes; ``counts`` says how many pods the Job of a line has. ``files``
    are those that processes read, by their paths in ``FILES``.
    """

    name: str
    image: str
    timeout_s: float
    placement: Placement
    counts: Mapping[str, int]
    files: Sequence[str]

    def of(self, processes: Sequence[Described]) -> dict[str, str]:
        """Return files of YAML, by their names: one for each process, and one for storage.

        ConfigurationError for two processes whose names Kubernetes cannot tell apart.
        """
        names = {each.name: dns_name(self.name, each.name) for each in processes}
        for name, long in names.items():
            if other := next((o for o in names if o != name and names[o] == long), None):
                raise ConfigurationError(f"{name} and {other} have one name in Kubernetes, {long}")
        places = {
            each.name: Address(names[each.name], each.listens.port or _ANY_PORT)
            for each in processes
            if each.listens is not None
        }
        found = {"storage.yaml": _text([self._claim()])}
        for process in told(processes, places).values():
            documents = [*self._process(process, names[process.name], places.get(process.name))]
            found[f"{names[process.name].removeprefix(f'{self.name}-')}.yaml"] = _text(documents)
        return found

    def kustomization(self, manifests: Sequence[str], folder: str) -> str:
        """Return the file that holds all together; ``folder`` has the files beside it."""
        content = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": list(manifests),
            "configMapGenerator": [
                {"name": self.name, "files": [f"{_key(f)}={folder}/{f}" for f in self.files]}
            ],
        }
        return _text([content])

    def _process(
        self, process: Described, name: str, place: Address | None
    ) -> Iterator[dict[str, Any]]:
        """Yield a Job or a Deployment, and the Service of a server."""
        labels = {TRIAL: self.name, PROCESS: name}
        metadata = {"name": name, "labels": labels}
        pod = {"metadata": {"labels": labels}, "spec": self._pod(process, name, place)}
        if process.program in _END:
            count = self.counts.get(process.name, 1)
            several = {"completions": count, "parallelism": count, "completionMode": "Indexed"}
            yield {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": metadata,
                "spec": {
                    "backoffLimit": _BACKOFF_LIMIT * count,
                    "activeDeadlineSeconds": math.ceil(self.timeout_s),
                    **(several if count > 1 else {}),
                    "template": pod,
                },
            }
        else:
            yield {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": metadata,
                "spec": {
                    "replicas": 1,
                    "strategy": {"type": "Recreate"},
                    "selector": {"matchLabels": {PROCESS: name}},
                    "template": pod,
                },
            }
        if place is not None:
            yield {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": metadata,
                "spec": {
                    "clusterIP": "None",  # the address of the pod itself, of which there is one
                    "publishNotReadyAddresses": True,
                    "selector": {PROCESS: name},
                    "ports": [{"name": "grpc", "port": place.port}],
                },
            }

    def _pod(self, process: Described, name: str, place: Address | None) -> dict[str, Any]:
        files = [{"key": _key(file), "path": file} for file in self.files]
        volumes: dict[str, tuple[str, dict[str, Any]]] = {
            "files": (FILES, {"configMap": {"name": self.name, "items": files}}),
            "secrets": (SECRETS, {"secret": {
                "secretName": _SECRET_NAME, "optional": True, "defaultMode": 0o440,
            }}),
            "tmp": ("/tmp", {"emptyDir": {}}),  # noqa: S108  # the container's own
            "training": (LEARNT, {"emptyDir": {}} if process.program in _KEEP_NOTHING else {
                "persistentVolumeClaim": {"claimName": self.name},
            }),
        }  # fmt: skip
        return {
            # A server listens at its own name, which leads to its pod also within that.
            **({} if place is None else {"hostname": name}),
            "restartPolicy": "OnFailure" if process.program in _END else "Always",
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": _GRACE_S,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": _USER,
                "runAsGroup": _USER,
                "fsGroup": _USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            **self._placed(),
            "containers": [self._container(process, {key: at for key, (at, _) in volumes.items()})],
            "volumes": [{"name": key, **source} for key, (_, source) in volumes.items()],
        }

    def _placed(self) -> dict[str, Any]:
        """Return whether pods of the trial are on as many nodes as possible, or on as few."""
        node = {"topologyKey": "kubernetes.io/hostname"}
        selected = {"labelSelector": {"matchLabels": {TRIAL: self.name}}}
        if self.placement is Placement.SPREAD:
            rule = {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", **node, **selected}
            return {"topologySpreadConstraints": [rule]}
        term = {"weight": 100, "podAffinityTerm": {**node, **selected}}
        preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [term]}
        return {"affinity": {"podAffinity": preferred}}

    def _container(self, process: Described, mounts: Mapping[str, str]) -> dict[str, Any]:
        needs, command = process.needs, process.command
        memory = f"{round(needs.memory_gib * 1024)}Mi"
        gpus = {"nvidia.com/gpu": math.ceil(needs.gpus)} if needs.gpus else {}
        variables = {LINE: process.line, RUN: self.name, "PYTHONUNBUFFERED": "true"}
        if not gpus:
            variables["CUDA_VISIBLE_DEVICES"] = ""
        env: list[dict[str, Any]] = [{"name": k, "value": v} for k, v in variables.items()]
        if self.counts.get(process.name, 1) > 1:
            env.append({"name": COPY, "valueFrom": {"fieldRef": {"fieldPath": _INDEX}}})
        return {
            "name": "process",
            "image": self.image,
            "command": [] if command is None else command.started(),
            "env": env,
            "resources": {
                "requests": {"cpu": f"{needs.cpus:g}", "memory": memory},
                "limits": {"memory": memory, **gpus},
            },
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            },
            "volumeMounts": [{"name": key, "mountPath": at} for key, at in mounts.items()],
        }

    def _claim(self) -> dict[str, Any]:
        """Return the storage of what is learnt, which pods on several nodes share."""
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": self.name, "labels": {TRIAL: self.name}},
            "spec": {
                "accessModes": ["ReadWriteMany"],
                "resources": {"requests": {"storage": "10Gi"}},
            },
        }


def dns_name(*parts: str) -> str:
    """Return a name that Kubernetes takes, which ends with a hash where letters were replaced."""
    written = "-".join(parts)
    name = re.sub("[^a-z0-9]+", "-", written.lower()).strip("-")
    if not name[:1].isalpha():
        name = f"trial-{name}"
    if name != written:
        name += f"-{hashlib.sha256(written.encode()).hexdigest()[:6]}"
    if len(name) > _LONGEST_NAME:
        raise ConfigurationError(
            f"{name!r} is too long for Kubernetes, which takes {_LONGEST_NAME} characters: give "
            "the experiment, the policy or the trial (-f) a shorter name"
        )
    return name


def _key(file: str) -> str:
    """Return the key of a file in a ConfigMap, which has no folders."""
    return re.sub(r"[^\w.-]", "_", file.replace("/", "."), flags=re.ASCII)


def _text(documents: Sequence[Mapping[str, Any]]) -> str:
    return yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=100)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        """Repeat a value in each of its places: people read and change the file."""
        return True
