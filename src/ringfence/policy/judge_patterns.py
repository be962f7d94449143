"""Regular expressions over the texts of a call. RE2 only: linear time, so that no text an agent writes can stall it.

A pattern that cannot be run (too large a text, out of RE2's memory) is a DENY, never a pass. Pure; RE2 is imported
when a policy has patterns.
"""

from ringfence.model.call import (
    Argv,
    FileAccess,
    FileAction,
    NetworkAccess,
    ShellLine,
    ToolCall,
    ToolUse,
)
from ringfence.model.decision import Reason
from ringfence.model.errors import PolicyError
from ringfence.model.ids import RuleId
from ringfence.model.tier import Scope, Tier
from ringfence.policy.compile import place
from ringfence.policy.conditions import Circumstances, holds
from ringfence.policy.document import PatternRule
from ringfence.policy.yaml_tree import show

MAX_REGEX = 4096
MAX_TEXT = 16 << 20
_MEMORY = 16 << 20


class Pattern:
    """One pattern rule with its compiled expression."""

    __slots__ = ("_regex", "rule", "scope")

    def __init__(self, rule: PatternRule, scope: Scope) -> None:
        import re2

        self.rule = rule
        self.scope = scope
        where = str(place(rule.at))
        if len(rule.regex) > MAX_REGEX:
            raise PolicyError(
                "bad-pattern",
                f"pattern `{show(rule.id)}` is longer than {MAX_REGEX} characters",
                where=where,
                remedy="split it",
            )
        options = re2.Options()
        options.max_mem = _MEMORY
        options.log_errors = False
        try:
            self._regex = re2.compile(rule.regex, options)
        except re2.error as error:
            problem = error.args[0] if error.args else "not readable"
            problem = problem.decode("utf-8", "replace") if isinstance(problem, bytes) else str(problem)
            raise PolicyError(
                "bad-pattern",
                f"pattern `{show(rule.id)}` is no RE2 expression: {show(problem, 120)}",
                where=where,
                remedy="RE2 has no look-around and no back-references; see docs/policy.md",
            ) from None

    def judge(self, texts: dict[str, list[str]], circumstances: Circumstances) -> list[Reason]:
        """A reason where one of the rule's fields holds the expression."""
        rule = self.rule
        if rule.when is not None and not holds(rule.when, circumstances, unknown=True):
            return []
        for field in rule.on:
            for text in texts.get(field, ()):
                if len(text) > MAX_TEXT:
                    return [self._reason(Tier.DENY, field, "the text is too large to be searched", "fault")]
                try:
                    found = self._regex.search(text.encode("utf-8", "surrogatepass").decode("utf-8", "replace"))
                except Exception as error:  # noqa: BLE001 - whatever RE2 raises, the pattern did not run
                    return [
                        self._reason(
                            Tier.DENY, field, f"the pattern could not be run ({type(error).__name__})", "fault"
                        )
                    ]
                if found is not None:
                    return [self._reason(rule.tier, field, rule.because or "the pattern is found", "rule")]
        return []

    def _reason(self, tier: Tier, field: str, because: str, kind: str) -> Reason:
        # What was found may be the secret itself: the field is named, the text is not shown.
        return Reason(
            rule=RuleId(self.rule.id),
            scope=self.scope,
            place=place(self.rule.at),
            tier=tier,
            matched=field,
            because=because,
            kind=kind,
        )


def texts_of(call: ToolCall, argument_words: tuple[str, ...], resolved: str | None) -> dict[str, list[str]]:
    """The fields of a call that patterns can look at."""
    request = call.request
    match request:
        case ShellLine():
            return {"command.line": [request.line], "command.argument": list(argument_words)}
        case Argv():
            return {"command.line": [" ".join(request.argv)], "command.argument": list(request.argv)}
        case FileAccess():
            paths = [request.path] if resolved is None or resolved == request.path else [request.path, resolved]
            fields = {f"file.{request.action.value}.path": paths}
            if request.action is FileAction.WRITE and request.content is not None:
                fields["file.write.content"] = [request.content]
            return fields
        case NetworkAccess():
            fields = {"net.host": [request.host]}
            named = (("net.path", request.path), ("net.query", request.query), ("net.body", request.body))
            fields.update({name: [value] for name, value in named if value is not None})
            return fields
        case ToolUse():
            return {"tool.name": [f"{request.server}/{request.tool}"], "tool.arguments": [request.arguments]}
