"""Memory of several processes, of which one may be stopped at any moment."""

import forking_programs

STOPPED = """
import os, signal, time
from relaax import forked_memory

memory = forked_memory.ForkedMemory("test", 8)
if not (child := os.fork()):
    with memory.alone():
        os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(0)
os.waitpid(child, os.WUNTRACED)
pauses = []
time.sleep = pauses.append
for _ in range(3):
    with memory.alone(0, 1):
        memory.bytes[0] += 1
    with memory.alone(1, 1):
        memory.bytes[1] += 1
    print(len(pauses))
os.kill(child, signal.SIGCONT)
os.waitpid(child, 0)
with memory.alone():
    print(len(pauses), memory.bytes[0])
"""


def test_one_that_is_stopped_is_waited_for_once_and_the_others_go_on():
    first, second, third, last = forking_programs.run(STOPPED, "").stdout.splitlines()
    assert int(first) > 0
    assert first == second == third
    assert last == f"{first} 3"
