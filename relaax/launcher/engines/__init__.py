"""The machines that processes run on. Each engine starts, or writes, the same descriptions.

``local``           this machine
``ray_cluster``     a Ray cluster
``slurm``           a Slurm allocation
``kubernetes``      manifests of Kubernetes, which others apply
``hosted``          a process beside the launcher, or beside an actor of Ray
``hosted_program``  the program that runs its command
"""
