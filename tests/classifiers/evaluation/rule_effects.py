"""What each rule of reading and of relevance is worth: verdicts with a function that never says yes.

A rule is a function of `classifiers.extraction`, `classifiers.relevance` or `classifiers.explanation` that returns a
bool, or something or None. `python -m tests.classifiers.evaluation.rule_effects --model MODEL` prints, for each rule
that says yes in few of the cases in tests/data that may be read, in how many it does and how many right sides and
causes are lost without it: a negative number means that it does harm. `--jointly` switches off all rules together
that say yes in at most so many cases, and scores the cases that may be read and those that nobody may read: it shows
how much of such rules carries over to failures for which they were not written. Both take a quarter of an hour on a
free core.

Functions are replaced while the program runs, so the modules must not be compiled ones.
"""

import argparse
import functools
import importlib
import inspect
import pkgutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final

import classifiers
from classifiers.data import labelled_cases
from classifiers.data.labelled_cases import LabelledCase
from classifiers.diagnoser import Diagnoser

DATA: Final = Path(__file__).parents[2] / "data"
READ: Final = (
    *sorted((Path(classifiers.__file__).parent / "data" / "whole_runs").glob("*.jsonl.zst")),
    DATA / "unseen_failures" / "labels.jsonl.zst",
)
UNREAD: Final = (
    *sorted((DATA / "unseen_runs").glob("*unread.jsonl.zst")),
    DATA / "unseen_failures" / "tests.jsonl.zst",
)
_PACKAGES: Final = ("classifiers.extraction", "classifiers.relevance", "classifiers.explanation")
_FEW_CASES: Final = 100  # a rule that says yes in more cases is no special one (judgement)
_STEPS: Final = (5, 15, 40, 100)


@dataclass(frozen=True, slots=True)
class Rule:
    """A function that can be switched off.

    Attributes:
        name: its module, class and name.
        no: what it returns when it is switched off: False or None.
        holder: the module or class that it is an attribute of.
        original: the function, its cache around it, or a property.
    """

    name: str
    no: bool | None
    holder: Any
    original: Any


