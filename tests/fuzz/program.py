"""Looks for inputs that break a target, guided by which lines they reach (atheris).

    make fuzz TARGET=version_2 SECONDS=60

It ends with status 0 when the time is over, or after so many ``--runs``, and with another one at
the first input that raises what the target does not promise, that takes more than 10 s, or more
than 1 GiB: the input is in ``build/fuzz``. What is found is mended, and its input kept in
``tests/fuzz/corpus``, where a unit test runs it.
"""

import argparse
import logging
import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parent.parent))
with atheris.instrument_imports(include=["relaax"]):
    from fuzz.services import let_no_call_wait
    from fuzz.targets import CORPUS, TARGETS

FOUND = Path("build/fuzz")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--runs", type=int, default=10_000_000)
    parser.add_argument("--memory-mib", type=int, default=1024)
    parser.add_argument("--longest", type=int, default=65_536, help="of an input, in bytes")
    chosen = parser.parse_args()
    logging.disable(logging.CRITICAL)  # refusals are logged
    new = FOUND / chosen.target
    new.mkdir(parents=True, exist_ok=True)
    flags = [
        f"-max_total_time={chosen.seconds}",
        f"-runs={chosen.runs}",
        f"-rss_limit_mb={chosen.memory_mib}",
        f"-malloc_limit_mb={chosen.memory_mib // 4}",
        "-timeout=10",
        f"-max_len={chosen.longest}",
        "-print_final_stats=1",
        f"-artifact_prefix={new}/found-",
    ]
    corpora = [str(new), str(CORPUS / chosen.target)]
    let_no_call_wait()
    atheris.Setup([sys.argv[0], *flags, *corpora], TARGETS[chosen.target])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
