"""Say which learning rates the policies of trials of PBT begin and end with.

    for seed in 1 2 3 4 5; do
      relaax-experiment run examples/experiments/pbt.py -e pbt-seed$seed -f trial1
    done
    python benchmarks/pbt_rates.py training/experiments/pbt-seed*/trial1

It prints a line for each trial, and ends with status 1 where a policy that began with one of the
two lowest rates has not ended with a higher one than both.
"""

import argparse
import csv
import json
from pathlib import Path

import yaml

RATE = "initial_learning_rate"


def rates_of(trial: Path) -> tuple[dict[str, float], dict[str, float], int]:
    """Return the first and the last rates of a trial by policy, and how many copies there were."""
    experiment = yaml.safe_load((trial / "experiment.yaml").read_text(encoding="utf-8"))
    (manager,) = experiment["population_manager"]
    first = {name: float(keys[RATE]) for name, keys in manager["initial_hyperparams"].items()}
    last = dict(first)
    with (trial / "population0" / "exploits.csv").open(encoding="utf-8") as lines:
        copies = list(csv.DictReader(lines))
    for row in copies:
        last[row["target"]] = float(json.loads(row["hyperparameters"])[RATE])
    return first, last, len(copies)


def main() -> int:
    """Print the rates, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("trials", nargs="+", type=Path, metavar="TRIAL")
    has_failed = False
    for trial in parser.parse_args().trials:
        first, last, copies = rates_of(trial)
        worst = sorted(first, key=lambda name: first[name])[:2]
        is_better = min(last[name] for name in worst) > max(first[name] for name in worst)
        has_failed |= not is_better
        rates = ", ".join(f"{name} {first[name]:.3g} -> {last[name]:.3g}" for name in first)
        print(f"{trial}: {rates}; {copies} copies{'' if is_better else ': NOT better'}")
    return int(has_failed)


if __name__ == "__main__":
    raise SystemExit(main())