class Switchboard:
    """Wraps rules so that each can be switched off, and records which ones said yes. Use within `wrapped`.

    Args:
        rules: the rules; all of them by default.
    """

    def __init__(self, rules: Sequence[Rule] | None = None) -> None:
        self._modules = list(_modules())
        self.rules = list(_rules(self._modules)) if rules is None else list(rules)
        self.said_yes: set[str] = set()
        self._off: dict[str, bool | None] = {}

    @contextmanager
    def wrapped(self) -> Iterator[None]:
        """Put the wrapped functions in place of the rules, wherever a module or a tuple of a module refers to them."""
        wrappers = {id(rule.original): self._wrapper(rule) for rule in self.rules}
        before: list[tuple[Any, str, Any]] = []
        for holder, name, value in _attributes(self._modules, self.rules):
            changed = _replaced(value, wrappers)
            if changed is not value:
                before.append((holder, name, value))
                setattr(holder, name, changed)
        try:
            yield
        finally:
            for holder, name, value in before:
                setattr(holder, name, value)
            self._forget()

    @contextmanager
    def without(self, rules: Sequence[Rule]) -> Iterator[None]:
        """Switch rules off."""
        self._off = {rule.name: rule.no for rule in rules}
        self._forget()
        try:
            yield
        finally:
            self._off = {}
            self._forget()

    def _wrapper(self, rule: Rule) -> Any:
        if isinstance(rule.original, property):
            assert rule.original.fget is not None
            return property(self._switched(rule, rule.original.fget))
        return self._switched(rule, rule.original)

    def _switched(self, rule: Rule, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if rule.name in self._off:
                return self._off[rule.name]
            answer = function(*args, **kwargs)
            if answer is not None and answer is not False:
                self.said_yes.add(rule.name)
            return answer

        return call

    def _forget(self) -> None:
        """Empty the caches of what was read with other rules. Those without a limit hold the catalogue and tables."""
        for module in self._modules:
            for value in vars(module).values():
                if isinstance(value, functools._lru_cache_wrapper) and value.cache_parameters()["maxsize"]:
                    value.cache_clear()


def _modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(classifiers.__path__, "classifiers."):
        if not found.name.startswith(("classifiers.evaluation", "classifiers.composition")):
            yield importlib.import_module(found.name)


def _rules(modules: Sequence[ModuleType]) -> Iterator[Rule]:
    for module in modules:
        if not module.__name__.startswith(_PACKAGES):
            continue
        classes = [one for one in vars(module).values() if inspect.isclass(one) and one.__module__ == module.__name__]
        holders: list[tuple[str, Any]] = [(module.__name__, module)]
        holders += [(f"{module.__name__}.{one.__name__}", one) for one in classes]
        for prefix, holder in holders:
            for name, value in vars(holder).items():
                function = _function(value)
                if function is None or function.__module__ != module.__name__ or "__" in name:
                    continue
                returned = function.__annotations__.get("return")
                if returned is bool:
                    yield Rule(f"{prefix}.{name}", False, holder, value)
                elif "None" in str(returned) and returned is not None:
                    yield Rule(f"{prefix}.{name}", None, holder, value)


def _function(value: Any) -> FunctionType | None:
    """The function of an attribute: itself, in a cache, or of a property."""
    function = value.fget if isinstance(value, property) else value
    function = inspect.unwrap(function) if callable(function) else function
    return function if isinstance(function, FunctionType) else None


def _attributes(modules: Sequence[ModuleType], rules: Sequence[Rule]) -> list[tuple[Any, str, Any]]:
    classes = {rule.holder for rule in rules if inspect.isclass(rule.holder)}
    return [
        (holder, name, value)
        for holder in (*modules, *classes)
        for name, value in list(vars(holder).items())
        if not name.startswith("__")
    ]


def _replaced(value: Any, wrappers: dict[int, Any]) -> Any:
    """A value in which rules are replaced by their wrappers; tuples are searched."""
    if id(value) in wrappers:
        return wrappers[id(value)]
    if type(value) is tuple and value:
        changed = tuple([_replaced(one, wrappers) for one in value])
        return changed if any(one is not other for one, other in zip(changed, value, strict=True)) else value
    if isinstance(value, functools.partial) and id(value.func) in wrappers:
        return functools.partial(wrappers[id(value.func)], *value.args, **value.keywords)
    return value


def right(diagnoser: Diagnoser, case: LabelledCase) -> tuple[bool, bool]:
    """Whether side and cause of a case are right."""
    verdict = diagnoser.diagnose([case.raw])[0]
    allowed = case.labels.allowed
    return verdict.side in allowed["side"], verdict.cause in allowed["cause"]


def few_cases(board: Switchboard, yes: Sequence[AbstractSet[str]], most: int) -> list[Rule]:
    """The rules that say yes in at most so many cases."""
    counts = Counter(name for names in yes for name in names)
    return [rule for rule in board.rules if counts[rule.name] <= most]


def _total(answers: Sequence[tuple[bool, bool]]) -> tuple[int, int]:
    return sum(side for side, _ in answers), sum(cause for _, cause in answers)


def _cases(paths: Sequence[Path]) -> list[LabelledCase]:
    return [case for path in paths for case in labelled_cases.read_file(path) if case.labels.allowed["side"]]


def main(arguments: argparse.Namespace) -> None:
    """Print the effect of each rule, or of the rules together."""
    diagnoser, board = Diagnoser.load(arguments.model), Switchboard()
    cases = _cases(READ)
    yes: list[frozenset[str]] = []
    with board.wrapped():
        plain = []
        for case in cases:
            board.said_yes.clear()
            plain.append(right(diagnoser, case))
            yes.append(frozenset(board.said_yes))
        if arguments.jointly:
            others = _cases(UNREAD)
            print("at most | rules | read: side, cause | unread: side, cause")
            for most in (-1, *_STEPS):
                rules = few_cases(board, yes, most)
                with board.without(rules):
                    totals = [_total([right(diagnoser, case) for case in group]) for group in (cases, others)]
                print(most, len(rules), *totals, f"of {len(cases)}, {len(others)}", sep=" | ", flush=True)
            return
        print("rule | says yes | right sides lost, right causes lost")
        for rule in few_cases(board, yes, _FEW_CASES):
            places = [place for place, names in enumerate(yes) if rule.name in names]
            with board.without([rule]):
                now = [right(diagnoser, cases[place]) for place in places]
            before = _total([plain[place] for place in places])
            lost = tuple(old - new for old, new in zip(before, _total(now), strict=True))
            print(rule.name.removeprefix("classifiers."), len(places), lost, sep=" | ", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="folder of the trained model")
    parser.add_argument("--jointly", action="store_true", help="switch off rules together, by how often they say yes")
    main(parser.parse_args())
