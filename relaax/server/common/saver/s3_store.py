"""Blobs as objects in AWS S3."""

from io import BytesIO
from typing import Any

from boto3.s3.transfer import TransferConfig

from relaax.errors import ConfigurationError, DamagedCheckpoint
from relaax.server.common.aws import S3_ERRORS, error_code, object_key, s3_errors_explained
from relaax.server.common.saver.store import BlobStore

#: Larger blobs are sent in parts, of which each is tried again alone.
PART_BYTES = 16 * 2**20

_TRANSFER = TransferConfig(multipart_threshold=2 * PART_BYTES, multipart_chunksize=PART_BYTES)


class S3Store(BlobStore):
    """The objects ``KEY/name`` of a bucket, through a boto3 S3 client.

    S3 replaces an object as a whole, also one that is sent in parts: temporary objects are not
    needed. The constructor lists the bucket once: ConfigurationError if the bucket is missing,
    access is denied, or there are no credentials; CheckpointError if S3 cannot be reached.
    """

    def __init__(self, client: Any, bucket: str, key: str) -> None:
        self._client = client
        self._bucket = bucket
        self._prefix = object_key(key, "")
        with s3_errors_explained(f"use {self.location()}", bucket, ConfigurationError):
            client.list_objects_v2(Bucket=bucket, Prefix=self._prefix, MaxKeys=1)

    def put(self, name: str, data: bytes) -> None:
        """Write an object."""
        with self._errors_explained("write", name):
            self._client.upload_fileobj(
                BytesIO(data), self._bucket, self._key(name), Config=_TRANSFER
            )

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
        with self._errors_explained("list", ""):
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=self._prefix, Delimiter="/"
            )
            return [
                found["Key"].removeprefix(self._prefix)
                for page in pages
                for found in page.get("Contents", [])
            ]

    def delete(self, name: str) -> None:
        """Delete an object."""
        with self._errors_explained("delete", name):
            self._client.delete_object(Bucket=self._bucket, Key=self._key(name))

    def rename(self, name: str, new_name: str) -> None:
        """Copy an object, then delete the original: S3 cannot rename in one step."""
        with self._errors_explained("rename", name):
            source = {"Bucket": self._bucket, "Key": self._key(name)}
            self._client.copy_object(
                Bucket=self._bucket, Key=self._key(new_name), CopySource=source
            )
            self._client.delete_object(**source)

    def location(self) -> str:
        """Return the objects' common URL."""
        return f"s3://{self._bucket}/{self._prefix}"

    def _key(self, name: str) -> str:
        return self._prefix + name

    def _errors_explained(self, action: str, name: str) -> Any:
        return s3_errors_explained(f"{action} {self.location()}{name}", self._bucket)
