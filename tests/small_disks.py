"""A file system of few bytes, which a test can fill: in memory, in a mount namespace of its own."""

from pathlib import Path

from processes import COMMANDS, Process, Training
from programs import IS_ROOT, needs, program

UNSHARE, NSENTER = program("unshare"), program("nsenter")

NEEDS_MOUNTS = needs(
    None not in (UNSHARE, NSENTER) and IS_ROOT,
    "needs unshare and nsenter (apt install util-linux), and root",
)


class SmallDisk:
    """A disk at ``training.directory / "disk"`` for the processes that are started on it."""

    def __init__(self, training: Training, options: str) -> None:
        self._training = training
        self.directory = training.directory / "disk"
        self.directory.mkdir()
        mount = f"mount -t tmpfs -o {options} small {self.directory}"
        script = f"{mount} && echo mounted && exec sleep infinity"
        holder = training.start("disk", [str(UNSHARE), "--mount", "sh", "-c", script])
        holder.says("mounted")
        self._pid = holder.pid
        #: Where this process, in another namespace, sees the same files.
        self.seen_from_outside = Path(f"/proc/{holder.pid}/root{self.directory}")
        self._ballast = self.seen_from_outside / "ballast"

    def start(self, command: str, *flags: str) -> Process:
        """Run a command of the project that sees the disk."""
        enter = [str(NSENTER), "--target", str(self._pid), "--mount"]
        run = [str(COMMANDS / command), "--config", str(self._training.yaml), *flags]
        return self._training.start(command, [*enter, *run])

    def fill(self) -> None:
        """Leave no room."""
        with self._ballast.open("ab", buffering=0) as file:
            for size in (2**16, 2**12):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError:  # no room for so much
                    pass

    def empty(self) -> None:
        """Give the room back."""
        self._ballast.unlink()
