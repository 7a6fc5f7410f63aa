"""Metrics, logs and reports of a training.

``metrics``           the interface of scalars; reports why a process waits
``episode_numbers``   names of the numbers that environments give of their episodes
``histograms``        distributions in plain cells, which other processes may share
``interval_metrics``  one point a second of events that come thousands of times a second
``kept_counts``       counts that others can read, also after the process was killed
``live_lines``        a process's state in one line that is shown live
``throttled_log``     limits repeated lines of the log
``logs``              the log, on standard error and in a file that processes share
``operators``         the HTTP port for health checks and Prometheus
``training``          TensorBoard event files, and the returns of the last episodes
"""
