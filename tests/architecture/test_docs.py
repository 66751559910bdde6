"""The documents name commands, options, settings, paths, routes and metrics that exist."""

import argparse
import ast
import importlib.util
import re
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml
from fastapi import FastAPI

from classifiers.contracts import DIAGNOSTIC_KINDS
from service.cli.commands import COMMANDS, parser_for
from service.contracts.event import LogRef
from service.hooks.options import PREFIX as HOOK_PREFIX
from service.setting_texts import CLIENT_TOKEN_FILE, CLIENT_URL, PREFIX
from service.settings import SECRETS, Settings
from service.web.app import API
from service.web.request_gate import API_PREFIX
from tests.architecture import documents
from tests.architecture.documents import ROOT

README = Path("README.md")
CHANGELOG = Path("CHANGELOG.md")
SETTING = re.compile(rf"\b{PREFIX}[A-Z_]*[A-Z]\b")
METRIC = re.compile(r"\bfaultline_[a-z_]+")
ROUTE = re.compile(r"\b(GET|POST|PUT|DELETE) (/api/v1/[\w/{}:.-]+)")
# Environment variables that hooks hand to the programs and jobs they start.
HANDED_ON = {"FAULTLINE_REQUEST_ID", "FAULTLINE_RESUME_FROM", "FAULTLINE_BATCH_FACTOR"}
# Options of other programs that documents name on their own.
OTHER_PROGRAMS = {"--set", "--uid", "--export-file", "--export", "--no-requeue", "--comment", "--no-cache-dir"}
# Shorter parts of a message occur by chance.
LONG_ENOUGH = 8
# Paths that an operator or a release makes.
MADE_LATER = {"deploy/secrets/", "classifiers/trained_model"}


def choices(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The subcommands of a parser."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def options(parser: argparse.ArgumentParser) -> set[str]:
    """The options of a parser and of its subcommands."""
    own = {option for action in parser._actions for option in action.option_strings}
    return own.union(*(options(one) for one in choices(parser).values()))


@cache
def command_parser(command: str) -> argparse.ArgumentParser:
    return choices(parser_for(command))[command]


def problem(words: list[str]) -> str | None:
    """What is wrong with the words after `faultline`, None if nothing is."""
    if not words or words[0].startswith("-"):
        return None if set(words) <= options(parser_for(None)) else f"no option {words}"
    names = words[0].split("|")
    if missing := set(names) - set(COMMANDS):
        return f"no command {missing}"
    for name in names:
        parser = command_parser(name)
        rest = words[1:]
        positional = {
            choice for action in parser._actions for choice in (action.choices or ()) if not action.option_strings
        }
        if rest and positional:
            wanted = set(rest[0].split("|"))
            if not wanted <= positional and re.fullmatch(r"[a-z|]+", rest[0]):
                return f"no subcommand {wanted - positional} of {name}"
            parser = choices(parser).get(rest[0], parser)
        ended = rest.index("--") if "--" in rest else len(rest)
        used = {part for word in rest[:ended] for part in re.findall(r"(?<![\w-])--[a-z][a-z-]*", word)}
        if unknown := used - options(parser):
            return f"no option {unknown} of {name}"
    return None


@cache
def every_option() -> frozenset[str]:
    """Every option of the `faultline` commands and of the benchmark of pages."""
    own = frozenset().union(*(options(command_parser(name)) for name in COMMANDS))
    bench = (ROOT / "tests" / "bench" / "page.py").read_text(encoding="utf-8")
    return own | set(re.findall(r"\"(--[a-z-]+)\"", bench))


def wrong(check: Callable[[Path], set[str]]) -> dict[str, set[str]]:
    """What a check finds in each document, documents without a finding left out."""
    found = {str(document): check(document) for document in documents.documents()}
    return {document: names for document, names in found.items() if names}


def test_commands_exist() -> None:
    def check(document: Path) -> set[str]:
        return {found for words in documents.commands(document, "faultline") if (found := problem(words))}

    assert wrong(check) == {}


def test_options_named_alone_exist() -> None:
    known = every_option() | OTHER_PROGRAMS

    def check(document: Path) -> set[str]:
        alone = {span.split()[0].split("=")[0] for span in documents.spans(document) if re.match(r"--[a-z]", span)}
        return alone - known

    assert wrong(check) == {}


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))

    def check(document: Path) -> set[str]:
        return {words[0] for words in documents.commands(document, "make") if words} - targets

    assert wrong(check) == {}


