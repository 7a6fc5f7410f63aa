"""The command ``relaax-certificates``."""

import argparse
import contextlib
import ipaddress
import re
import sys
from pathlib import Path

from relaax import __version__
from relaax.configuration import run_command
from relaax.processes.whole_numbers import positive
from relaax.server.certificates.secrets_folder import TOKENS, SecretsFolder

#: How long certificates are valid.
_DAYS, _DAYS_OF_AUTHORITY = 365, 3650

#: A hundred years.
_MOST_DAYS = 36500

#: A name of DNS, whose first part may be a wildcard; underscores are common, if not allowed.
_LABEL = r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}$)(\*\.)?{_LABEL}(\.{_LABEL})*")

_EPILOG = """\
Makes in FOLDER, which only you may read:
  ca.crt, ca.key           a private certificate authority; ca.key is needed here alone
  server.crt, server.key   of all servers, good for this machine and for each HOST
  environment.crt, .key    of environments, where servers ask them for a certificate
  tokens                   of all roles, for servers: --auth-token-file
  environment.token        for environments: RELAAX_TOKEN_FILE
  monitor.token            for Prometheus: authorization: credentials_file

Run it again with the same FOLDER to renew the certificates, or to name more hosts: the authority
and the hosts stay; delete server.crt before to name others. Running servers read new files within
seconds.
"""

_NEXT = """\
In the YAML file, for all servers:
  access:
    --auth-token-file: {folder}/tokens
    --tls-cert: {folder}/server.crt
    --tls-key: {folder}/server.key
    --tls-ca: {folder}/ca.crt

Where environments run:
  export RELAAX_TOKEN_FILE={folder}/environment.token RELAAX_TLS_CA={folder}/ca.crt
  export RELAAX_TLS_CERT={folder}/environment.crt RELAAX_TLS_KEY={folder}/environment.key"""


def main() -> int:
    """Make the files and print how they are used."""
    return run_command("relaax-certificates", lambda: _make(sys.argv[1:]))


def _make(argv: list[str]) -> int:
    arguments = _parser().parse_args(argv)
    folder = SecretsFolder(arguments.folder)
    is_new = folder.sign(arguments.hosts, arguments.days, _DAYS_OF_AUTHORITY)
    has_tokens = folder.write_tokens(renew=arguments.renew_tokens)
    made = ["certificates", *(["tokens"] if has_tokens else [])]
    print(
        f"{' and '.join(made)} are in {arguments.folder}"
        + ("" if is_new else ", signed by the authority that was there")
    )
    print(f"they hold for {arguments.days} days, the servers' for {', '.join(folder.hosts())}")
    if not has_tokens:
        print("the tokens stay the same: --renew-tokens makes new ones")
        for file in folder.refused_tokens():
            print(
                f"{file}: servers refuse this token, whose line is not in {folder.path / TOKENS} "
                f"any more; run relaax-certificates {folder.path} --renew-tokens, and copy both",
                file=sys.stderr,
            )
    elif not is_new and arguments.renew_tokens:
        print(
            "the tokens that were there still count: each does until tokens have been renewed "
            "three times since it was made"
        )
    if is_new:
        print(f"\n{_NEXT.format(folder=arguments.folder)}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="relaax-certificates",
        description="Make the certificates, keys and tokens with which the servers and the "
        "environments of a cluster know one another.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the files are")
    parser.add_argument(
        "hosts",
        nargs="*",
        type=_host,
        metavar="HOST",
        help="names or addresses by which servers are reached; *.example.com stands for all of a "
        "domain. This machine's own, localhost, and those that were named before are always among "
        "them",
    )
    parser.add_argument(
        "--days",
        type=_days,
        default=_DAYS,
        metavar="N",
        help="how long the certificates hold (default %(default)s)",
    )
    parser.add_argument(
        "--renew-tokens",
        action="store_true",
        help="make new tokens, too, which are shown when this is done the next time; each counts "
        "until it has been done three times since it was made",
    )
    return parser


def _host(text: str) -> str:
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(text)
        return text
    if not _NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"a name such as rlx.example.com, or an address, is needed, not {text!r}; a name with "
            "other letters is written as xn--..."
        )
    return text


def _days(text: str) -> int:
    days = positive(text)
    if days > _MOST_DAYS:
        raise argparse.ArgumentTypeError(f"at most {_MOST_DAYS} days are possible, not {text}")
    return days


if __name__ == "__main__":
    sys.exit(main())
