"""`penstock completion`: scripts for bash, zsh and fish, made from the commands themselves."""

from __future__ import annotations

import argparse
from typing import Any

from penstock.cli.options import add_format

HELP = """\
  bash   source <(penstock completion bash)
  zsh    source <(penstock completion zsh)
  fish   penstock completion fish | source"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = HELP
    parser.add_argument("shell", choices=["bash", "zsh", "fish"])
    add_format(parser)
    parser.set_defaults(handler=show)


def show(args: argparse.Namespace) -> None:
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[args.shell](_words()))


def _words() -> dict[str, list[str]]:
    """What may follow each path: "" the commands, "topic" its actions, "topic ls" its options."""
    from penstock.cli.main import build, names

    words = {"": [*names(), "--help", "--version"]}
    for name in names():
        parser = build(name)
        actions = _actions(parser)
        words[name] = list(actions) or _options(parser)
        for action, sub in actions.items():
            words[f"{name} {action}"] = _options(sub)
    return words


def _actions(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    found: Any = next((a.choices for a in parser._actions if isinstance(a, argparse._SubParsersAction)), None)
    return dict(found) if found else {}


def _options(parser: argparse.ArgumentParser) -> list[str]:
    options = [word for action in parser._actions for word in action.option_strings if word.startswith("--")]
    choices = [str(c) for a in parser._actions if not a.option_strings and a.choices for c in a.choices]
    return choices + options


def _bash(words: dict[str, list[str]]) -> str:
    cases = "\n".join(f'    "{path}") words="{" ".join(found)}" ;;' for path, found in words.items() if path)
    return f"""\
_penstock() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" path="${{COMP_WORDS[1]}}" words="{" ".join(words[""])}"
  if [ "$COMP_CWORD" -gt 2 ]; then path="$path ${{COMP_WORDS[2]}}"; fi
  if [ "$COMP_CWORD" -gt 1 ]; then case "$path" in
{cases}
    *) case "${{COMP_WORDS[1]}}" in
{_indented(cases)}
      *) words="" ;;
    esac ;;
  esac; fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _penstock penstock"""


def _indented(cases: str) -> str:
    return "\n".join("  " + line for line in cases.split("\n"))


def _zsh(words: dict[str, list[str]]) -> str:
    return "autoload -U +X bashcompinit && bashcompinit\n" + _bash(words)


def _fish(words: dict[str, list[str]]) -> str:
    lines = ["complete -c penstock -f"]
    for path, found in words.items():
        parts = path.split()
        condition = (
            "__fish_use_subcommand" if not parts else "; and ".join(f"__fish_seen_subcommand_from {p}" for p in parts)
        )
        for word in found:
            option = f"-l {word[2:]}" if word.startswith("--") else f"-a {word}"
            lines.append(f"complete -c penstock -n '{condition}' {option}")
    return "\n".join(lines)
