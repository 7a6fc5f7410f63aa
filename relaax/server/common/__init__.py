"""What all servers share.

``configuration``       the YAML file, the command line and the exit status
``algorithm_location``  finds an algorithm's folder
``algorithm_loader``    imports the algorithm from its folder
``space_check``         checks the spaces that the algorithm gives
``announced_spaces``    compares those of environments with them
``first_look``          what is doubtful in the first steps of environments
``checkpoint_list``     prints which checkpoints there are
``checkpoint_place``    where a process keeps its checkpoints
``start_folder``        whether a Procfile is started where its files are
``checkpoint_sets``     a checkpoint of which each shard of a parameter server saves a part
``exploitation``        what a checkpoint holds, for what acts without a parameter server
``available_memory``    how much memory there is, of the machine and of the container
``directory_lock``      keeps other processes from that
``replay_port``         the gRPC port of a replay
``training_watch``      counts steps, and asks whether the training is over
``stop_signal``         a stop that signals ask for
``saver``               checkpoints in a directory or in AWS S3
``operators``           the HTTP port for health checks and Prometheus
``access``              begins a server, and guards a process as its options say
``listening``           sockets that listen where an option says
``replay_metrics``      the metrics of a replay, made of what it counts
``replay_memory``       makes a replay whose memory is there from the beginning
``replay_contents``     saves what a replay holds, and restores it
``periodic_tasks``      what is done from time to time
``aws``                 access to AWS S3
``logs``                the log, on standard error and in a file
``log_file``            a file that several processes write, line by line
"""
