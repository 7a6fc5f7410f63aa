"""Waits, before a server begins, for the store far away that its checkpoints are in."""

import logging
import time

from relaax.errors import CheckpointError
from relaax.server.common.aws import s3_client
from relaax.server.common.configuration import AwsAccess, S3Location
from relaax.server.common.saver import S3Store
from relaax.server.common.stop_signal import Stop

_log = logging.getLogger(__name__)

#: How long it pauses after a failure; twice as long after the next one, up to the most.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0


def wait_for_store(s3: S3Location | None, aws: AwsAccess, give_up_s: float, stop: Stop) -> bool:
    """Wait until a place in S3 answers; return False if ``stop`` is set before.

    Without it a server cannot know which checkpoint is the newest, even with some that it has not
    sent yet: another machine may have gone on meanwhile. CheckpointError if S3 does not answer for
    ``give_up_s``; ConfigurationError at once if it answers that the place cannot be used.
    """
    if s3 is None:
        return True
    begin, pause_s = time.monotonic(), 0.0
    while not stop.wait(pause_s):
        try:
            # One attempt: between its repetitions a stop would not be looked at.
            found = S3Store(s3_client(aws, attempts=1), s3.bucket, s3.key)
        except CheckpointError as error:
            if time.monotonic() - begin > give_up_s:
                raise CheckpointError(
                    f"{error}; it did not answer for {give_up_s:g} s (--give-up)"
                ) from error
            if not pause_s:
                _log.warning("waiting for the store of checkpoints: %s", error)
            pause_s = min(max(2 * pause_s, FIRST_PAUSE_S), LONGEST_PAUSE_S)
        else:
            if pause_s:
                _log.warning("%s answers: the server starts", found.location())
            return True
    return False
