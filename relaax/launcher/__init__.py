"""The command ``relaax-train``: starts the processes of a Procfile and shows the progress.

``main``              the command
``described``         the processes of a Procfile, and the addresses that each is told
``shell_words``       the words of a line's shell command
``serial``            the parts of a Procfile that run in one process
``check``             mistakes and doubts before anything is started
``experiment``        the command ``relaax-experiment``, which runs the processes of a trial
``run_record``        the state of a run in a file
``trial_commands``    commands for a trial that another shell runs: status, logs, stop
``trial_log``         the lines of a trial's log
``trial_manifests``   writes a trial for Kubernetes
``new_application``   the command ``relaax-new``, and folders to start from
``application_template``  the environment that ``relaax-new`` writes
``experiment_template``   the experiment that ``relaax-experiment --init`` writes
``algorithm_template``    the algorithm that ``relaax-train --new-algorithm`` writes
``ports``             ports that servers may listen at
``runner``            runs the processes of an engine, and stops all when one exits
``live_printer``      prints their output, with the training's progress below it
``process_log``       writes it into a file, too
``engines``           the machines that they run on
"""

import signal


def train() -> int:
    """Run ``relaax-train`` and return its exit status: after Ctrl-C 130, also while it imports."""
    try:
        from relaax.launcher.main import main

        return main()
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
