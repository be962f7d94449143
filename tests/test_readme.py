"""What README shows is true: its policy loads and means what is said, its Python runs, its commands and pages exist."""

import importlib.util
import pathlib
import re

from ringfence.cli.main import build_parser
from ringfence.model.call import ToolCall
from ringfence.model.tier import Tier
from ringfence.policy.policy import Policy

ROOT = pathlib.Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text()


def block(language):
    return re.search(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)[1]


def test_the_policy_loads_and_decides(tmp_path):
    policy = Policy.parse(block("yaml"), root=str(tmp_path))
    (tmp_path / "x").mkdir()
    assert policy.decide(ToolCall.shell("git status", cwd=str(tmp_path))).tier is Tier.ALLOW
    assert policy.decide(ToolCall.shell("curl https://example.com", cwd=str(tmp_path))).tier is Tier.DENY


def test_the_python_of_the_readme_runs_up_to_the_supervisor(tmp_path, monkeypatch, capsys):
    (tmp_path / "sandbox_policy.yaml").write_text(block("yaml"))
    monkeypatch.chdir(tmp_path)
    code = block("python").partition("with Fence")[0]
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.startswith("allow ")


def test_every_command_shown_parses():
    for line in re.findall(r"^    ringfence (.*?)(?:  +#.*)?$", TEXT, re.MULTILINE):
        words = line.split()
        if words[0] != "run":
            build_parser().parse_args(words)


def test_the_demo_shown_has_no_bad_row():
    shown = re.search(r"```\n(demo: .*?)```", TEXT, re.DOTALL)[1]
    assert shown.count("  ok  ") == 30
    assert "BAD" not in shown


def test_the_demo_clears_what_an_overlay_left_closed_to_its_owner(tmp_path):
    spec = importlib.util.spec_from_file_location("demo", ROOT / "scripts" / "demo.py")
    demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo)
    work = tmp_path / "demo" / "bin" / "work"
    work.mkdir(parents=True)
    (work / "left").touch()
    (tmp_path / "demo" / "link").symlink_to(tmp_path)
    work.chmod(0)
    mode = tmp_path.stat().st_mode
    demo.remove(tmp_path / "demo")
    assert not (tmp_path / "demo").exists()
    assert tmp_path.stat().st_mode == mode
