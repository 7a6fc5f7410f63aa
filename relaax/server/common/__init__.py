"""What all servers share.

``configuration``       the YAML file, the command line and the exit status
``algorithm_location``  finds an algorithm's folder
``algorithm_loader``    imports the algorithm from its folder
``algorithm_errors``    says what the algorithm's code raised, and where
``space_check``         checks the spaces that the algorithm gives
``checkpoint_place``    where a process keeps its checkpoints
``replay_port``         the gRPC port of a replay
``training_watch``      counts steps, and asks whether the training is over
``stop_signal``         a stop that signals ask for
``saver``               checkpoints in a directory or in AWS S3
``aws``                 access to AWS S3
``logs``                the format of the log
"""
