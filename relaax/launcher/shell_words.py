"""The words of a shell command, each with its place in the text."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from relaax.errors import ConfigurationError
from relaax.server.serial.processes import Program

#: A redirection with its descriptor, an operator, or a word of plain and quoted parts; a comment.
_TOKEN = re.compile(
    r"""\s*(?:#[^\n]*|(?P<operator>\d*[<>]+&?|[();|&]+)|(?P<word>(?:[^\s'"\\();<>|&]|\\.|'[^']*'"""
    r"""|"(?:\\.|[^"\\])*")+))""",
    re.DOTALL,
)

#: After such an operator a shell takes the next word for a program, and after such a word, too.
_SEPARATOR = re.compile(r"[();|&]+")
_BEFORE_A_PROGRAM = re.compile(r"exec|env|[A-Za-z_]\w*=.*", re.DOTALL)

#: An address within an argument, such as one of ``--rlx-server=HOST:PORT`` or of a URL.
_ADDRESS = re.compile(r"(?<![\w.:-])(?:\[[0-9A-Fa-f:.]+\]|[\w.-]+):\d+(?![\w.-])")

_PYTHON = re.compile(r"python[\d.]*")


@dataclass(frozen=True)
class Word:
    """A word, or an operator, of a command."""

    #: As a program gets it.
    value: str
    start: int
    end: int
    is_operator: bool = False
    #: Whether the shell starts it as a program.
    is_program: bool = False


@dataclass(frozen=True)
class ShellCommand:
    """A command of a Procfile. ConfigurationError where a shell would not take it."""

    text: str
    words: tuple[Word, ...]

    @classmethod
    def parse(cls, text: str) -> "ShellCommand":
        """Return the words of a command; ConfigurationError where no shell would take it."""
        words, at, is_program = [], 0, True
        while token := _TOKEN.match(text, at):
            at = token.end()
            written = token["operator"] or token["word"]
            if written is None:  # a comment
                continue
            is_operator = token["operator"] is not None
            value = written if is_operator else "".join(shlex.split(written))
            words.append(Word(value, at - len(written), at, is_operator, is_program))
            goes_on = _SEPARATOR.fullmatch(value) if is_operator else (
                is_program and _BEFORE_A_PROGRAM.fullmatch(value)
            )  # fmt: skip
            is_program = bool(goes_on)
        if text[at:].strip():
            raise ConfigurationError(f"{text!r} is no shell command: No closing quotation")
        return cls(text, tuple(words))

    @property
    def goes_elsewhere(self) -> bool:
        """Whether it chooses its folder itself."""
        return any(word.is_program and word.value == "cd" for word in self.words)

    @property
    def is_made_by_a_shell(self) -> bool:
        """Whether the folder, or an argument, is known only when a shell runs it."""
        return self.goes_elsewhere or "$" in self.text or "`" in self.text

    def arguments(self, program: int) -> tuple[Word, ...]:
        """Return the words behind the one of this number, up to the next operator."""
        rest = self.words[program + 1 :]
        end = next((number for number, word in enumerate(rest) if word.is_operator), len(rest))
        return rest[:end]

    def started(self) -> list[str]:
        """Return the first program that the shell starts, and its arguments; [] for no program."""
        for number, word in enumerate(self.words):
            if word.is_program and not _BEFORE_A_PROGRAM.fullmatch(word.value):
                return [word.value, *(each.value for each in self.arguments(number))]
        return []

    def values(self, option: str) -> list[str]:
        """Return the values of an option, of whichever program."""
        found = []
        for word, following in zip(self.words, [*self.words[1:], None], strict=True):
            name, has_value, value = word.value.partition("=")
            if name == option and (has_value or following is not None):
                found.append(value if has_value or following is None else following.value)
        return found

    def with_arguments(self, program: int, arguments: tuple[str, ...]) -> "ShellCommand":
        """Return the command with further arguments of the program that is the word ``program``."""
        if not arguments:
            return self
        end = (self.arguments(program) or self.words[program : program + 1])[-1].end
        return self.parse(f"{self.text[:end]} {shlex.join(arguments)}{self.text[end:]}")

    def with_addresses(self, new: Mapping[str, str]) -> "ShellCommand":
        """Return the command with other addresses in its words, by those that are written."""
        text = self.text
        for word in reversed(self.words):
            written = text[word.start : word.end]
            told = _ADDRESS.sub(lambda found: new.get(found[0], found[0]), written)
            text = text[: word.start] + told + text[word.end :]
        return replace(self) if text == self.text else self.parse(text)


def python_program(words: Sequence[str]) -> Program | None:
    """Return the program that ``python ...`` runs; None for code, and for another command."""
    if not words or not _PYTHON.fullmatch(Path(words[0]).name):
        return None
    rest = list(words[1:])
    while rest and rest[0].startswith("-") and rest[0] not in ("-m", "-c", "-"):
        del rest[: 2 if rest[0] in ("-W", "-X") else 1]
    if rest[:1] == ["-m"] and len(rest) > 1:
        return Program(None, rest[1], rest[2:])
    if not rest or rest[0].startswith("-"):
        return None
    return Program(Path(rest[0]), None, rest[1:])
