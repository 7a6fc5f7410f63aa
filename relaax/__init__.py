"""RELAAX: a training service for environments that cannot live inside a training loop.

The words that all layers share:

``relaax.steps``         reports of environments, and their meaning
``relaax.observations``  one array, or several arrays by name
``relaax.spaces``        spaces of observations and actions, as JSON
``relaax.errors``        the exceptions
``relaax.address``       HOST:PORT

The packages, from the client's end to the servers':

``relaax.client``         the client that an environment embeds; needs numpy only
``relaax.protocol``       the RLX protocol, which both of its ends share
``relaax.net``            gRPC channels and servers, tokens, TLS, listening sockets
``relaax.telemetry``      metrics, logs, live lines, the operators' port
``relaax.processes``      a process's life: stop signals, periodic tasks, memory, cores
``relaax.configuration``  the YAML file, the command line, and how algorithms are loaded
``relaax.checkpoints``    checkpoints in a directory or in AWS S3
``relaax.algorithm_base``  the interface of an algorithm package
``relaax.parameters``     the global parameters: client, service, store, shards, process
``relaax.replay``         experience that learners draw from
``relaax.inference``      lets a server with the policy choose for others
``relaax.names``          names of processes with leases: addresses by name
``relaax.populations``    policies that are learnt together, and what changes them
``relaax.learning``       parts of algorithms
``relaax.acting``         chooses actions for many environments, and records the steps
``relaax.assembly``       makes a package's exports of an algorithm's builder
``relaax.compat``         Surreal's and Memoire's names
``relaax.server``         the RLX server, the learner, the actors, the exporter
``relaax.experiments``    groups of workers, described as Python or YAML
``relaax.launcher``       the command ``relaax-train``: all processes of a Procfile
"""

from importlib.metadata import version

__version__ = version("relaax")
