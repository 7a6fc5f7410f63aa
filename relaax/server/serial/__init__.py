"""A whole training in one process and one thread, for a debugger: ``relaax-train --serial``.

The environment's program is run as it is. Its client sends messages to the worker by plain calls,
and the worker calls the parameter server's service in the same way. Clients in threads of the
program take turns.

``command``        wires the parts together, and runs them
``processes``      the environment's program, and the configurations of the servers
``memory_bridge``  the worker's way to the parameter server
"""
