"""Access to AWS S3: credentials, the client, and readable messages for its errors."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import yaml
from boto3.exceptions import Boto3Error
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    ParamValidationError,
    PartialCredentialsError,
)

from relaax.address import is_loopback
from relaax.configuration import AwsAccess
from relaax.errors import CheckpointError, ConfigurationError, RelaaxError

#: The errors that a call of an S3 client raises.
S3_ERRORS = (BotoCoreError, ClientError, Boto3Error)

_KEYS = ("access", "secret")
_NO_CREDENTIALS = (NoCredentialsError, PartialCredentialsError)
_UNUSABLE = (*_NO_CREDENTIALS, ParamValidationError)
_MISSING_BUCKET = frozenset({"NoSuchBucket"})
_DENIED = frozenset(
    {
        "403",
        "AccessDenied",
        "AllAccessDisabled",
        "ExpiredToken",
        "Forbidden",
        "InvalidAccessKeyId",
        "InvalidToken",
        "SignatureDoesNotMatch",
    }
)


def aws_session(aws_keys: Path | None) -> boto3.Session:
    """Return a session with the keys of a YAML file, or with boto3's default credential chain.

    The file holds two strings, ``access`` and ``secret`` (seed 003, "Parameter Server command
    line"). ConfigurationError names the file and the wrong key, and never shows a value.
    """
    if aws_keys is None:
        return _default_session()
    access, secret = _read_keys(aws_keys)
    return boto3.Session(aws_access_key_id=access, aws_secret_access_key=secret)


def s3_client(access: AwsAccess, attempts: int = 4) -> Any:
    """Return an S3 client that gives up on a dead network within minutes.

    A call is tried ``attempts`` times, with longer and longer pauses between. Without an endpoint
    of its own boto3 reads one of its variable AWS_ENDPOINT_URL_S3. A store elsewhere is reached
    through the proxy that https_proxy names, if it names one. ConfigurationError if the endpoint,
    the keys or the AWS configuration cannot be used.
    """
    retries = {"mode": "standard", "total_max_attempts": attempts}
    # Stores that are not Amazon's have names for their hosts, and not for each bucket.
    style = {} if access.endpoint_url is None else {"addressing_style": "path"}
    config = Config(
        connect_timeout=10,
        read_timeout=30,
        retries=retries,
        s3=style,
        proxies=_proxies(access.endpoint_url),
        # Stores that are not Amazon's refuse the newer checksums and their headers.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    try:
        return aws_session(access.keys).client(
            "s3", endpoint_url=access.endpoint_url, config=config
        )
    except (BotoCoreError, ValueError) as error:
        raise ConfigurationError(f"cannot use AWS S3: {error}") from error


def object_key(prefix: str, name: str) -> str:
    """Join a prefix and a name with one slash: ``training/`` and ``a`` make ``training/a``."""
    stripped = prefix.strip("/")
    return f"{stripped}/{name}" if stripped else name


@contextmanager
def s3_errors_explained(
    action: str, bucket: str, permanent: type[RelaaxError] = CheckpointError
) -> Iterator[None]:
    """Raise an S3 error as CheckpointError, or as ``permanent`` if a retry cannot help.

    A retry cannot help if the bucket is missing, access is denied, credentials are absent or a name
    is malformed. The message begins with "cannot" and ``action``.
    """
    try:
        yield
    except S3_ERRORS as error:
        kind = permanent if _is_permanent(error) else CheckpointError
        raise kind(f"cannot {action}: {_explanation(error, bucket)}") from error


def error_code(error: Exception) -> str:
    """Return S3's code of an error, for example NoSuchKey; empty if S3 did not answer."""
    return str(error.response["Error"]["Code"]) if isinstance(error, ClientError) else ""


def _proxies(endpoint_url: str | None) -> dict[str, str] | None:
    """Return that there is no proxy, for a store on this machine; None for those boto3 finds."""
    variables = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    urls = [endpoint_url, *map(os.environ.get, variables)]
    host = urlsplit(next(filter(None, urls), "")).hostname
    return {} if host is not None and is_loopback(host) else None


def _default_session() -> boto3.Session:
    try:
        return boto3.Session()
    except BotoCoreError as error:
        raise ConfigurationError(f"cannot use the AWS configuration: {error}") from error


def _is_permanent(error: Exception) -> bool:
    return isinstance(error, _UNUSABLE) or error_code(error) in _MISSING_BUCKET | _DENIED


def _explanation(error: Exception, bucket: str) -> str:
    if isinstance(error, _NO_CREDENTIALS):
        return (
            "there are no AWS credentials. Give --aws-keys FILE, or set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY"
        )
    if error_code(error) in _MISSING_BUCKET:
        return f"there is no S3 bucket {bucket!r}. Create it or correct the name"
    if error_code(error) in _DENIED:
        return f"AWS denies these credentials access to the S3 bucket {bucket!r} ({error})"
    return str(error)


def _read_keys(path: Path) -> tuple[str, str]:
    content = _read_yaml(path)
    if not isinstance(content, dict):
        raise ConfigurationError(f"{path}: must hold the keys 'access' and 'secret'")
    if others := set(content) - set(_KEYS):
        # The message does not show them: by mistake, the secret itself may be one of these keys.
        raise ConfigurationError(
            f"{path}: must hold only the keys 'access' and 'secret', has {len(others)} more"
        )
    access, secret = (_read_key(path, content, key) for key in _KEYS)
    return access, secret


def _read_key(path: Path, content: dict[Any, Any], key: str) -> str:
    if key not in content:
        raise ConfigurationError(f"{path}: the key {key!r} is missing")
    value = content[key]
    if not isinstance(value, str) or not value:
        raise ConfigurationError(
            f"{path}: {key!r} must be a string that is not empty, is of type "
            f"{type(value).__name__}. Put it in quotes"
        )
    return value


def _read_yaml(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError):
        # The parser's own message would quote the file, and the secret with it.
        raise ConfigurationError(f"{path}: is not valid YAML") from None
