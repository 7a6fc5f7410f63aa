"""The names that users import. A change here is a change for them: it belongs in CHANGELOG.md."""

import importlib

import pytest

PUBLIC = {
    "relaax.algorithm_base": """
        AgentBase BatchAgentBase BridgeBase BridgeControlBase Checkpoint CheckpointMismatch
        ConfigBase DEFAULT EnvironmentInfo EvaluatedPolicy Evaluation Evaluations EvaluatorBase
        ExperienceSink FloatVector Gradient Input InvalidState Learner Lineage Metrics
        MetricsSink NewValues NullExperience NullMetrics NullSaver ParameterLink ParameterServerBase
        Parameters Phase PublishedInfo RefusesCalls RunningParameterServer Saver Section Shard
        Slice Statistics Step StepCounter Transitions Update ValueFeed ValueSink ValueSource Values
        Version require_same_fingerprint
    """,
    "relaax.assembly": """
        Assembly ExperienceParts MethodBuilder OffPolicyBuilder OnPolicyBuilder ParameterParts
        PolicyParts PopulationBuilder WorkerParts bundled prepare_to_fork
    """,
    "relaax.client": """
        AgentReport Backoff Client ClientAccess EXECUTED FINAL Failure MultiAgentClient START Steps
        TERMINATED TRUNCATED TcpTransport TlsFiles VectorClient
    """,
    "relaax.parameters": "Bridge BridgeControl",
    "relaax.learning.distributions": """
        ActionHead ActionValues Bernoulli Categorical Deterministic DiagonalGaussian Distribution
        GraphActionHead GraphDistribution Maskable MultiDiscrete SquashedGaussian ValuesOfChoices
        distribution_of
    """,
    "relaax.learning.networks": """
        Convolution Dense Encoder Head LSTM Layer LayerNorm Network POLICY ParameterManifest
        NetworkParameters Reshape SharedDense TensorSpec TransposedConvolution
        default_network initial_parameters read_network
    """,
    "relaax.parameters.optimizers": """
        Adam AdamSettings Optimizer OptimizerSections RMSProp RMSPropSettings SGD
        clip_by_global_norm
    """,
    "relaax.learning.rollouts": """
        Columns DISTRIBUTION LOG_PROBABILITY NOISE ROLLOUTS RolloutBatch RolloutStore
    """,
    "relaax.compat.memoire": """
        Bind Conn MemoryClosed Mode NotReady Proxy ReplayAway ReplayMemory
        ReplayMemoryClient ReplayMemoryServer
    """,
    "relaax.learning.steps": """
        ACTION EpisodeBatch EpisodeRecorder EpisodeRows LIKELIHOOD StepRecorder column_of
        episode_schema episodes_of extras_in observations_in rollouts_in rollouts_of schema_of
        side_by_side weighed_rollouts_of
    """,
    "relaax.compat.surreal": """
        ACTOR_MODES Acted Actor ActorMode ActorSession Buffer Config EVAL_DETERMINISTIC
        EVAL_STOCHASTIC FIFOBuffer Learner Module ModuleDict ParameterArrays PrioritizedBuffer
        PullRule Settings SurrealAlgorithm TRAINING UniformBuffer
    """,
    "relaax.protocol": "FrameConnection MessageConnection PeerClosed",
    "relaax.protocol.json": "ClientCodec ServerCodec decode_agent",
}


@pytest.mark.parametrize("package", PUBLIC)
def test_a_package_exports_these_names(package: str):
    module = importlib.import_module(package)
    assert sorted(module.__all__) == sorted(PUBLIC[package].split())
    assert all(hasattr(module, name) for name in module.__all__)


def test_the_client_has_the_methods_of_the_seed():
    client = importlib.import_module("relaax.client").Client
    methods = {name for name in dir(client) if not name.startswith("_")}
    assert methods == {"disconnect", "init", "metrics", "reset", "send", "truncate"}
