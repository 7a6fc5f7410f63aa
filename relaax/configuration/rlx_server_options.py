"""The options of ``relaax-rlx-server``. A field is a YAML key and a command-line flag at once."""

from relaax.address import Address
from relaax.configuration.option_base import (
    DeliveringOptions,
    FollowingOptions,
    ReadingOptions,
    option,
)
from relaax.configuration.option_kinds import (
    AddressOption,
    BytesOption,
    CountOption,
    ExploitOption,
    MebibytesOption,
    PauseOption,
    SecondsOption,
    SwitchOption,
    WholeOption,
    WorkersOption,
)

#: What to write in the place of options that there were.
REPLACED = {
    "--inference": "write '--workers: auto' for what was 'batched'; leave it out, or write "
    "'--workers: connection', for what was 'inline'"
}


class RlxServerOptions(ReadingOptions, DeliveringOptions, FollowingOptions):
    """The options of ``relaax-rlx-server``."""

    bind: AddressOption = option(Address("localhost", 7001), "address to serve")
    workers: WorkersOption = option(
        "connection",
        "how many processes serve the environments: 'connection' forks one for each connection; a "
        "number, or 'auto' (one for each core, one with a GPU), forks them once and shares all "
        "connections among them, which is faster and takes less memory with many of them",
    )
    timeout: SecondsOption | None = option(
        None,
        "close a connection at the first end of an episode after this many seconds, so that a "
        "load balancer can send the client elsewhere; no need to use it on a local run",
    )
    drain: PauseOption = option(
        20.0,
        "at SIGTERM take no more connections, and close each at the end of an episode, for so many "
        "seconds; 0 closes all at once, as Ctrl-C does",
    )
    worker_timeout: SecondsOption = option(
        300.0, "kill a worker that does nothing for so long; its clients come back to another one"
    )
    worker_memory: MebibytesOption | None = option(
        None,
        "free memory that the first connection needs; later ones need the mean of those that are "
        "served. Unless given: 128 with a worker of its own, 1 in a shared one, or what states of "
        "a rollout take, if that is more",
    )
    message_timeout: SecondsOption = option(
        30.0, "close a connection when a message takes longer than this, in either direction"
    )
    environments_without_certificate: SwitchOption = option(
        False,
        "with --tls-ca: environments need no certificate of their own; their tokens say that they "
        "may play",
    )
    hello_timeout: SecondsOption = option(
        10.0,
        "close a connection that has said nothing for so long, or not shown its token; until then "
        "it costs no worker",
    )
    max_connections: CountOption = option(
        4096, "how many connections are served, at most; further ones are closed"
    )
    max_connections_per_address: CountOption = option(
        4096, "how many of them may come from one address, at most; behind a load balancer all do"
    )
    max_message_rate: CountOption = option(
        20_000, "close a connection that sends more messages in a second"
    )
    max_metric_rate: CountOption = option(
        1000,
        "how many metrics are read in a second of a connection; a client that sends more waits",
    )
    max_episode_steps: CountOption | None = option(
        None,
        "close a connection one of whose episodes has more steps; by default an episode may go on "
        "for ever",
    )
    seed: WholeOption | None = option(
        None,
        "where the random numbers of this server's workers begin, another number for each RLX "
        "server; by default it is made of the host name and the port",
    )
    max_frame_bytes: BytesOption | None = option(
        None,
        "close a connection whose message is larger; by default some times what its observations "
        "have, and no less than 64 KiB",
    )
    max_environments: CountOption = option(
        1024, "how many environments one connection may carry, at most"
    )
    exploit: ExploitOption | None = option(
        None,
        "serve a checkpoint, by default the latest, without learning and without a parameter "
        "server: actions are the policy's most probable ones",
    )
    stochastic: SwitchOption = option(
        False, "with --exploit: actions are samples of the policy, as in training"
    )
