"""A process's life, from its start to its stop.

``stop_signal``       a stop that signals ask for
``periodic_tasks``    tasks that are done from time to time
``directory_lock``    keeps other processes from a directory
``whole_numbers``     whole numbers on a command line
``shard``             which of several processes of a parameter server one is
``run_variables``     by which ``relaax-train`` says to a process which one it is
``available_memory``  how much memory there is, of the machine and of the container
``allocator``         how the C library keeps memory
``cgroups``           the cgroups that a process is in: what a container may use
``cores``             how many cores a process may use
"""
