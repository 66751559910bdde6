"""`faultline completion bash|zsh|fish`: print a shell completion script made from the commands' own parsers."""

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass

from service.cli import output
from service.cli.argument_types import Subparsers
from service.cli.commands import full_parser

INSTALL = """\
Install with one of:
  faultline completion bash > ~/.local/share/bash-completion/completions/faultline
  faultline completion zsh > ~/.zfunc/_faultline
  faultline completion fish > ~/.config/fish/completions/faultline.fish
"""


@dataclass(frozen=True, slots=True)
class Level:
    """One command path such as `token create`, with the words that may follow it as (word, help)."""

    path: tuple[str, ...]
    words: tuple[tuple[str, str], ...]


def add_parser(commands: Subparsers) -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser(
        "completion",
        help="print a shell completion script",
        description=INSTALL,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))


def run(args: argparse.Namespace) -> int:
    """Print the script of one shell."""
    levels = tuple(levels_of(full_parser()))
    output.document({"bash": bash, "zsh": zsh, "fish": fish}[args.shell](levels), end="")
    return 0


def levels_of(parser: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> Iterator[Level]:
    """Yield each level of a parser: its subcommands, choices and long options."""
    words: list[tuple[str, str]] = []
    below: list[tuple[str, argparse.ArgumentParser]] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            summaries = {choice.dest: choice.help or "" for choice in action._choices_actions}
            words += [(name, summaries.get(name, "")) for name in action.choices]
            below += action.choices.items()
        elif action.option_strings:
            words += [(name, action.help or "") for name in action.option_strings if name.startswith("--")]
        elif action.choices is not None:
            words += [(str(choice), "") for choice in action.choices]
    yield Level(path, tuple((word, _summary(text)) for word, text in words))
    for name, subparser in below:
        yield from levels_of(subparser, (*path, name))


def bash(levels: tuple[Level, ...]) -> str:
    """Return the completion script for bash: words by command path, else file names."""
    cases = "\n".join(
        f'    "{" ".join(level.path)}") words="{" ".join(word for word, _ in level.words)}" ;;' for level in levels
    )
    known = "|".join(sorted({level.path[-1] for level in levels if level.path}))
    return f"""\
_faultline() {{
  local path="" words="" word
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$word" in
      {known}) path="${{path:+$path }}$word" ;;
    esac
  done
  case "$path" in
{cases}
  esac
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -o bashdefault -F _faultline faultline
"""


def zsh(levels: tuple[Level, ...]) -> str:
    """Return the completion script for zsh, which runs the one for bash."""
    return f"#compdef faultline\nautoload -U +X bashcompinit && bashcompinit\n{bash(levels)}"


def fish(levels: tuple[Level, ...]) -> str:
    """Return the completion script for fish: one line a word, with its help."""
    lines = ["complete -c faultline -e"]
    commands = " ".join(word for word, _ in levels[0].words if not word.startswith("-"))
    for level in levels:
        if level.path:
            condition = " && ".join(f"__fish_seen_subcommand_from {name}" for name in level.path)
        else:
            condition = f"not __fish_seen_subcommand_from {commands}"
        for word, summary in level.words:
            name = f"-l {word[2:]}" if word.startswith("--") else f"-a {word}"
            about = f" -d '{summary}'" if summary else ""
            lines.append(f"complete -c faultline -n '{condition}' {name}{about}")
    return "\n".join(lines) + "\n"


def _summary(text: str) -> str:
    """Return the help text in one line without characters that a shell's quotes could not hold."""
    return re.sub(r"['\"\\`$%]", "", " ".join(text.split()))[:80]
