"""The parameter-server process: runs an algorithm's parameter server and watches its training.

``main``              the command ``relaax-parameter-server``
``wiring``            puts its parts together
``training_monitor``  the main loop: progress, checkpoints, the end of the training
``training_figures``  the returns, scores, environments and connections that are reported
``versions``          pushes versions to a parameter database, and answers which there are
``evaluation``        evaluates one version after another: counts episodes, moves tags
``stages``            the stage of a curriculum, which goes by evaluations
``conditions``        when a stage is over
``standstill``        why a training makes no progress: which part waits for which
``replica``           a copy of a parameter server, for more workers than one can answer
``shards``            one parameter server in several processes
``progress``          the progress line
``return_curve``      the mean return over the steps, kept beside the checkpoints
"""
