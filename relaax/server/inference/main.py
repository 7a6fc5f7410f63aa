"""The command ``relaax-inference-server``, which wires the process together."""

import secrets
import sys
import time
from contextlib import ExitStack, closing
from typing import NoReturn

from relaax.address import Address
from relaax.algorithm_base import BatchAgentBase, ConfigBase, NullExperience, ParameterLink, Phase
from relaax.configuration import leave_at_once, load_inference_server, run_command
from relaax.configuration.access import begin_server
from relaax.configuration.algorithm_loader import Algorithm, load_algorithm, make_config
from relaax.configuration.commands import INFERENCE_SERVER
from relaax.errors import ConfigurationError
from relaax.inference.batching import Batching
from relaax.inference.service import InferencePort
from relaax.names import NamedPlace, Registration
from relaax.names.places import reachable_address, registry_at
from relaax.net.listening import naming_bind, require_allowed
from relaax.parameters.training_watch import TrainingWatch, first_answer, wait_for_version
from relaax.processes.allocator import keep_memory
from relaax.processes.identifiers import LATEST
from relaax.processes.periodic_tasks import Task, run_tasks
from relaax.processes.stop_signal import Stop, StopSignal
from relaax.server.inference.counts import InferenceCounts
from relaax.telemetry.live_lines import LiveLineWriter
from relaax.telemetry.operators import OperatorPort, operator_listener
from relaax.telemetry.operators.port import away
from relaax.telemetry.training import worker_runs

#: So many environments are chosen for at once, and the network is made ready for as many.
MOST_AT_ONCE = 128

#: How long one call at the start waits for the parameter server.
WAIT_S = 2.0

#: How long questions are still answered when the training is over: workers end meanwhile.
LINGER_S = 1.5

#: Threads of calls must not keep the one that evaluates waiting: Python's default is 5 ms.
_THREAD_SWITCH_S = 0.0002

#: How often the live line is looked at.
LOOK_S = 1.0


def main() -> NoReturn:
    """Run an inference server, and end with its exit status."""
    leave_at_once(run_command(INFERENCE_SERVER.name, lambda: serve(sys.argv[1:])))


def serve(arguments: list[str]) -> int:
    """Serve as the command line says, until asked to stop; return the exit status."""
    configuration = load_inference_server(arguments)
    options = configuration.options
    begin_server(options, INFERENCE_SERVER.name)
    require_allowed(bind=options.bind, http_bind=options.http_bind)
    stop = StopSignal()
    keep_memory()
    sys.setswitchinterval(_THREAD_SWITCH_S)
    algorithm = load_algorithm(configuration.algorithm.directory)
    config = make_config(algorithm, configuration.algorithm)
    algorithm.require_learner(config, INFERENCE_SERVER.name)
    algorithm.require_remote_inference(config)
    with ExitStack() as resources:
        operators = resources.enter_context(
            closing(OperatorPort(operator_listener(options.http_bind)))
        )
        control, address = algorithm.BridgeControl(), str(options.parameter_server)
        link = resources.enter_context(closing(control.parameter_server_stub(address)))
        link.wait_at_most(WAIT_S)
        runs = worker_runs(options.wandb_runs, resources)
        if runs is not None:
            link.copy_metrics_to(runs)
        if not _wait_for(link, options.give_up, stop):
            return 0
        watch = TrainingWatch(link, lambda: 0, give_up_s=options.give_up)
        resources.enter_context(closing(watch))

        def ends() -> bool:
            return _is_over(watch) or watch.is_abandoned

        if options.policy_identifier != LATEST:
            link.follow(options.policy_identifier)
            if not wait_for_version(link, ends, stop):
                watch.require_known()
                return 0
        agent = resources.enter_context(closing(_agent(algorithm, config, link)))
        counts = InferenceCounts(metrics=link.metrics())
        batching = Batching(agent.inference(), MOST_AT_ONCE, counts.evaluated)
        with naming_bind():
            port = resources.enter_context(closing(InferencePort(options.bind, batching)))
        if options.name is not None:
            register(options.name, port.address, stop, options.give_up, resources)
        operators.ready_if(away(watch.silence_s))
        operators.show(counts.metrics)
        operators.begin()
        print(f"choosing at {port.address}", flush=True)
        line = LiveLineWriter("inference", counts.figures)
        tasks = [Task(LOOK_S, line.write_if_due)]
        run_tasks(tasks, stop, ends)
        if _is_over(watch):
            time.sleep(LINGER_S)
        watch.require_known()
    return 0


def _wait_for(link: ParameterLink, give_up_s: float, stop: StopSignal) -> bool:
    """Return whether the parameter server has answered, before ``stop``."""
    whom = "the parameter server"
    answer = first_answer(link.phase, whom, stop, give_up_s=give_up_s, pause_s=LOOK_S)
    return answer is not None


def register(
    place: NamedPlace, address: Address, stop: Stop, give_up_s: float, resources: ExitStack
) -> None:
    """Let others find the server at ``address`` by a name until ``resources`` are closed.

    A registry that is away is asked again; Abandoned after ``give_up_s``.
    """
    registry = resources.enter_context(closing(registry_at(place.registry)))
    try:
        reachable = str(reachable_address(address, place))
    except OSError as error:
        raise ConfigurationError(f"--name: {error}") from error

    def registered() -> Registration:
        # Another name each time: a call whose answer was lost may have registered the last one.
        return Registration(registry, f"{place.name}/{secrets.token_hex(8)}", reachable)

    whom = f"the registry of {place} (--name)"
    registration = first_answer(registered, whom, stop, give_up_s=give_up_s, pause_s=LOOK_S)
    if registration is not None:
        resources.enter_context(closing(registration))


def _agent(algorithm: Algorithm, config: ConfigBase, link: ParameterLink) -> BatchAgentBase:
    """Return the agent whose policies are asked; all that calls need is compiled."""
    agent = algorithm.make_batch_agent(
        config, link, secrets.randbits(32), False, experience=NullExperience(), answers=True
    )
    agent.warm_up(MOST_AT_ONCE)
    return agent


def _is_over(watch: TrainingWatch) -> bool:
    """Return whether the parameter server is about to end; until then there are evaluations."""
    return watch.phase is Phase.CLOSING


if __name__ == "__main__":
    main()
