"""Which GPU of a machine each process of a trial sees: those that ask for a part share one."""

from collections.abc import Mapping, Sequence

from relaax.errors import ConfigurationError

#: Parts such as three thirds may add up to a little more than one.
_ROUNDING = 1e-6


def placed(wanted: Mapping[str, float], devices: Sequence[str]) -> dict[str, str]:
    """Return the device of each process by its name; of those alone that want one, or a part.

    Whole ones are given first. ConfigurationError, with all that is wanted, for too few devices.
    """
    left, found = dict.fromkeys(devices, 1.0), {}
    for name, part in sorted(wanted.items(), key=lambda each: -each[1]):
        if not part:
            continue
        device = next((each for each in left if left[each] >= part - _ROUNDING), None)
        if device is None:
            asked = ", ".join(f"{each} {part:g}" for each, part in wanted.items() if part)
            raise ConfigurationError(
                f"gpu: there is no GPU left for {name}: {len(devices)} are here, and workers want "
                f"{asked}. Give them less, or let all run without with --gpus 0"
            )
        left[device] -= part
        found[name] = device
    return found
