"""What lint knows of single words: programs that run anything, words that never match, substrings. Pure."""

import re

_SHELLS = frozenset(["sh", "bash", "dash", "zsh", "ksh", "mksh", "fish", "ash", "busybox", "csh", "tcsh", "pwsh"])
_INTERPRETERS = re.compile(
    r"python[0-9.]*|pypy[0-9]*|perl[0-9.]*|ruby[0-9.]*|node|nodejs|deno|bun|php[0-9.]*|lua[0-9.]*|Rscript|julia|tclsh|wish|osascript"
)
_WRAPPERS = frozenset(
    [
        "env",
        "xargs",
        "sudo",
        "doas",
        "su",
        "nohup",
        "nice",
        "ionice",
        "timeout",
        "time",
        "setsid",
        "stdbuf",
        "exec",
        "eval",
        "command",
        "builtin",
        "watch",
        "parallel",
        "script",
        "chroot",
        "unshare",
        "nsenter",
        "flock",
        "strace",
        "ltrace",
        "gdb",
        "ssh",
        "docker",
        "podman",
        "kubectl",
        "npx",
        "uvx",
        "pipx",
        "bunx",
        "entr",
        "setarch",
        "taskset",
    ]
)
_RUNNERS = {
    "git": "aliases, hooks, pagers and configuration on the line run programs, and `git push` leaves",
    "find": "`-exec` runs programs and `-delete` removes files",
    "awk": "its programs run commands",
    "gawk": "its programs run commands",
    "sed": "its scripts write files and run commands",
    "make": "it runs whatever the makefile or the line says",
    "npm": "it runs scripts and publishes",
    "yarn": "it runs scripts and publishes",
    "pnpm": "it runs scripts and publishes",
    "tar": "`--to-command` and `--checkpoint-action` run programs",
    "vim": "it runs commands and writes files",
    "vi": "it runs commands and writes files",
    "emacs": "it runs commands and writes files",
    "gh": "it acts on the hosted repository",
    "aws": "it acts on the cloud account",
    "curl": "it sends and fetches whatever the line says",
    "wget": "it sends and fetches whatever the line says",
}


def runs_anything(name: str) -> str | None:
    """Why allowing a program by name alone is as wide as allowing everything, or None."""
    if name in _SHELLS:
        return "a shell runs any program"
    if _INTERPRETERS.fullmatch(name):
        return "an interpreter runs any code"
    if name in _WRAPPERS:
        return "it runs the program that follows"
    return _RUNNERS.get(name)


def program_is_known(name: str) -> bool:
    """Whether a table tells what the options of a program do, or it is a word of the shell."""
    from ringfence.shell.programs.load import BUILTIN

    return BUILTIN.table(BUILTIN.program(name)) is not None or "*" in name


def dead_word(word: str, *, first: bool) -> str | None:
    """Why a word of a prefix can never equal a word of a command, or None."""
    if first and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*=.*", word):
        return "an assignment in front of a command is not its first word; list the name in `process.env.assign`"
    if word in {"&&", "||", "|", ";", "&", ">", ">>", "<", "2>&1"}:
        return "shell operators are no words of a command"
    if first and word in {"do", "done", "fi", "then", "else", "esac", "if", "for", "while", "{", "}"}:
        return "it is a word of the shell's grammar"
    if first and re.search(r"\s", word):
        return "a program's name with a blank in it is another program"
    if not first and re.search(r"\s(&&|\|\||\||;)\s", word):
        return "a whole shell line is no word"
    if word.startswith("~"):
        return "the shell replaces `~` before the program sees it"
    return None


def substring_advice(text: str) -> tuple[str, str]:
    """An ordinary command that a denied substring refuses, and the structured rule to write instead."""
    words = text.split()
    name = words[0] if words else text
    example = f'git commit -m "about {text.strip()} in the docs"'
    options = [word for word in words[1:] if word.startswith("-")]
    rest = [word for word in words[1:] if not word.startswith("-")]
    if not words or not re.fullmatch(r"[\w./+-]+", name):
        return example, "{argv_prefix: [PROGRAM]}"
    prefix = ", ".join([name, *(word if word.isalpha() else f'"{word}"' for word in rest)])
    arguments = ", any_args: [" + ", ".join(f'"{option}"' for option in options) + "]" if options else ""
    return example, f"{{argv_prefix: [{prefix}]{arguments}}}"
