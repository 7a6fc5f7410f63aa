"""What a training says of itself.

``metrics``           where scalars go
``interval_metrics``  one point a second of events that come thousands of times a second
``kept_counts``       counts that others can read, also after the process was killed
``wait_report``       for what a process waits, as the parameter server hears it
``live_lines``        a process's state in one line that is shown live
``throttled_log``     lines of the log that would come again and again
``logs``              the log, on standard error and in a file
``log_file``          a file that several processes write, line by line
``operators``         the HTTP port for health checks and Prometheus
``training``          TensorBoard event files, and the returns of the last episodes
"""
