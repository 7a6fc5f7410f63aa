"""Copies event files to AWS S3."""

import logging
import threading
from pathlib import Path
from typing import Any

from boto3.s3.transfer import TransferConfig

from relaax.checkpoints.aws import S3_ERRORS, object_key

_log = logging.getLogger(__name__)

#: Size and time of the last change, by which a changed file is recognised.
_Signature = tuple[int, int]


class S3Mirror:
    """Uploads the changed event files of a directory as objects ``KEY/name`` of a bucket.

    A separate thread uploads them every ``interval_s`` seconds and at ``close``, through a boto3 S3
    client. A failed upload is logged as a warning and tried again at the next interval.
    """

    def __init__(
        self, directory: Path, client: Any, bucket: str, key: str, *, interval_s: float = 60.0
    ) -> None:
        self._directory = directory
        self._client = client
        self._bucket = bucket
        self._key = key
        self._interval_s = interval_s
        self._uploaded: dict[str, _Signature] = {}
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metrics to S3", daemon=True)
        self._thread.start()

    def location(self) -> str:
        """Return the URL below which the uploaded files are, for messages."""
        return f"s3://{self._bucket}/{object_key(self._key, '')}"

    def close(self, deadline_s: float = 10.0) -> None:
        """Upload the changed files, for at most ``deadline_s`` seconds. Close the writer first."""
        self._closing.set()
        self._thread.join(deadline_s)
        if self._thread.is_alive():
            _log.warning(
                "metrics were not uploaded to %s within %g s; the latest are only in %s",
                self.location(),
                deadline_s,
                self._directory,
            )

    def _run(self) -> None:
        is_closing = False
        while not is_closing:
            # Read before the upload: after ``close``, one more round is enough.
            is_closing = self._closing.wait(self._interval_s)
            self._upload_changed()

    def _upload_changed(self) -> None:
        for path in sorted(self._directory.glob("*.tfevents.*")):
            try:
                self._upload_if_changed(path)
            except (*S3_ERRORS, OSError) as error:
                _log.warning(
                    "cannot upload %s to %s; trying again later: %s", path, self.location(), error
                )

    def _upload_if_changed(self, path: Path) -> None:
        status = path.stat()
        signature = (status.st_size, status.st_mtime_ns)
        if self._uploaded.get(path.name) == signature:
            return
        self._client.upload_file(
            str(path),
            self._bucket,
            object_key(self._key, path.name),
            # The transfer's own threads could still run when the interpreter exits.
            Config=TransferConfig(use_threads=False),
        )
        self._uploaded[path.name] = signature
