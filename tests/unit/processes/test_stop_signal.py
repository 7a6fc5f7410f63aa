"""A parameter server stops whenever a signal comes, also while it begins or ends to wait."""

import subprocess
import sys

#: Signals come at any moment of many waits; an Event would wait for its own lock after a while.
PROGRAM = """
import faulthandler, os, random, signal, time
from relaax.processes.stop_signal import StopSignal

faulthandler.dump_traceback_later(60, exit=True)
stop, parent = StopSignal(), os.getpid()
child = os.fork()
if child == 0:
    while os.getppid() == parent:
        time.sleep(random.random() * 1e-3)
        os.kill(parent, random.choice((signal.SIGINT, signal.SIGTERM)))
    os._exit(0)
for _ in range(2000):
    stop = StopSignal()
    while not stop.wait(1e-6):
        pass
os.kill(child, signal.SIGKILL)
print("stopped each time")
"""


def test_a_signal_is_noticed_in_whichever_moment_it_comes():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=False, capture_output=True, text=True
    )
    assert (done.stdout.strip(), done.returncode) == ("stopped each time", 0), done.stderr
