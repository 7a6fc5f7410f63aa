"""What an environment embeds to be trained: needs numpy and nothing else.

What a program uses:

``rlx_client``         ``Client``: init, send, reset, truncate
``vector_client``      ``VectorClient``: many environments on one connection; it reports ``Steps``,
                       with the flags START, TERMINATED, TRUNCATED, FINAL and EXECUTED
``failure``            what clients raise
``transport``          how they reach the server: over TCP, or what you hand them
``access``             what they show it: a token, a certificate
``gymnasium_runner``   ``GymnasiumRunner`` and a command; needs Gymnasium, as does all below it

How a message gets to the server:

``checks``             what can be sent
``action_masks``       which actions are allowed, beside a state, by the server's names
``sessions``           one environment on one connection, in either version of the protocol
``server_connection``  a connection: questions, answers, and how it was lost; steps on it
``connector``          makes one connection after another, with ``retry_policy``

How a program plays many simulators, each in a process:

``simulator``, ``simulator_runner``                 what it hands over; playing its episodes
``simulator_task``                                  the whole program; what each process does
``act_latency``                                     how long answers take, as a metric
``area_average``                                    smaller pictures
``run_environments``, ``run_options``               a whole run to its exit status; options
``restarts``, ``restarting_environments``           making those again that fail
``seeds``                                           what seeds of environments are drawn from
``environment_processes``, ``child_process``        both ends of a process
``run_result``, ``run_progress``                    how a run ended; how far it is, on a terminal

How Gymnasium environments are driven:

``environment_runner``, ``vector_runner``           play episodes of one environment, of several
``gymnasium_factory``, ``gymnasium_spaces``         making environments; what is in their spaces
``gymnasium_observations``                          observations as arrays, one or several by name
``gymnasium_actions``, ``gymnasium_numbers``        actions of any space; of one that is not nested
``vector_finals``                                   the last observations of episodes
``gymnasium_edges``                                 what an environment returns is kept and checked
``gymnasium_executed``                              actions that were executed in their place
``runner_options``, ``gymnasium_tasks``             the command line; what each process does
"""

from relaax.client.access import ClientAccess
from relaax.client.failure import Failure
from relaax.client.retry_policy import Backoff
from relaax.client.rlx_client import Client
from relaax.client.transport import TcpTransport
from relaax.client.vector_client import VectorClient
from relaax.net.access import TlsFiles
from relaax.steps import EXECUTED, FINAL, START, TERMINATED, TRUNCATED, Steps

__all__ = [
    "EXECUTED", "FINAL", "START", "TERMINATED", "TRUNCATED", "Backoff", "Client", "ClientAccess",
    "Failure", "Steps", "TcpTransport", "TlsFiles", "VectorClient"
]  # fmt: skip
