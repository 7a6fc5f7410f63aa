"""Keys, credentials, names and errors of AWS S3."""

import pytest
from botocore.exceptions import (
    ClientError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
)

from relaax.checkpoints.aws import (
    aws_session,
    error_code,
    object_key,
    s3_client,
    s3_errors_explained,
)
from relaax.configuration import AwsAccess
from relaax.errors import CheckpointError, ConfigurationError

SECRET = "wJalrXUtnFEMI"  # noqa: S105 (of Amazon's documentation)


@pytest.fixture
def keys(tmp_path):
    return tmp_path / "aws-keys.yaml"


def test_the_keys_of_the_file_are_used(keys):
    keys.write_text(f"---\naccess: AKIAEXAMPLE\nsecret: {SECRET}\n")
    credentials = aws_session(keys).get_credentials()
    assert (credentials.access_key, credentials.secret_key) == ("AKIAEXAMPLE", SECRET)


def test_without_a_file_the_default_chain_is_used(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "from-the-environment")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    assert aws_session(None).get_credentials().access_key == "from-the-environment"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"secret: {SECRET}", "'access' is missing"),
        ("access: A", "'secret' is missing"),
        (f"access: 12345\nsecret: {SECRET}", "'access' must be a string"),
        (f"access: A\nsecret: [{SECRET}]", "'secret' must be a string"),
        ("access: A\nsecret: ''", "'secret' must be a string"),
        (f"access: A\nsecret: S\n{SECRET}: S", "only the keys"),
        (f"access: A\nsecret: {SECRET}: x", "not valid YAML"),
        (SECRET, "must hold the keys"),
        ("", "must hold the keys"),
    ],
)
def test_a_wrong_file_is_explained_without_its_secret(keys, text, reason):
    keys.write_text(text)
    with pytest.raises(ConfigurationError, match=reason) as error:
        aws_session(keys)
    assert str(keys) in str(error.value)
    assert SECRET not in str(error.value)
    assert error.value.__cause__ is None


def test_a_file_that_is_not_text_is_not_yaml(keys):
    keys.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match="not valid YAML"):
        aws_session(keys)


def test_a_missing_file_is_named(keys):
    with pytest.raises(ConfigurationError, match="No such file"):
        aws_session(keys)


def test_an_unknown_profile_is_a_configuration_error(monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "no-such-profile")
    with pytest.raises(ConfigurationError, match="no-such-profile"):
        aws_session(None)


def test_a_malformed_endpoint_is_a_configuration_error(monkeypatch, keys):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "localhost:9000 ")
    keys.write_text("access: A\nsecret: S")
    with pytest.raises(ConfigurationError, match="localhost:9000"):
        s3_client(AwsAccess(keys))


@pytest.mark.parametrize(
    ("prefix", "key"), [("a/b", "a/b/n"), ("/a/b/", "a/b/n"), ("", "n"), ("/", "n")]
)
def test_a_prefix_and_a_name_make_a_key(prefix, key):
    assert object_key(prefix, "n") == key


def answer(code: str) -> ClientError:
    """An error that S3 answers with."""
    return ClientError({"Error": {"Code": code, "Message": "a reason"}}, "PutObject")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (answer("NoSuchBucket"), "there is no S3 bucket 'mine'. Create it or correct the name"),
        (answer("AccessDenied"), "AWS denies these credentials access to the S3 bucket 'mine'"),
        (answer("ExpiredToken"), "AWS denies these credentials access to the S3 bucket 'mine'"),
        (NoCredentialsError(), "there are no AWS credentials. Give --aws-keys FILE"),
        (ParamValidationError(report="Invalid bucket name"), "Invalid bucket name"),
    ],
)
def test_an_error_that_no_retry_mends_is_permanent_and_has_a_remedy(error, reason):
    call = s3_errors_explained("write s3://mine/a", "mine", ConfigurationError)
    with pytest.raises(ConfigurationError) as explained, call:
        raise error
    assert str(explained.value).startswith("cannot write s3://mine/a: ")
    assert reason in str(explained.value)
    assert explained.value.__cause__ is error


@pytest.mark.parametrize(
    "error", [answer("SlowDown"), EndpointConnectionError(endpoint_url="http://s3")]
)
def test_an_error_that_may_pass_is_a_checkpoint_error(error):
    call = s3_errors_explained("write a", "mine", ConfigurationError)
    with pytest.raises(CheckpointError, match="cannot write a"), call:
        raise error


def test_other_errors_pass_unchanged():
    with pytest.raises(KeyError), s3_errors_explained("write a", "mine"):
        raise KeyError


def test_an_error_has_the_code_of_s3s_answer_if_there_was_one():
    assert error_code(answer("NoSuchKey")) == "NoSuchKey"
    assert error_code(EndpointConnectionError(endpoint_url="http://s3")) == ""
