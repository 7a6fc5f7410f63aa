"""Guards a process as its options say."""

from pathlib import Path

from relaax.configuration.option_base import FILES, AccessOptions, ServerOptions
from relaax.errors import ConfigurationError
from relaax.net.access import Access, Role, TlsFiles, TokenFile, use_access
from relaax.net.access.process_access import is_allowed_to_be_insecure
from relaax.net.access.tls import client_context, server_context
from relaax.net.listening import allow_many_files
from relaax.telemetry.logs import start_logging

_FIELDS = {option.removeprefix("--").replace("-", "_") for option in FILES}


def begin_server(options: ServerOptions, program: str) -> None:
    """Log, guard all ports and channels, and allow many connections, as a server begins with."""
    start_logging(options.log_level, options.log_file, program)
    begin_access(options)
    allow_many_files()


def begin_access(options: AccessOptions, *, listens: bool = True) -> Access:
    """Guard all ports and channels that this process makes from now on; return their access.

    ConfigurationError for files that cannot be used.
    """
    _require_files(options)
    files = TlsFiles(options.tls_cert, options.tls_key, options.tls_ca)
    if (files.cert is None) != (files.key is None):
        raise ConfigurationError("give --tls-cert and --tls-key, both or none")
    if listens and files.ca is not None and files.cert is None:
        raise ConfigurationError("--tls-ca: a server needs --tls-cert and --tls-key, too")
    file = options.auth_token_file
    tokens = None if file is None else TokenFile(file, shows=Role.SERVER)
    if files.paths:
        client_context(files)  # raises for files that do not fit
        if listens:
            server_context(files, clients_need_certificates=True)
    access = Access(
        tls=files if files.paths else None,
        tokens=tokens,
        is_insecure=options.insecure or is_allowed_to_be_insecure(),
        environments_need_certificates=not getattr(
            options, "environments_without_certificate", False
        ),
        proxy=options.proxy,
    )
    use_access(access)
    return access


def _require_files(options: AccessOptions) -> None:
    """Raise ConfigurationError, with where a path was looked up, for a file that is not there."""
    for option, path in options.model_dump(by_alias=True, include=_FIELDS).items():
        if path is None:
            continue
        try:
            path.stat()
        except (FileNotFoundError, NotADirectoryError):
            raise ConfigurationError(
                f"{option}: {path.absolute()} is not there; a relative path in a YAML file is one "
                "in the folder of that file, or else in the folder where this was started, "
                f"{Path.cwd()}"
            ) from None
        except OSError as error:
            raise ConfigurationError(
                f"{option}: {path.absolute()} cannot be read: {error.strerror}"
            ) from error
