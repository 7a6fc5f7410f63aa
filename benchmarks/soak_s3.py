"""The S3 server of the soak: moto's, but it has what it was given before it was killed, too.

    python benchmarks/soak_s3.py 127.0.0.1:5000 RECORDING

moto holds all in memory. Here it records the requests that it gets in a file, before it answers
them, and begins with those of the file that change something.
"""

import json
import os
import signal
import sys
from pathlib import Path


def main() -> None:
    bind, recording = sys.argv[1], Path(sys.argv[2])
    os.environ["MOTO_RECORDER_FILEPATH"] = str(recording)
    serve(bind, recording)


def serve(bind: str, recording: Path) -> None:
    """Serve at ``bind`` until a signal comes, what ``recording`` says included."""
    # moto reads its environment when it is imported.
    from moto.moto_api import recorder
    from moto.moto_server.threaded_moto_server import ThreadedMotoServer

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    changes = changes_of(recording)
    recording.write_text("".join(changes))
    if changes:  # on a port that nobody knows: both servers have the same memory
        hidden = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        hidden.start()
        recorder.replay_recording("http://{}:{}".format(*hidden.get_host_and_port()))
        hidden.stop()
    recorder.start_recording()
    host, _, port = bind.rpartition(":")
    ThreadedMotoServer(host, int(port), verbose=False).start()
    print(f"serving at {bind} with {len(changes)} requests from before", flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})


def changes_of(recording: Path) -> list[str]:
    """Return the lines of a recording that change something, but not one that was cut short."""
    if not recording.exists():
        return []
    whole = [line for line in recording.read_text().splitlines(True) if line.endswith("\n")]
    return [line for line in whole if json.loads(line)["method"] not in ("GET", "HEAD")]


if __name__ == "__main__":
    main()
