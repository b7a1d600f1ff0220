"""Policy files: a folder of YAML files -> one policy set, or every mistake in all of them at once.

Decided here: which files count (``*.yaml`` directly in the folder, hidden ones not; a
``*.yml`` is a mistake, since limits that are silently not there are the worst kind) and which of YAML's powers are
refused: aliases and anchors (inheritance is the policies' own), several documents in one file, tags. PyYAML reads
YAML 1.1, in which a bare ``on`` or ``no`` is a boolean; the message then shows what was read. Not decided here: what
the files mean (`gateway.policy`).
"""

from __future__ import annotations

import re
import stat
from pathlib import Path

import yaml

from gateway.policy.node import Entry, ListNode, MappingNode, Node, Problem, Scalar, ScalarNode
from gateway.policy.policyset import PolicySet, build_policy_set
from gateway.policy.schema import parse_document

_PLAIN_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float"))
# What PyYAML finds by itself, without a tag being written. `!!set`, `!!binary`, `!!python/...` are not among them.
_KNOWN_TAGS = _PLAIN_TAGS | {
    f"tag:yaml.org,2002:{name}" for name in ("str", "map", "seq", "timestamp", "merge", "value")
}
_FILE_LIMIT_BYTES = 2**20
_SURPRISING = re.compile(r"[-+]?(0[0-7_]+$|[0-9_.]+:)")
# libyaml where PyYAML was built with it: a thousand files in less than a second instead of two or three.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class PolicyProblems(Exception):
    """The policies cannot be used; ``problems`` has all of them in the order of files and lines."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        self.problems = problems
        super().__init__("\n".join(str(problem) for problem in problems))


class Parsed:
    """Files as they were parsed the last time, so that a reload of a thousand policies parses those that changed.

    Parsing holds the interpreter's lock that requests want, and most of the time of a reload. Only the last folder's
    files are kept, by their whole text: a time of change may be as it was.
    """

    def __init__(self) -> None:
        self._known: dict[Path, tuple[str, str, Node]] = {}
        self._seen: dict[Path, tuple[str, str, Node]] = {}

    def node(self, path: Path, file: str) -> Node:
        """One file as nodes. Raises PolicyProblems when it is not readable as plain YAML."""
        text = read_text(path, file)
        known = self._known.get(path)
        found = known if known is not None and known[:2] == (file, text) else (file, text, parse_yaml(text, file))
        self._seen[path] = found
        return found[2]

    def forget_others(self) -> None:
        """Keep what was asked for since the last time."""
        self._known, self._seen = self._seen, {}


def load_policies(directory: Path, parsed: Parsed | None = None) -> PolicySet:
    """Read every policy of a folder. Raises PolicyProblems; changes nothing else, so a reload can fail safely.

    ``parsed`` has what an earlier call parsed.
    """
    parsed = Parsed() if parsed is None else parsed
    try:
        return _load(directory, parsed)
    finally:
        parsed.forget_others()


def _load(directory: Path, parsed: Parsed) -> PolicySet:
    if not directory.is_dir():
        raise PolicyProblems((Problem(str(directory), 0, "", "there is no such folder"),))
    documents = []
    problems: list[Problem] = []
    for path in sorted((*directory.glob("*.yaml"), *directory.glob("*.yml"))):
        if path.name.startswith("."):
            continue
        file = f"{directory.name}/{path.name}"
        if path.suffix == ".yml":
            problems.append(Problem(file, 1, "", "is not read: names of policy files end in .yaml"))
            continue
        try:
            document, found = parse_document(parsed.node(path, file), file)
        except PolicyProblems as error:
            problems += error.problems
            continue
        problems += found
        documents.append(document)
    policies, found = build_policy_set(documents)
    problems += found
    if not documents and not problems:
        message = "no policy file is here (*.yaml); without limits of your own, start without a folder"
        problems.append(Problem(str(directory), 0, "", message))
    if problems:
        raise PolicyProblems(tuple(sorted(problems, key=lambda problem: (problem.file, problem.line))))
    return policies


def read_text(path: Path, file: str) -> str:
    """One file's text. Raises PolicyProblems when it is none, cannot be read or is too large."""
    try:
        state = path.stat()
        if stat.S_ISFIFO(state.st_mode):  # opening it would wait for a writer, and every reload behind it
            raise PolicyProblems((Problem(file, 1, "", "is a pipe and no file"),))
        if state.st_size > _FILE_LIMIT_BYTES:
            raise PolicyProblems((Problem(file, 1, "", f"the file is larger than {_FILE_LIMIT_BYTES} bytes"),))
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise PolicyProblems((Problem(file, 1, "", f"cannot be read: {error.strerror}"),)) from error
    except UnicodeDecodeError as error:
        raise PolicyProblems((Problem(file, 1, "", "is not UTF-8"),)) from error


def parse_yaml(text: str, file: str) -> Node:
    """Turn YAML text into nodes with lines. Raises PolicyProblems."""
    try:
        root = yaml.compose(text, Loader=_LOADER)
        return ScalarNode(1, None) if root is None else _Converter(file).node(root)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise PolicyProblems((Problem(file, line, "", f"is not YAML: {error.problem}"),)) from error
    except yaml.YAMLError as error:
        raise PolicyProblems((Problem(file, 1, "", "is not YAML: it holds characters YAML does not allow"),)) from error
    except RecursionError as error:
        raise PolicyProblems((Problem(file, 1, "", "is nested too deeply"),)) from error


class _Converter:
    """From PyYAML's nodes to ours. A node met twice is an alias, which could also be a loop or a bomb."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.seen: set[int] = set()

    def node(self, source: yaml.Node) -> Node:
        line = source.start_mark.line + 1
        if id(source) in self.seen:
            message = "YAML aliases (*name) are not supported; use default.yaml, rules and tasks to share values"
            raise PolicyProblems((Problem(self.file, line, "", message),))
        self.seen.add(id(source))
        if source.tag not in _KNOWN_TAGS:
            raise PolicyProblems((Problem(self.file, line, "", f"YAML tags ({source.tag}) are not supported"),))
        if isinstance(source, yaml.MappingNode):
            entries = (Entry(self._key(key), key.start_mark.line + 1, self.node(value)) for key, value in source.value)
            return MappingNode(line, tuple(entries))
        if isinstance(source, yaml.SequenceNode):
            return ListNode(line, tuple(self.node(item) for item in source.value))
        return ScalarNode(line, _scalar(source))

    def _key(self, key: yaml.Node) -> str:
        if isinstance(key, yaml.ScalarNode):
            return str(key.value)
        raise PolicyProblems((Problem(self.file, key.start_mark.line + 1, "", "a key must be a plain word"),))


def _scalar(source: yaml.Node) -> Scalar:
    """Null, booleans and numbers as such; everything else, dates included, is text as written.

    So are numbers that YAML 1.1 does not read as people do: 010 is 8 there, and 1:30 is 90.
    """
    if source.tag not in _PLAIN_TAGS or _SURPRISING.match(source.value):
        return str(source.value)
    try:
        value: Scalar = yaml.safe_load(source.value)
    except ValueError:  # a number beyond what Python converts
        return str(source.value)
    return value
