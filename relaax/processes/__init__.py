"""A process's life, from its start to its stop.

``stop_signal``       the flag that stop signals set
``periodic_tasks``    tasks that are done from time to time
``directory_lock``    keeps other processes from a directory
``whole_numbers``     whole numbers on a command line
``run_variables``     variables that tell a process its place in the training
``available_memory``  available memory, of the machine and of the container
``identifiers``       identifiers of versions of a policy, as texts
``shard``             which of several processes of a parameter server one is
``allocator``         how the C library keeps memory
``cgroups``           the limits of a container, and how many cores a process may use
"""
