"""What the pages of docs/ show is so: commands parse, examples load, links lead somewhere, tests that are named exist."""

import ast
import functools
import json
import pathlib
import re
import shlex
import tomllib

import pytest

from ringfence.cli import run as running
from ringfence.cli.main import COMMANDS, build_parser, main
from ringfence.policy.policy import Policy
from ringfence.policy.starting import starting_policy
from ringfence.promotion.policy import parse_policy
from ringfence.promotion.starter import starter_policy
from ringfence.shell.programs import Tables
from ringfence.supervisor.netsettings import load_settings
from ringfence.supervisor.paths import make_private, user_paths

ROOT = pathlib.Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
HEAD = "version: 1\nfail_closed: true\n"


def lines_of_commands(text):
    """Whole lines that begin with ringfence, without the remark behind two blanks or a #."""
    for indent, line in re.findall(r"^( {4})?ringfence ([a-z-].*)$", text, re.MULTILINE):
        if indent or line.split()[0] in COMMANDS:  # a sentence may begin with the name
            yield re.split(r"  +|\s#|\s>", line)[0]


SHOWN = [(page.name, line) for page in PAGES for line in lines_of_commands(page.read_text())]


@pytest.mark.parametrize(("page", "line"), SHOWN)
def test_a_command_that_is_shown_parses(page, line):
    words = [word for word in shlex.split(line.replace("[--json]", "--json")) if word != "…"]
    if words[0] == "run":
        running.parse(words[1:])
    else:
        build_parser().parse_args(words)


def verbs(parser):
    """Subcommands with their verbs, two words deep."""
    action = next((a for a in parser._actions if hasattr(a, "choices") and isinstance(a.choices, dict)), None)
    return {} if action is None else {name: verbs(sub) for name, sub in action.choices.items()}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_command_that_is_named_exists(page):
    known = verbs(build_parser())
    for span in re.findall(r"`(?:ringfence )([a-z][^`]*)`", page.read_text().replace("\n", " ")):
        first, *rest = span.split()
        assert first in known, span
        verb = next((word for word in rest if word.isalpha() and word.islower()), None)
        if known[first] and verb is not None:
            assert verb in known[first], span


def blocks(page, language):
    """Fenced examples of one language."""
    text = (ROOT / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def indented(page, key):
    """Indented examples whose first line begins with the key, without the indent."""
    text = (ROOT / page).read_text()
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    found = re.findall(r"(?:^(?: {4}.*|)\n)+", text, re.MULTILINE)
    return [
        re.sub(r"^ {4}", "", block, flags=re.MULTILINE).strip("\n") for block in found if block.strip().startswith(key)
    ]


@pytest.mark.parametrize("text", indented("docs/network.md", "network:"))
def test_the_rules_of_the_network_page_load(text, tmp_path):
    assert Policy.parse(HEAD + text, root=str(tmp_path)).digest


@pytest.mark.parametrize("key", ["credentials:", "host_ports:"])
def test_the_settings_of_the_network_page_load(key, tmp_path):
    paths = user_paths(str(tmp_path))
    make_private(paths.config)
    (text,) = indented("docs/network.md", key)
    file = pathlib.Path(paths.config, "network.yaml")
    file.write_text(text.partition("ringfence mission")[0])
    file.chmod(0o600)
    settings = load_settings(paths)
    assert settings.credentials or settings.host_ports


def test_the_answer_of_why_is_what_the_page_shows(tmp_path, monkeypatch, capsys):
    (shown,) = [block for block in blocks("docs/how-commands-are-judged.md", "") if block.startswith("$ ringfence why")]
    command, _, answer = shown.partition("\n")
    (tmp_path / ".git").mkdir()
    (tmp_path / "sandbox_policy.yaml").write_text(starting_policy(("coding-agent", "git")))
    monkeypatch.chdir(tmp_path)
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    assert main(["--test-root", str(state), "policy", "trust", "--yes"]) == 0
    capsys.readouterr()
    main(["--test-root", str(state), *shlex.split(command)[2:]])
    assert capsys.readouterr().out.startswith(answer)


@pytest.mark.parametrize("text", indented("docs/promotion.md", '"'))
def test_the_options_of_the_promotion_page_are_read(text):
    policy = json.loads(starter_policy(["services/checkout"], "checkout.tar", ".")) | json.loads("{" + text + "}")
    assert parse_policy(json.dumps(policy).encode())


def test_the_program_table_that_is_shown_is_read():
    (text,) = blocks("docs/program-tables.md", "toml")
    tables = Tables([("shown.toml", text)])
    tables.check()
    assert {"frob", "frobnicate"} <= set(tables.names())


@pytest.mark.parametrize("page", [page for page in PAGES if "```" in page.read_text()], ids=lambda page: page.name)
def test_fenced_examples_are_well_formed(page):
    for text in blocks(page, "json"):
        json.loads(text)
    for text in blocks(page, "toml"):
        tomllib.loads(text)
    for text in blocks(page, "python"):
        ast.parse(text)


def anchors(page):
    """The names that a code host gives to the headings of a page."""
    found = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in found}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" not in target:
            name, _, anchor = target.partition("#")
            there = page.parent / name if name else page
            assert there.exists(), target
            assert not anchor or anchor in anchors(there), target


@functools.cache
def functions():
    """Names of all test functions of the suite."""
    return {
        node.name
        for file in (ROOT / "tests").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tests_and_files_that_are_named_exist(page):
    text = page.read_text()
    names = functions()
    for word in re.findall(r"`(test_\w+)`", text):
        assert word in names, word
    for path in re.findall(r"(?<![\w/])((?:tests|scripts|bench|integrations|examples)/[\w./-]*\w/?)", text):
        assert (ROOT / path).exists(), path


def test_source_files_and_functions_that_the_architecture_names_exist():
    named = re.findall(r"`([\w/*]+\.(?:py|toml))(?::([\w.]+))?`", (ROOT / "docs/architecture.md").read_text())
    assert len(named) > 60
    for path, name in named:
        found = [*(ROOT / "src/ringfence").rglob(path), *ROOT.glob(path)]
        assert found, path
        for part in filter(None, name.split(".")):
            assert any(re.search(rf"\b(?:def|class) {part}\b", file.read_text()) for file in found), (path, name)
