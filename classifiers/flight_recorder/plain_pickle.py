"""Reads a pickle of plain values and runs nothing.

The opcodes are interpreted here instead of by `pickle`: only those that build containers, texts, numbers, booleans and
None are known. Opcodes that import or call anything are errors.
"""

import pickletools
import sys
from collections.abc import Callable
from typing import Any, Final

_MOST_OPCODES: Final = 4_000_000
_MOST_DIGITS: Final = 64  # bytes of one integer; a dump has 64-bit numbers
_MARK: Final = object()
_CONSTANTS: Final[dict[str, Any]] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_LITERALS: Final = frozenset(
    {"BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"}
)
_KEYS: Final = frozenset({str, int, float, bool})
_IGNORED: Final = frozenset({"PROTO", "FRAME"})


class PickleRefused(ValueError):
    """The pickle is truncated, too large, or contains more than plain values; the text gives the reason."""


def load_plain_pickle(data: bytes) -> Any:
    """Return the value of a pickle that consists of dicts, lists, tuples, texts, numbers, booleans and None.

    Raises:
        PickleRefused: it is not such a pickle.
    """
    machine = _Machine()
    try:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(data)):
            if opcode.name == "STOP":
                return machine.result()
            machine.run("too many opcodes" if count > _MOST_OPCODES else opcode.name, argument)
    except PickleRefused:
        raise
    except (ValueError, IndexError, KeyError, TypeError, OverflowError, AttributeError) as error:
        raise PickleRefused(f"not a complete pickle ({type(error).__name__})") from None
    raise PickleRefused("not a complete pickle")


class _Machine:
    """The stack and the memo of one pickle."""

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._steps: dict[str, Callable[[Any], None]] = {
            "EMPTY_DICT": lambda _: self._stack.append({}),
            "EMPTY_LIST": lambda _: self._stack.append([]),
            "EMPTY_TUPLE": lambda _: self._stack.append(()),
            "MARK": lambda _: self._stack.append(_MARK),
            "TUPLE": lambda _: self._stack.append(tuple(self._marked())),
            "TUPLE1": lambda _: self._tuple(1),
            "TUPLE2": lambda _: self._tuple(2),
            "TUPLE3": lambda _: self._tuple(3),
            "APPEND": lambda _: self._append([self._stack.pop()]),
            "APPENDS": lambda _: self._append(self._marked()),
            "SETITEM": lambda _: self._set([*self._tail(2)]),
            "SETITEMS": lambda _: self._set(self._marked()),
            "MEMOIZE": lambda _: self._put(len(self._memo)),
            "BINPUT": self._put,
            "LONG_BINPUT": self._put,
            "BINGET": lambda place: self._stack.append(self._memo[place]),
            "LONG_BINGET": lambda place: self._stack.append(self._memo[place]),
        }

    def run(self, name: str, argument: Any) -> None:
        """Run one opcode."""
        if name in _IGNORED:
            return
        if name in _CONSTANTS:
            self._stack.append(_CONSTANTS[name])
        elif name in _LITERALS:
            if isinstance(argument, int) and argument.bit_length() > 8 * _MOST_DIGITS:
                raise PickleRefused("an integer that is too long")
            self._stack.append(argument)
        elif name in self._steps:
            self._steps[name](argument)
        else:
            raise PickleRefused(f"it contains more than plain values (opcode {name})")

    def result(self) -> Any:
        """The only value on the stack."""
        [value] = self._stack
        return value

    def _put(self, place: int) -> None:
        self._memo[place] = self._stack[-1]

    def _tail(self, size: int) -> list[Any]:
        if len(self._stack) < size:
            raise PickleRefused("not a complete pickle")
        values = self._stack[-size:]
        del self._stack[-size:]
        return values

    def _tuple(self, size: int) -> None:
        self._stack.append(tuple(self._tail(size)))

    def _marked(self) -> list[Any]:
        values: list[Any] = []
        while (value := self._stack.pop()) is not _MARK:
            values.append(value)
        values.reverse()
        return values

    def _append(self, values: list[Any]) -> None:
        if type(self._stack[-1]) is not list:
            raise PickleRefused("values are appended to something that is not a list")
        self._stack[-1].extend(values)

    def _set(self, values: list[Any]) -> None:
        if type(self._stack[-1]) is not dict:
            raise PickleRefused("items are set in something that is not a dict")
        if any(type(key) not in _KEYS for key in values[::2]):  # the hash of a folded tuple may take for ever
            raise PickleRefused("a key that is neither text nor number")
        # Python takes whole numbers modulo this one as their hashes: a dict of its multiples takes the square of their
        # number, an hour for those of one dump.
        if any(type(key) is int and abs(key) >= sys.hash_info.modulus for key in values[::2]):
            raise PickleRefused("a number as a key that is too large")
        self._stack[-1].update(zip(values[::2], values[1::2], strict=True))
