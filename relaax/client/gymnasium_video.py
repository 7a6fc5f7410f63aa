"""Records episodes as MP4 files, with Gymnasium's recorder; needs the extra ``video``."""

import time
import warnings
from typing import Any

from gymnasium.error import DependencyNotInstalled
from gymnasium.wrappers import RecordVideo

from relaax.client.gymnasium_factory import Environment
from relaax.client.runner_options import VideoOptions
from relaax.errors import ConfigurationError


class EpisodeRecorder(RecordVideo[Any, Any]):
    """Records every so many episodes of ``environment``, one file each, and removes old files.

    A file is written when the next episode starts, or when the environment is closed. Frames are
    kept in memory until then. Its name is that of the environment, the time at which the program
    has started, and the number of the episode.

    ConfigurationError for an environment that renders no pictures, for a directory that cannot be
    used, and where the extra ``video`` is not installed.
    """

    def __init__(self, environment: Environment, options: VideoOptions, name: str) -> None:
        self._name = "".join(c if c.isalnum() or c in "-." else "_" for c in name)
        self._options = options
        started = time.strftime("%Y%m%d-%H%M%S")
        try:
            with warnings.catch_warnings():
                # That there are videos of other runs: their names are others.
                warnings.filterwarnings("ignore", message=".*Overwriting existing videos")
                super().__init__(
                    environment,
                    str(options.directory),
                    episode_trigger=lambda episode: episode % options.every == 0,
                    name_prefix=f"{self._name}-{started}",
                    gc_trigger=None,
                )
        except DependencyNotInstalled as error:
            raise ConfigurationError(
                "--record-video needs the extra video: pip install 'relaax[video]'"
            ) from error
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"--record-video: {error}") from error

    def stop_recording(self) -> None:
        """Write the file, and remove the oldest ones of this environment beyond the maximum."""
        super().stop_recording()
        found = self._options.directory.glob(f"{self._name}-*-episode-*.mp4")
        oldest_first = sorted(found, key=lambda path: path.stat().st_mtime_ns)
        for path in oldest_first[: -self._options.most]:
            path.unlink(missing_ok=True)
