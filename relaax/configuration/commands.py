"""The commands: the help and the options of each."""

from dataclasses import dataclass
from typing import Generic

from relaax.configuration.merging import Options
from relaax.configuration.options import (
    ActorOptions,
    ExportOptions,
    InferenceServerOptions,
    LearnerOptions,
    ParameterServerOptions,
    ReplayServerOptions,
    RlxServerOptions,
)


@dataclass(frozen=True)
class Command(Generic[Options]):
    """A command, which is the name of its section in the YAML file, too."""

    name: str
    options: type[Options]
    description: str
    #: Shown below the flags.
    examples: str
    #: A key with its value, in the help's example of a section.
    key: str
    #: Whether the YAML file may be the first argument, without ``--config``.
    takes_file_first: bool = False


PARAMETER_SERVER = Command(
    "relaax-parameter-server",
    ParameterServerOptions,
    "Hold the global network, apply the workers' gradients, write checkpoints and metrics.",
    examples="""\
On one machine:
  relaax-parameter-server --config config.yaml --bind localhost:7000 \\
    --checkpoint-dir training/checkpoints --metrics-dir training/metrics

On a cluster, with a section access (relaax-certificates) or --insecure:
  relaax-parameter-server --config config.yaml --bind 0.0.0.0:7000 \\
    --checkpoint-aws-s3 my_bucket training/checkpoints --aws-keys aws-keys.yaml \\
    --metrics-dir training/metrics --metrics-aws-s3 my_bucket training/metrics
""",
    key="--bind: localhost:7000",
)

RLX_SERVER = Command(
    "relaax-rlx-server",
    RlxServerOptions,
    "Serve environments: workers choose their actions and learn from their rewards.",
    examples="""\
On one machine:
  relaax-rlx-server --config config.yaml --bind localhost:7001 --parameter-server localhost:7000

On a cluster, behind a load balancer, with a section access or --insecure:
  relaax-rlx-server --config config.yaml --bind 0.0.0.0:7001 \\
    --parameter-server parameter-server:7000 --timeout 120
""",
    key="--bind: localhost:7001",
)

LEARNER = Command(
    "relaax-learner",
    LearnerOptions,
    "Learn from the steps that workers deliver, and publish policies at the parameter server. "
    "For algorithms that have a learner, such as sac.",
    examples="""\
On one machine:
  relaax-learner --config config.yaml --bind localhost:7002 --parameter-server localhost:7000 \\
    --checkpoint-dir training/learner
""",
    key="--bind: localhost:7002",
)

REPLAY_SERVER = Command(
    "relaax-replay-server",
    ReplayServerOptions,
    "Store the steps that workers deliver, and let the learner draw of them. For algorithms "
    "that have a learner, such as sac, where the learner itself is not to store the steps.",
    examples="""\
Two servers, of which each stores a share:
  relaax-replay-server --config config.yaml --bind localhost:7003 \\
    --replay-servers localhost:7003 localhost:7004
  relaax-replay-server --config config.yaml --bind localhost:7004 \\
    --replay-servers localhost:7003 localhost:7004
""",
    key="--bind: localhost:7003",
)

INFERENCE_SERVER = Command(
    "relaax-inference-server",
    InferenceServerOptions,
    "Choose the actions of workers and actors that have no policy of their own. For algorithms "
    "that have a learner in a process of its own.",
    examples="""\
Two servers that RLX servers and actors share:
  relaax-inference-server --config config.yaml --bind localhost:7005
  relaax-inference-server --config config.yaml --bind localhost:7006
  relaax-rlx-server --config config.yaml --inference-servers localhost:7005 localhost:7006
""",
    key="--bind: localhost:7005",
)

ACTOR = Command(
    "relaax-actor",
    ActorOptions,
    "Act in Gymnasium environments, with environment and policy in one process. For "
    "algorithms that have a learner, such as sac.",
    examples="""\
Beside a parameter server and a learner, without an RLX server:
  relaax-actor config.yaml --env Pendulum-v1 --actors 2

To evaluate the published policies by their modes, 100 episodes:
  relaax-actor config.yaml --env Pendulum-v1 --mode eval_deterministic --episodes 100
""",
    key="--parameter-server: localhost:7000",
    takes_file_first=True,
)

EXPORT = Command(
    "relaax-export",
    ExportOptions,
    "Write a trained policy for programs that have no RELAAX. The files take states, and return "
    "the actions that relaax-rlx-server --exploit chooses.",
    examples="""\
Of the latest checkpoint in the place that the YAML file names:
  relaax-export --config config.yaml --onnx policy.onnx --saved-model policy

Of the best one, which is somewhere else:
  relaax-export --config config.yaml --checkpoint best --checkpoint-dir there --onnx policy.onnx
""",
    key="--checkpoint: best",
)

COMMANDS = (PARAMETER_SERVER, RLX_SERVER, LEARNER, REPLAY_SERVER, INFERENCE_SERVER, ACTOR, EXPORT)
