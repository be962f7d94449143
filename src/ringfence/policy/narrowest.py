"""The narrowest change of the policy that would allow a call. Never offered for what is protected, hidden or denied. Pure."""

import json
import re

from ringfence.model.call import FileAccess, NetworkAccess, ToolCall, ToolUse
from ringfence.model.decision import Reason
from ringfence.model.tier import Tier
from ringfence.policy.policy import Explanation
from ringfence.policy.prepare import PreparedCommand

RUNNERS = frozenset(
    [
        "sh",
        "bash",
        "dash",
        "zsh",
        "ksh",
        "fish",
        "env",
        "xargs",
        "sudo",
        "doas",
        "su",
        "ssh",
        "eval",
        "exec",
        "nohup",
        "timeout",
        "nice",
        "setsid",
        "stdbuf",
        "python",
        "python3",
        "perl",
        "ruby",
        "node",
        "php",
        "find",
        "git",
        "npm",
        "npx",
        "make",
        "awk",
        "sed",
        "docker",
    ]
)
"""Never suggested on their own: their bare name allows nearly everything."""


def narrowest_change(call: ToolCall, explanation: Explanation) -> dict[str, str] | None:
    """Where and what to write, or None where no change should be offered."""
    decision = explanation.decision
    if decision.tier is Tier.ALLOW:
        return None
    if any(reason.kind != "default" and not _is_module(reason) for reason in decision.deciding):
        return None
    request = call.request
    if isinstance(request, FileAccess):
        return None
    if isinstance(request, NetworkAccess):
        return {"where": "network.allow", "yaml": f"- {{host: {json.dumps(request.host)}, ports: [{request.port}]}}"}
    if isinstance(request, ToolUse):
        entry = f"- {{server: {json.dumps(request.server)}, tool: {json.dumps(request.tool)}}}"
        return {"where": "tools.allow", "yaml": entry}
    if explanation.prepared is None:
        return None
    missing = [reason.matched for reason in decision.deciding]
    lines = []
    for command in explanation.prepared.commands:
        if command.joined in missing:
            prefix = _prefix(command)
            if prefix is None:
                return None
            lines.append(f"- argv_prefix: {json.dumps(prefix)}")
    return {"where": "commands.allow", "yaml": "\n".join(dict.fromkeys(lines))} if lines else None


def _is_module(reason: Reason) -> bool:
    """Only that ``python -m`` runs a module, which a rule that names the module says yes to."""
    return reason.kind == "option" and re.fullmatch(r"-m \w[\w.]*", reason.matched) is not None


def _prefix(command: PreparedCommand) -> list[str] | None:
    """The program and its subcommand, as far as they are known words; a runner only with what it runs."""
    words: list[str] = []
    if command.canonical[1:2] == ("-m",) and not command.command.privileged and not command.command.remote:
        module = [text for text in command.canonical[:3] if text is not None]
        return module if len(module) == 3 else None
    for text in command.canonical:
        if text is None or (words and (text.startswith("-") or "/" in text or len(words) == 2)):
            break
        words.append(text)
    if command.command.remote or command.command.privileged or not words:
        return None
    if words[0].rpartition("/")[2] in RUNNERS and len(words) == 1:
        whole = [text for text in command.canonical if text is not None]
        return whole if len(whole) == len(command.canonical) and len(whole) > 1 else None
    return words
