"""``match`` and ``no_match`` examples of a document's rules, checked whenever it loads. Pure."""

from ringfence.model.errors import PolicyError
from ringfence.model.tier import Scope, Tier
from ringfence.policy.compile import Command, place
from ringfence.policy.document import CommandRule, Document
from ringfence.policy.match import has_argument, match_prefix
from ringfence.policy.yaml_tree import show


def check_examples(document: Document) -> None:
    """Raise PolicyError for an example that its rule does not speak about, or speaks about and must not."""
    for rule in document.commands:
        for wanted, examples in ((True, rule.match), (False, rule.no_match)):
            for example in examples:
                if _speaks(document, rule, example) is not wanted:
                    verb = "does not match" if wanted else "matches"
                    raise PolicyError(
                        "example-fails",
                        f"rule `{show(rule.id)}` {verb} its example `{show(example)}`",
                        where=str(place(rule.at)),
                        remedy="correct the rule or the example",
                    )


def _speaks(document: Document, rule: CommandRule, example: str) -> bool:
    from ringfence.policy.prepare import prepare_line

    command = Command(rule, Scope.REPOSITORY, rule.tier)
    names = set(command.program)
    for name, others in document.aliases:
        if name in names:
            names.update(others)
    for prepared in prepare_line(example):
        texts = prepared.texts
        if not texts or texts[0] is None or texts[0].rpartition("/")[2] not in names:
            continue
        length = match_prefix(command, texts, prepared.canonical)
        if not length:
            continue
        strict = rule.tier is not Tier.ALLOW
        arguments = prepared.arguments(length)
        if rule.unless_args and has_argument(rule.unless_args, arguments, widens=strict):
            continue
        if rule.any_args and not has_argument(rule.any_args, arguments, widens=not strict):
            continue
        return True
    return False
