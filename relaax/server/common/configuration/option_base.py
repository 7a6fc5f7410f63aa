"""What the options of all servers have in common."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from relaax.server.common.configuration.option_kinds import AwsAccess, FileOption, SwitchOption


def option(default: Any, description: str) -> Any:
    """Return a field with a default, and a description for ``--help``."""
    return Field(default, description=description)


class Options(BaseModel):
    """A field is a YAML key and a command-line flag at once."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        arbitrary_types_allowed=True,
        alias_generator=lambda name: f"--{name.replace('_', '-')}",
    )

    @model_validator(mode="after")
    def _one_place_for_checkpoints(self) -> Self:
        places = ("checkpoint_dir", "checkpoint_aws_s3")
        if all(getattr(self, place, None) is not None for place in places):
            raise ValueError("give --checkpoint-dir or --checkpoint-aws-s3, not both")
        return self

    @property
    def aws(self) -> AwsAccess:
        """How S3 is reached, by what may use it."""
        names = ("aws_keys", "aws_endpoint_url")
        return AwsAccess(*(getattr(self, name, None) for name in names))


class AccessOptions(Options):
    """What a process proves to others, and asks them to prove: also keys of the section access."""

    auth_token_file: FileOption | None = option(
        None,
        "file of tokens, each line ROLE TOKEN with a role of server, environment or monitor: this "
        "process shows that of server (of several the second, since others may not know the newest "
        "yet), and asks callers for one with their right; it is read again when it changes",
    )
    tls_cert: FileOption | None = option(
        None, "certificate that is shown to others, a PEM file; with --tls-key"
    )
    tls_key: FileOption | None = option(None, "its key, a PEM file")
    tls_ca: FileOption | None = option(
        None,
        "certificates that those of others must be signed by, a PEM file: servers ask callers for "
        "one; by default those of the system count, and callers need none",
    )
    insecure: SwitchOption = option(
        False,
        "listen at addresses that other machines reach without TLS or without tokens, and send "
        "tokens without TLS",
    )
