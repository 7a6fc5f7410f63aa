"""RELAAX: a training service for environments that cannot live inside a training loop.

The words that all layers share:

``relaax.steps``             what environments report, and what it means
``relaax.observations``      one array, or several arrays by name
``relaax.spaces``            what observations and actions look like
``relaax.errors``            what is raised
``relaax.evaluation``        how an environment evaluates, and which policy
``relaax.metrics``           where scalars go
``relaax.throttled_log``     lines of the log that would come again and again
``relaax.hints``             the name that was probably meant
``relaax.interval_metrics``  one point a second of what happens thousands of times a second
``relaax.kept_counts``       counts that others can read, also after the process was killed
``relaax.wait_report``       for what a process waits, as the parameter server hears it
``relaax.live_lines``        what a process says of itself in one line that is shown live
``relaax.address``           HOST:PORT
``relaax.tls_refusals``      what errors of TLS say, in words
``relaax.whole_numbers``     whole numbers on a command line
``relaax.yaml_limits``       YAML that does not grow when it is read
``relaax.shard``             which of several processes of a parameter server one is
``relaax.allocator``         how the C library keeps memory
``relaax.cgroups``           the cgroups that a process is in: what a container may use
``relaax.cores``             how many cores a process may use
``relaax.run_variables``     by which ``relaax-train`` says to a process which one it is

The packages, from the client's end to the servers':

``relaax.access``          tokens and TLS: who may talk to a process
``relaax.client``          what an environment embeds; needs numpy only
``relaax.protocol``        the RLX protocol, which both of its ends share
``relaax.bridge``          gRPC between workers and the parameter server
``relaax.algorithm_base``  what an algorithm package implements
``relaax.replay``          experience that learners draw from
``relaax.learning``        what algorithms are built from
``relaax.actor``           acts in an environment of its own process
``relaax.surreal``         algorithms under Surreal's names
``relaax.algorithm_template``  a small algorithm to start from
``relaax.application_template``  an environment to start from
``relaax.server``          the servers, the learner, the actors and the launcher
"""

from importlib.metadata import version

__version__ = version("relaax")
