"""The client library of an environment; needs numpy and nothing else.

For programs:

``rlx_client``         ``Client``: init, send, reset, truncate
``vector_client``      ``VectorClient``: many environments on one connection; it reports ``Steps``,
                       with the flags START, TERMINATED, TRUNCATED, FINAL and EXECUTED
``multi_agent_client`` ``MultiAgentClient``: environments with several agents, by their names
``failure``            the exception of clients
``transport``          connections over TCP, with a token and TLS, or by a transport of your own
``gymnasium_runner``   ``GymnasiumRunner`` and a command; needs Gymnasium, as does all below it

The way of a message to the server:

``checks``             checks of states, rewards, flags and actions before they are sent
``action_masks``       masks of allowed actions beside a state
``episode_info``       an environment's own numbers of an episode
``server_connection``  steps and answers on one connection, and its loss
``connector``          makes one connection after another; when it tries again, and gives up

Many simulators, each in a process:

``simulator``                                       the interface of a simulator; ends of a run
``simulator_runner``                                plays a simulator's episodes
``simulator_task``                                  the whole program; the task of each process
``area_average``                                    smaller pictures
``run_environments``, ``run_options``               a whole run to its exit status; options
``restarts``, ``restarting_environments``           failed environments are made again
``seeds``                                           seeds of environments
``environment_processes``, ``child_process``        both ends of a process
``run_progress``                                    the progress of a run on a terminal

Gymnasium environments:

``vector_runner``                                   plays episodes of several environments
``gymnasium_factory``, ``gymnasium_spaces``         make environments; look into their spaces
``gymnasium_observations``                          observations as arrays, one or several by name
``gymnasium_actions``                               actions as the server's numbers, and back
``vector_finals``                                   the last observations of episodes
``gymnasium_edges``                                 copies and checks returned values
``gymnasium_tasks``                                 one environment as a simulator; process tasks
``gymnasium_atari``                                 Atari games with the usual preprocessing
Environments with several agents:

``multi_agent_runner``                              plays games of several environments
``pettingzoo_environments``                         PettingZoo's, in turns or at the same time
``pettingzoo_team``                                 all agents of a parallel one as one
``pettingzoo_runner``                               the task of each process, and a command
"""

from relaax.client.connector import Backoff
from relaax.client.failure import Failure
from relaax.client.multi_agent_client import AgentReport, MultiAgentClient
from relaax.client.rlx_client import Client
from relaax.client.transport import ClientAccess, TcpTransport
from relaax.client.vector_client import VectorClient
from relaax.net.access import TlsFiles
from relaax.steps import EXECUTED, FINAL, START, TERMINATED, TRUNCATED, Steps

__all__ = [
    "EXECUTED", "FINAL", "START", "TERMINATED", "TRUNCATED", "AgentReport", "Backoff", "Client",
    "ClientAccess", "Failure", "MultiAgentClient", "Steps", "TcpTransport", "TlsFiles",
    "VectorClient"
]  # fmt: skip