def runs(module: str) -> bool:
    """Whether `python -m` can run a module."""
    found = importlib.util.find_spec(module)
    if found is None or found.submodule_search_locations is None:
        return found is not None
    return importlib.util.find_spec(f"{module}.__main__") is not None


def test_python_modules_that_are_run_exist() -> None:
    def check(document: Path) -> set[str]:
        run = {words[1] for words in documents.commands(document, "python") if words[:1] == ["-m"]}
        own = {name for name in run if name.split(".")[0] in {"classifiers", "service", "tests"}}
        return {name for name in own if not runs(name)}

    assert wrong(check) == {}


def test_settings_exist() -> None:
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    known |= {f"{PREFIX}{name.upper()}_FILE" for name in SECRETS}
    hook = options(command_parser("hook"))
    known |= {CLIENT_URL, CLIENT_TOKEN_FILE}
    known |= {HOOK_PREFIX + option.removeprefix("--").replace("-", "_").upper() for option in hook}

    def check(document: Path) -> set[str]:
        text = documents.text_of(document)
        return {name for name in SETTING.findall(text) if f"{name}_*" not in text} - known - HANDED_ON

    assert wrong(check) == {}


def test_paths_exist() -> None:
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    tops = {path.name for path in ROOT.iterdir() if path.is_dir()} & {name.split("/")[0] for name in files}

    bases = {Path(name).name for name in files}

    def check(document: Path) -> set[str]:
        spans = set(documents.spans(document))
        named = {span for span in spans if re.fullmatch(r"[\w.<>*/-]+", span) and "/" in span}
        local = {span for span in named if span.split("/")[0] in tops} - MADE_LATER
        alone = {span for span in spans if re.fullmatch(r"[\w-]+\.(py|toml|md|yaml)", span)}
        return (alone - bases) | {
            span for span in local if not any(ROOT.glob(re.sub(r"<[^>]*>", "*", span.rstrip("/"))))
        }

    assert wrong(check) == {}


def test_links_inside_the_project_resolve() -> None:
    def check(document: Path) -> set[str]:
        broken = set()
        for target in documents.LINK.findall(documents.prose(document)):
            name, _, anchor = target.partition("#")
            path = (ROOT / document).parent / name if name else ROOT / document
            known = documents.anchors(path.resolve().relative_to(ROOT)) if anchor and path.is_file() else set()
            if not re.match(r"[a-z]+:", target) and (not path.exists() or (anchor and anchor not in known)):
                broken.add(target)
        return broken

    assert wrong(check) == {}


def test_routes_exist() -> None:
    app = FastAPI()
    for module in API:
        app.include_router(module.router, prefix=API_PREFIX)
    known = {(method.upper(), plain(path)) for path, methods in app.openapi()["paths"].items() for method in methods}

    def check(document: Path) -> set[str]:
        found = ROUTE.findall(documents.prose(document))
        named = {(method, plain(re.sub(r"/schemas/.+", "/schemas/{name}", path).rstrip("."))) for method, path in found}
        return {f"{method} {path}" for method, path in named - known}

    assert wrong(check) == {}


def plain(path: str) -> str:
    """A path with placeholders that have no name."""
    return re.sub(r"\{[^}]*\}", "{}", path)


def test_metrics_exist() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "service").rglob("*.py"))
    known = set(METRIC.findall(source))

    def check(document: Path) -> set[str]:
        named = set(METRIC.findall(documents.text_of(document)))
        return {name for name in named if name not in known and name.removesuffix("_total") not in known}

    assert wrong(check) == {}


