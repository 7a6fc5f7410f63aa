"""A trial in a folder of manifests, for ``kubectl apply --kustomize``."""

import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from relaax.configuration.commands import ACTOR
from relaax.errors import ConfigurationError
from relaax.experiments.trial import Trial
from relaax.experiments.written import NamedExperiment
from relaax.launcher.check import check
from relaax.launcher.described import Described, Needs, Placement, copied, described
from relaax.launcher.engines.kubernetes import FILES, LEARNT, TRIAL, Manifests, dns_name
from relaax.launcher.trial_commands import TrialPlace

#: Of servers: each is in a pod of its own.
_FIRST_PORT = 7100

#: Folders in that of the manifests.
_FILES, _ENVIRONMENTS = "files", "environments"

#: The folders of manifests until all of them are written, and of those before.
_NEW, _OLD = "kubernetes.new", "kubernetes.old"


@dataclass(frozen=True)
class ManifestOptions:
    """Options of ``relaax-experiment run --on kubernetes``; ``gpus`` as of ``Trial``."""

    image: str
    timeout_s: float
    placement: Placement
    gpus: Sequence[str] | None
    registry: str | None
    access: Mapping[str, Any] | str | None


def needs_of(trial: Trial) -> dict[str, Needs]:
    """Return by line what each process of a trial needs on a cluster."""
    return {
        name: Needs(each.cpu, each.gpu if name in trial.gpus else 0.0, each.mem / 1024)
        for name, each in trial.resources().items()
    }


def write_manifests(
    place: TrialPlace, experiment: NamedExperiment, options: ManifestOptions
) -> None:
    """Write the manifests of a trial anew, and the files that its processes read.

    ConfigurationError for what Kubernetes does not do; the manifests of before stay then.
    """
    folder = place.manifests.with_name(_NEW)
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was refused
    files = folder / _FILES
    trial = Trial(
        experiment,
        Path(LEARNT) / place.experiment / place.trial,
        count(_FIRST_PORT).__next__,
        options.gpus,
        options.registry,
        options.access,
        is_on_cluster=True,
        files=files,
    )
    if any(info.host_key or info.watch_keys for info in trial.information().values()):
        raise ConfigurationError(
            "worker_info: host_key and watch_keys: no effect with --on kubernetes, whose Jobs end "
            "by themselves: leave them out"
        )
    for path, text in trial.files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    processes = copied(described(trial.commands()), {}, needs_of(trial))
    if found := check(processes, on_one_machine=False).mistakes:
        raise ConfigurationError("; ".join(found))
    processes = [_with_environment(each, files / _ENVIRONMENTS) for each in processes]
    paths = sorted(str(path.relative_to(files)) for path in files.rglob("*") if path.is_file())
    manifests = Manifests(
        dns_name(place.experiment, place.trial),
        options.image,
        options.timeout_s,
        options.placement,
        trial.counts(),
        paths,
    )
    texts = manifests.of(processes)
    texts["kustomization.yaml"] = manifests.kustomization(list(texts), _FILES)
    for name, text in texts.items():
        (folder / name).write_text(text.replace(str(files), FILES), encoding="utf-8")
    for path in trial.files():
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(str(files), FILES), encoding="utf-8")
    before = place.manifests.with_name(_OLD)
    shutil.rmtree(before, ignore_errors=True)
    if place.manifests.exists():
        place.manifests.rename(before)
    folder.rename(place.manifests)
    shutil.rmtree(before, ignore_errors=True)
    place.record.unlink(missing_ok=True)  # status and others look at pods from now on


def next_steps(place: TrialPlace) -> str:
    """Return in sentences how the manifests of a trial are applied."""
    folder = shlex.quote(str(place.manifests))
    selector = f"{TRIAL}={place.name_in_kubernetes}"
    return f"""\
{place} in {place.manifests}
start it:                 kubectl apply --kustomize {folder}
look at it:               kubectl get pods --selector {selector}
stop it:                  kubectl delete jobs,deployments --selector {selector}
let it go on after that:  kubectl apply --kustomize {folder}
remove it:                kubectl delete --kustomize {folder}  (with what it has learnt)"""


def _with_environment(process: Described, folder: Path) -> Described:
    """Return an actor whose environment is a class in a file, with a copy of this file."""
    env = str(process.options.env) if process.program == ACTOR.name else ""
    written, _, kind = env.rpartition(":")
    if not written.endswith(".py") or process.command is None:
        return process
    copy = folder / Path(written).name
    folder.mkdir(exist_ok=True)
    try:
        text = Path(written).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"cannot read {written}: {error.strerror}") from error
    if copy.exists() and copy.read_text(encoding="utf-8") != text:
        raise ConfigurationError(f"two files of environments have the name {copy.name}: rename one")
    copy.write_text(text, encoding="utf-8")
    command = process.command.with_arguments(process.word, ("--env", f"{copy}:{kind}"))
    return replace(process, text=command.text, command=command)
