"""The command ``relaax-train``: starts the processes of a Procfile and shows the progress.

``main``              the command
``check``             what is wrong, or doubtful, before anything is started
``new_algorithm``     writes a small algorithm into a folder
``new_application``   the command ``relaax-new``, which writes an environment into a folder
``ports``             which of its ports are free, and when a server listens
``process_manager``   starts the processes, and stops all when one exits
``launched_process``  one of them, which stops when the launcher is killed
``live_printer``      prints their output, with the training's progress below it
``process_log``       writes it into a file, too
``engines``           where they run, when that is not this machine alone
"""