def messages() -> str:
    """Every text constant of the service, one a line."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "service").rglob("*.py")]
    constants = [node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return "\n".join(value for value in constants if isinstance(value, str))


def test_the_messages_that_the_runbook_explains_exist() -> None:
    texts = messages()
    explained = 0
    for section in documents.sections(Path("deploy/RUNBOOK.md")):
        for row in section.rows:
            for message in re.findall(r'"([^"]+)"', row[0]):
                parts = [part.strip() for part in re.split(r"\.\.\.|\d+", message)]
                assert [part for part in parts if len(part) >= LONG_ENOUGH and part not in texts] == [], message
                explained += 1
    assert explained > 0


def test_the_buttons_and_headings_that_the_runbook_names_exist() -> None:
    named = set(re.findall(r"(?<![*\w])\*([^*\n]+)\*(?![*\w])", documents.prose(Path("deploy/RUNBOOK.md"))))
    pages = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "service" / "web").rglob("*.html"))
    assert named
    assert {name for name in named if name not in pages} == set()


def test_every_alert_has_a_severity_and_a_section_of_the_runbook() -> None:
    titles = {section.title for section in documents.sections(Path("deploy/RUNBOOK.md"))}
    groups = yaml.safe_load((ROOT / "deploy" / "prometheus" / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
    alerts = [alert for group in groups for alert in group["rules"]]
    assert alerts
    for alert in alerts:
        assert alert["alert"].startswith("Faultline")
        assert alert["labels"]["severity"] in {"critical", "warning", "info"}, alert["alert"]
        named = re.match(r'deploy/RUNBOOK.md, "([^"]+)"', alert["annotations"]["runbook"])
        assert named is not None, alert["alert"]
        assert named[1] in titles


def test_every_command_has_a_row() -> None:
    rows = re.findall(r"^\| `faultline (\w+)`", documents.text_of(Path("docs/commands.md")), re.MULTILINE)
    assert sorted(rows) == sorted(COMMANDS)


def printing_json(parser: argparse.ArgumentParser, name: str) -> Iterator[str]:
    """The commands that print JSON with `--json`; another one takes the name of a file by it."""
    if any("--json" in action.option_strings and action.nargs == 0 for action in parser._actions):
        yield name
    for subcommand, one in choices(parser).items():
        yield from printing_json(one, f"{name} {subcommand}")


def test_every_command_that_prints_json_is_listed() -> None:
    text = documents.text_of(Path("docs/commands.md")).partition("## JSON output")[2]
    listed = [line for line in text.splitlines() if "--json" in line]
    found = [name for command in COMMANDS for name in printing_json(command_parser(command), command)]
    missing = [name for name in found if not any(line.startswith(f"faultline {name} ") for line in listed)]
    assert missing == [], "add them to JSON output in docs/commands.md"


def test_every_setting_is_in_a_document() -> None:
    guides = [one for one in documents.documents() if one != CHANGELOG and "adr" not in one.parts]
    named = {name for guide in guides for name in SETTING.findall(documents.text_of(guide))}
    unnamed = {PREFIX + name.upper() for name in Settings.model_fields} - named
    assert unnamed == set(), "name them in deploy/RUNBOOK.md"


def test_tables_that_the_code_calls_otherwise_are_listed() -> None:
    tables = [
        found
        for path in (ROOT / "service").rglob("*.py")
        for found in re.findall(r'^(\w+) = Table\(\n? *"(\w+)"', path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert len(tables) > 40
    listed = re.findall(
        r"^\| `(\w+)` \| `(\w+)` \| .* \| .* \|$", documents.text_of(Path("CONTRIBUTING.md")), re.MULTILINE
    )
    assert sorted(listed) == sorted((table, name) for name, table in tables if name != table)


def test_every_diagnostic_file_is_described() -> None:
    described = re.findall(r"^\| `(\w+)` \|", documents.text_of(Path("docs/diagnostic-files.md")), re.MULTILINE)
    assert sorted(described) == sorted(("kind", *DIAGNOSTIC_KINDS))  # with the heading
    of_field = LogRef.model_fields["kind"].description or ""
    assert {kind for kind in DIAGNOSTIC_KINDS if kind not in of_field} == set()


def test_the_readme_is_short() -> None:
    lines = documents.text_of(README).splitlines()
    assert len(lines) <= 120
    assert [line for line in lines if len(line) > 120] == []


def test_what_is_not_released_can_be_read_before_an_upgrade() -> None:
    parts = re.split(r"^(?=## )", documents.text_of(CHANGELOG), flags=re.MULTILINE)
    lines = next(part for part in parts if part.startswith("## Unreleased\n")).splitlines()
    assert len(lines) <= 160
    assert [line for line in lines if len(line) > 400] == []


def test_the_readme_has_one_screenshot_and_names_the_two_commands() -> None:
    text = documents.text_of(README)
    assert text.count("![") == 1
    assert "\nmake demo" in text
    assert "\nmake test" in text


def test_each_figure_of_the_readme_names_its_command() -> None:
    named = 0
    for section in documents.sections(README):
        if section.title in {"How good it is", "How fast it is"}:
            for row in section.rows:
                assert re.search(r"`(make|faultline) [^`]+`", row[-1]), row
                named += 1
    assert named > 0


@pytest.mark.parametrize("name", ["quality", "quality-history", "performance", "performance-history", "experiments"])
def test_each_table_of_figures_stands_with_its_command(name: str) -> None:
    for section in documents.sections(Path("docs", f"{name}.md")):
        if any(re.search(r"\d", cell) for row in section.rows for cell in row):
            text = " ".join([*section.text.split(), section.title])
            assert re.search(r"`[^`]*(make|faultline|python -m) [^`]+`|outside the repository", text), section.title


def test_each_record_has_its_parts_and_fits_a_page() -> None:
    index = documents.text_of(Path("docs/adr/README.md"))
    records = sorted((ROOT / "docs" / "adr").rglob("[0-9]*.md"))
    assert records
    assert len({path.name[:4] for path in records}) == len(records)
    for path in records:
        text = path.read_text(encoding="utf-8")
        assert re.match(rf"# {path.name[:4]}: ", text), path
        assert re.search(r"^- Status: (accepted|superseded by \d{4})$", text, re.MULTILINE), path
        assert re.search(r"^- Date: \d{4}-\d\d-\d\d$", text, re.MULTILINE), path
        heads = [head.group(2) for head in documents.HEADING.finditer(text)][1:]
        assert heads == ["Context", "Decision", "Consequences"], path
        assert len(text.splitlines()) <= 70, path
        status = re.findall(r"^- (?:Status|Date): (.+)$", text, re.MULTILINE)
        title = text.splitlines()[0].removeprefix(f"# {path.name[:4]}: ")
        row = f"| [{path.name[:4]}]({path.parent.name}/{path.name}) | {title} | {' | '.join(status)} |"
        assert row in index.splitlines(), row


def test_the_rules_that_the_contributing_guide_names_stand_where_it_says() -> None:
    for section in documents.sections(Path("CONTRIBUTING.md")):
        for row in section.rows:
            for names, file in re.findall(r"((?:`[A-Za-z_]+`(?:, )?)+) in `([\w/]+\.py)`", row[-1]):
                source = (ROOT / file).read_text(encoding="utf-8")
                for name in re.findall(r"`([A-Za-z_]+)`", names):
                    assert re.search(rf"^(class|def) {name}\b", source, re.MULTILINE), f"{name} in {file}"


def test_the_contributing_guide_says_where_the_queries_of_every_page_are() -> None:
    [section] = [one for one in documents.sections(Path("CONTRIBUTING.md")) if one.title == "Pages and queries"]
    listed = {page.partition("/")[0] for row in section.rows for page in re.findall(r"`/([^`]*)`", row[0])}
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "service" / "web" / "pages").rglob("*.py"))
    pages = {page for source in sources for page in re.findall(r'@router\.get\("/([^"/]*)', source)}
    assert pages - {"callback", "favicon.ico"} == listed, "a row of the table in CONTRIBUTING.md is missing or too many"
