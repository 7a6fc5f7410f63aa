"""Blobs as objects in AWS S3."""

import os
import secrets
import socket
from io import BytesIO
from typing import Any

from boto3.s3.transfer import TransferConfig

from relaax.checkpoints.aws import S3_ERRORS, error_code, object_key, s3_errors_explained
from relaax.checkpoints.store import BlobStore
from relaax.errors import CheckpointError, ConfigurationError, DamagedCheckpoint

#: Larger blobs are sent in parts; each part is tried again alone.
PART_BYTES = 16 * 2**20

_TRANSFER = TransferConfig(multipart_threshold=2 * PART_BYTES, multipart_chunksize=PART_BYTES)


#: The object that names the process that was the last to begin to save.
_OWNER = "owner"


class TakenOver(CheckpointError):
    """Another process has begun to save to the same place."""


class S3Store(BlobStore):
    """The objects ``KEY/name`` of a bucket, through a boto3 S3 client, which tries calls again.

    S3 replaces an object as a whole, also one that is sent in parts: temporary objects are not
    needed. S3 has no locks: a process that was cut off, and replaced by another one, may come back.
    The owner of a place is the process that began to save last; another one raises TakenOver
    instead of changing anything. The constructor lists the bucket once: ConfigurationError if the
    bucket is missing, access is denied, or there are no credentials; CheckpointError if S3 cannot
    be reached.
    """

    def __init__(self, client: Any, bucket: str, key: str, *, is_owner: bool = False) -> None:
        self._client = client
        self._bucket = bucket
        self._prefix = object_key(key, "")
        self._is_owner = is_owner
        self._own = f"pid {os.getpid()} on {socket.gethostname()} ({secrets.token_hex(8)})"
        self._is_claimed = False
        with s3_errors_explained(f"use {self.location()}", bucket, ConfigurationError):
            client.list_objects_v2(Bucket=bucket, Prefix=self._prefix, MaxKeys=1)

    def put(self, name: str, data: bytes) -> None:
        """Write an object."""
        self._require_own()
        self._put(name, data)

    def get(self, name: str) -> bytes:
        """Read an object."""
        with self._errors_explained("read", name):
            try:
                found = self._client.get_object(Bucket=self._bucket, Key=self._key(name))
                return bytes(found["Body"].read())
            except S3_ERRORS as error:
                if error_code(error) == "NoSuchKey":
                    raise DamagedCheckpoint(f"{name} is missing") from None
                raise

    def names(self) -> list[str]:
        """List the objects directly below the key."""
        return self._listed("Contents", "Key")

    def folders(self) -> list[str]:
        """List the parts of keys between this key and the next slash."""
        return [name.removesuffix("/") for name in self._listed("CommonPrefixes", "Prefix")]

    def delete(self, name: str) -> None:
        """Delete an object."""
        self._require_own()
        with self._errors_explained("delete", name):
            self._client.delete_object(Bucket=self._bucket, Key=self._key(name))

    def rename(self, name: str, new_name: str) -> None:
        """Copy an object, then delete the original: S3 cannot rename in one step."""
        self._require_own()
        with self._errors_explained("rename", name):
            source = {"Bucket": self._bucket, "Key": self._key(name)}
            self._client.copy_object(
                Bucket=self._bucket, Key=self._key(new_name), CopySource=source
            )
            self._client.delete_object(**source)

    def location(self) -> str:
        """Return the objects' common URL."""
        return f"s3://{self._bucket}/{self._prefix}"

    def _listed(self, kind: str, field: str) -> list[str]:
        with self._errors_explained("list", ""):
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=self._prefix, Delimiter="/"
            )
            return [
                found[field].removeprefix(self._prefix)
                for page in pages
                for found in page.get(kind, [])
            ]

    def _require_own(self) -> None:
        """Take the place at the first change; TakenOver if it is another process's later."""
        if not self._is_owner:
            return
        if self._is_claimed:
            try:
                found = self.get(_OWNER).decode(errors="replace")
            except DamagedCheckpoint:  # somebody has cleared the place
                found = None
            if found == self._own:
                return
            if found is not None:
                raise TakenOver(
                    f"{found} saves to {self.location()}, too, and began later: this process saves "
                    "nothing there any more"
                )
        self._put(_OWNER, self._own.encode())
        self._is_claimed = True

    def _put(self, name: str, data: bytes) -> None:
        with self._errors_explained("write", name):
            self._client.upload_fileobj(
                BytesIO(data), self._bucket, self._key(name), Config=_TRANSFER
            )

    def _key(self, name: str) -> str:
        return self._prefix + name

    def _errors_explained(self, action: str, name: str) -> Any:
        return s3_errors_explained(f"{action} {self.location()}{name}", self._bucket)
