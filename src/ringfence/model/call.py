"""What an agent asks to do. One frozen value per kind of call; the digest names exactly what will run."""

import enum
import hashlib
import json
from dataclasses import dataclass
from typing import TypeAlias

from ringfence.model.ids import CallId, Sha256


class FileAction(enum.Enum):
    """What is done to a path."""

    READ = "read"
    WRITE = "write"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellLine:
    """A line (or a script) for bash, judged as bash would read it."""

    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Argv:
    """A program and its arguments, started without a shell."""

    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAccess:
    """One access to one path. ``content`` is the text to be written where it is known, for content patterns."""

    action: FileAction
    path: str
    content: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkAccess:
    """One connection or request. ``method``, ``path``, ``query`` and ``body`` are known only where traffic is inspected."""

    host: str
    port: int
    protocol: str = "tcp"
    method: str | None = None
    path: str | None = None
    query: str | None = None
    body: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """A call of an API or MCP tool. ``arguments`` is canonical JSON text (sorted keys, no spaces)."""

    server: str
    tool: str
    arguments: str = "{}"


Request: TypeAlias = ShellLine | Argv | FileAccess | NetworkAccess | ToolUse


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a ``when`` condition may ask about the caller. Known to the supervisor, never taken from the agent's word.

    ``branch`` and ``remotes`` (name, URL) are read from git's files by trusted code; ``None`` or empty means not known,
    and a condition on something not known does not hold for ALLOW.
    """

    agent: str | None = None
    env_class: str | None = None
    interactive: bool = False
    branch: str | None = None
    remotes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of an agent. ``cwd`` is an absolute path on the host; the constructors below take what a caller has."""

    request: Request
    cwd: str
    id: CallId = CallId("")
    context: Context = Context()

    @classmethod
    def shell(cls, line: str, *, cwd: str = ".", context: Context | None = None) -> "ToolCall":
        """A line for bash."""
        return cls(request=ShellLine(line=line), cwd=cwd, context=context or Context())

    @classmethod
    def argv(cls, argv: list[str] | tuple[str, ...], *, cwd: str = ".", context: Context | None = None) -> "ToolCall":
        """A program with its arguments, no shell between."""
        return cls(request=Argv(argv=tuple(argv)), cwd=cwd, context=context or Context())

    @classmethod
    def file(
        cls,
        action: str | FileAction,
        path: str,
        *,
        cwd: str = ".",
        content: str | None = None,
        context: Context | None = None,
    ) -> "ToolCall":
        """A read, write or delete of one path. Raises ValueError for another word."""
        request = FileAccess(action=FileAction(action), path=path, content=content)
        return cls(request=request, cwd=cwd, context=context or Context())

    @classmethod
    def network(
        cls,
        host: str,
        port: int,
        *,
        protocol: str = "tcp",
        method: str | None = None,
        path: str | None = None,
        query: str | None = None,
        body: str | None = None,
        cwd: str = ".",
        context: Context | None = None,
    ) -> "ToolCall":
        """A connection to a host and port, or one request where traffic is inspected."""
        request = NetworkAccess(
            host=host, port=port, protocol=protocol, method=method, path=path, query=query, body=body
        )
        return cls(request=request, cwd=cwd, context=context or Context())

    @classmethod
    def tool(
        cls, server: str, tool: str, args: object = None, *, cwd: str = ".", context: Context | None = None
    ) -> "ToolCall":
        """A tool of an API or MCP server. ``args`` is any JSON value."""
        arguments = json.dumps({} if args is None else args, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return cls(
            request=ToolUse(server=server, tool=tool, arguments=arguments), cwd=cwd, context=context or Context()
        )

    @property
    def kind(self) -> str:
        """``shell``, ``argv``, ``file``, ``network`` or ``tool``."""
        return KINDS[type(self.request)]

    def digest(self) -> Sha256:
        """SHA-256 over the request and the working directory: what an approval is bound to."""
        fields = {name: _plain(getattr(self.request, name)) for name in self.request.__dataclass_fields__}
        text = json.dumps({"kind": self.kind, "cwd": self.cwd, **fields}, sort_keys=True, separators=(",", ":"))
        return Sha256(hashlib.sha256(text.encode()).hexdigest())


KINDS: dict[type, str] = {
    ShellLine: "shell",
    Argv: "argv",
    FileAccess: "file",
    NetworkAccess: "network",
    ToolUse: "tool",
}


def _plain(value: object) -> object:
    return value.value if isinstance(value, enum.Enum) else value
