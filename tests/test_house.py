"""The house itself: layers really fail on a planted fault, every error code is documented, names that must not appear do not."""

import ast
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent
SOURCE = ROOT / "src" / "ringfence"


def lint_imports(folder: pathlib.Path) -> subprocess.CompletedProcess[str]:
    code = "import sys; sys.path.insert(0, 'src'); from importlinter.cli import lint_imports_command as c; c(['--no-cache'])"
    return subprocess.run(
        [sys.executable, "-c", code], check=False, cwd=folder, capture_output=True, text=True, timeout=120
    )


PLANTED = {
    "capability rooms see each other": ("ledger/log.py", "import ringfence.policy.policy\n"),
    "model imports something of ours": ("model/tier.py", "import ringfence.policy\n"),
    "a pure file touches the world": ("model/call.py", "import subprocess\n"),
    "a capability room knows the supervisor": ("sandbox/plan.py", "import ringfence.supervisor.paths\n"),
}


@pytest.fixture
def copy(tmp_path: pathlib.Path) -> pathlib.Path:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_layers_hold_as_they_are(copy):
    result = lint_imports(copy)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_import_breaks_a_contract(copy, name):
    file, line = PLANTED[name]
    path = copy / "src" / "ringfence" / file
    path.write_text(path.read_text() + line)
    result = lint_imports(copy)
    assert result.returncode != 0, result.stdout
    assert "BROKEN" in result.stdout


WORLDLY = {
    "os",
    "subprocess",
    "socket",
    "http",
    "asyncio",
    "threading",
    "tempfile",
    "sqlite3",
    "time",
    "random",
    "secrets",
    "logging",
}


def touches_the_world(tree: ast.Module) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names} & WORLDLY
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module.split(".")[0]} & WORLDLY
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"open", "exec", "eval"}
        ):
            found.add(node.func.id)
    return found


def pure_files() -> list[pathlib.Path]:
    """Files that call themselves pure in their first lines, in every room."""
    return [
        f for f in SOURCE.rglob("*.py") if re.search(r"\bPure\b", ast.get_docstring(ast.parse(f.read_text())) or "")
    ]


def test_files_that_call_themselves_pure_touch_nothing():
    assert len(pure_files()) > 80
    found = {str(file.relative_to(SOURCE)): touches_the_world(ast.parse(file.read_text())) for file in pure_files()}
    assert {name: what for name, what in found.items() if what} == {}


def test_a_pure_file_that_opens_something_would_be_found():
    assert touches_the_world(ast.parse("def f():\n    import time\n    return open('x')")) == {"time", "open"}


def error_codes() -> set[str]:
    codes = set()
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.endswith("Error"):
                first = node.args[0] if node.args else None
                if (
                    isinstance(first, ast.Constant)
                    and isinstance(first.value, str)
                    and re.fullmatch(r"[a-z][a-z0-9-]+", first.value)
                ):
                    codes.add(first.value)
    return codes


def test_every_error_code_has_a_heading():
    headings = set(re.findall(r"^## (\S+)$", (ROOT / "docs" / "errors.md").read_text(), re.MULTILINE))
    assert error_codes() - headings == set()


def test_no_registry_host_is_named():
    hosts = ["py" + "pi.org", "python" + "hosted.org", "npm" + "js.org", "npm" + "js.com", "deb." + "debian.org"]
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    for name in filter(None, listed):
        path = ROOT / name
        if path.is_file() and not path.is_symlink():
            text = path.read_text(errors="replace")
            assert not [host for host in hosts if host in text], name


def test_every_command_module_has_its_two_functions():
    from ringfence.cli.main import COMMANDS

    for name, (module, _) in COMMANDS.items():
        tree = ast.parse((SOURCE / "cli" / f"{module}.py").read_text())
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert {"main"} <= functions if name == "run" else {"configure", "run"} <= functions, name
