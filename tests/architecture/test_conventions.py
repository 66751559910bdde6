"""The project's conventions that no linter checks: names, sizes of files and folders, modules of commands."""

import ast
import re
import subprocess
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("classifiers", "service", "migrations", "tests")
CODE = (".py", ".sh", ".js", ".html", ".css")
LONGEST = 400
MOST_FILES = 25
# Words that say nothing, or that a reader would not search for.
AVOIDED = {
    "told",
    "heard",
    "anew",
    "nobody",
    "whoever",
    "trouble",
    "begun",
    "deed",
    "kin",
    "utils",
    "helpers",
    "misc",
    "stuff",
}
LARGEST_CHECKOUT = 25_000_000  # bytes


def sources() -> list[Path]:
    return [
        path
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if "faultlab/programs" not in path.as_posix()  # programs that are wrong on purpose
    ]


def test_packages_hold_a_docstring_and_nothing_else() -> None:
    for path in sources():
        if path.name == "__init__.py":
            body = ast.parse(path.read_text(encoding="utf-8")).body
            assert len(body) == 1, path
            assert isinstance(body[0], ast.Expr), path


def tracked() -> list[str]:
    """The files of the repository, relative to its root."""
    return subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def test_no_source_file_exceeds_400_lines() -> None:
    # What `make vendor` copies is written by others.
    own = [name for name in tracked() if name.endswith(CODE) and "/static/vendor/" not in name]
    long = {
        name: lines for name in own if (lines := len((ROOT / name).read_text(encoding="utf-8").splitlines())) > LONGEST
    }
    assert not long


def test_the_checkout_is_small() -> None:
    assert sum((ROOT / name).stat().st_size for name in tracked() if (ROOT / name).exists()) <= LARGEST_CHECKOUT


def test_complexity_has_no_exemption() -> None:
    exempt = {
        f"{name}:{number}"
        for name in tracked()
        if name.endswith(".py") and "faultlab/programs/" not in name
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1)
        if re.search(r"[#] noqa:.*(?:C901|PLR0912|PLR0915)", line)
    }
    assert exempt == set()


def has_avoided_words(name: str) -> bool:
    return bool(AVOIDED & set(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_")))


def test_names_are_standard_words() -> None:
    found = {
        f"{name}:{node.lineno}: {node.name}"
        for name in tracked()
        if name.endswith(".py") and "faultlab/programs/" not in name
        for text in [(ROOT / name).read_text(encoding="utf-8")]
        # Parsing all files takes seconds: only those in which such a definition seems to be are read exactly.
        if any(map(has_avoided_words, re.findall(r"\b(?:def|class)\s+(\w+)", text)))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if has_avoided_words(node.name)
    }
    assert found == set()


def test_comments_of_data_files_and_code_name_paths_that_exist() -> None:
    files = set(tracked())
    missing = {
        f"{name}: {path}"
        for name in files
        if name.endswith((".toml", ".py", ".yaml", ".html", ".css"))
        and not name.startswith(("tests/data/", "tests/faultlab/programs/"))
        for comment in re.findall(r"(?:^|\s)[#] ?(.+)", (ROOT / name).read_text(encoding="utf-8"))
        for path in re.findall(
            r"(?<![\w./-])(?:classifiers|service|tests|docs|deploy|migrations)/[\w./-]+\.\w+", comment
        )
        if path not in files
    }
    assert missing == set()


def test_who_acts_is_called_actor() -> None:
    # The person who does something is `actor`, the one who wrote a stored entry `author`. Fields of records keep the
    # names of the API (`who`, `by`), and so do the parameters of the two routes that take `who` from the URL.
    found = {
        f"{path.relative_to(ROOT)}:{argument.lineno}: {argument.arg}"
        for path in (ROOT / "service").rglob("*.py")
        if path.name != "audit_log.py"
        for text in [path.read_text(encoding="utf-8")]
        if re.search(r"\b(?:who|by): str", text)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for argument in (*node.args.args, *node.args.kwonlyargs)
        if argument.arg == "who"
        or (argument.arg == "by" and ast.unparse(argument.annotation or node).startswith("str"))
    }
    assert found == set()


def test_no_folder_holds_more_than_25_files() -> None:
    files = Counter(str(Path(name).parent) for name in tracked())
    full = {folder: number for folder, number in files.items() if number > MOST_FILES}
    assert not full


def test_every_command_has_its_module_and_the_other_way_round() -> None:
    from service.cli.commands import COMMANDS  # noqa: PLC0415 -- the table under test

    modules = {
        (path.parent.name, path.stem)
        for path in (ROOT / "service" / "cli").rglob("*.py")
        if "\ndef add_parser(" in path.read_text(encoding="utf-8")
    }
    assert modules == {(command.folder, name) for name, command in COMMANDS.items()}


def targets() -> set[str]:
    """The commands of the Makefile."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    [names] = re.findall(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    return set(names.split())


def test_make_help_lists_every_command_with_its_purpose() -> None:
    listed = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    described = {words[0] for words in map(str.split, listed.splitlines()) if len(words) > 1}
    assert described == targets()


@pytest.mark.parametrize("command", ["demo", "test"])
def test_the_readme_shows_the_first_commands_in_a_block_and_make_can_run_them(command: str) -> None:
    blocks = re.findall(
        r"^```\w*\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    shown = {line.split("#")[0].strip() for block in blocks for line in block.splitlines()}
    assert f"make {command}" in shown
    planned = subprocess.run(
        ["make", "--dry-run", command], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert planned.strip()


def test_each_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    decisions = (ROOT / "docs" / "adr" / "structure" / "0034-dependencies.md").read_text(encoding="utf-8").lower()
    wanted = list(project["dependencies"])
    for extra in project["optional-dependencies"].values():
        wanted.extend(extra)
    names = {line.split("[")[0].split(">")[0].split("=")[0].split("<")[0].strip().lower() for line in wanted}
    assert {name for name in names - {"faultline"} if f"`{name}`" not in decisions} == set()
