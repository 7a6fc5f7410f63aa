"""Where the processes of a Procfile run, when that is not this machine alone.

``plan``           how many there are, and who is told of whom
``local``          several copies on this machine
``told_program``   runs one of them on its machine
``hosted``         one of them, as the part of a cluster sees it that is on its machine
``remote_process`` one of them, as honcho knows processes
``ray_cluster``    where they are on a Ray cluster
``slurm``          where they are in a Slurm allocation
``node_program``   says what is to be known of a node of it
"""
