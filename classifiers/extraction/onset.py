"""The order of evidence by how likely a line is the onset of the failure.

The members are ordered: the smaller the value, the more likely the failure began with the line. The order is a
judgement.
"""

from collections.abc import Mapping
from enum import IntEnum, auto, unique
from typing import Final


@unique
class Onset(IntEnum):
    """How likely a line is the onset of the failure, most likely first.

    Lines of the role "initiating" have a member up to `SURVIVED_ERROR_WORDS`; lines of other roles are `NEUTRAL`,
    `DEMOTED`, `SAMPLED` or `SCHEDULER_NEUTRAL`.
    """

    DECISIVE_ENTRY = 0
    """A decisive entry of the signature catalogue."""
    STRONG_ENTRY = auto()
    """A strong entry of the catalogue, or the first line of a runtime's crash report."""
    TRACEBACK = auto()
    """The final line of a Python traceback."""
    WEAK_ENTRY_EXCEPTION = auto()
    """A weak entry of the catalogue on a line that names an exception."""
    NAMED_EXCEPTION = auto()
    """A line that names an exception, without its traceback."""
    SHELL_ERROR = auto()
    """An error of a shell or a standard command."""
    CHAINED_TRACEBACK = auto()
    """The final line of a traceback that another traceback led to."""
    SCHEDULER_STRONG_ENTRY = auto()
    """A strong entry in the scheduler's message."""
    WEAK_ENTRY = auto()
    """A weak entry of the catalogue."""
    LOGGED_ERROR = auto()
    """A line that the program itself logs as an error, without a known form."""
    PROCESS_END = auto()
    """A process or its child ended, no reason given."""
    LIKELY_CONSEQUENCE = auto()
    """An error that is often a consequence: a time-out, a lost connection, a failed child process."""
    RETRIED = auto()
    """An attempt that is made again."""
    FIRST_CONSEQUENCE = auto()
    """The earliest consequence, where no line shows a beginning."""
    LAUNCHER_REPORT = auto()
    """A launcher's report of a process that printed nothing itself."""
    ERROR_WORDS = auto()
    """General words of failure."""
    TELLING_WORDS = auto()
    """No known sign, but words as first lines of failures have them, where no other line shows a failure better."""
    SURVIVED_DECISIVE_ENTRY = auto()
    """`DECISIVE_ENTRY`, after which the run went on."""
    SCHEDULER_WEAK_ENTRY = auto()
    """A weak entry in the scheduler's message."""
    SCHEDULER_PROCESS_END = auto()
    """`PROCESS_END` in the scheduler's message."""
    SCHEDULER_CONSEQUENCE = auto()
    """`LIKELY_CONSEQUENCE` in the scheduler's message."""
    ONLY_LINE = auto()
    """The first line of a log of a few lines, none of which shows a failure."""
    SCHEDULER_RETRIED = auto()
    """`RETRIED` in the scheduler's message."""
    SURVIVED_ERROR = auto()
    """`STRONG_ENTRY` to `CHAINED_TRACEBACK`, after which the run went on."""
    SURVIVED_HINT = auto()
    """`WEAK_ENTRY` to `LIKELY_CONSEQUENCE`, after which the run went on."""
    SURVIVED_RETRY = auto()
    """`RETRIED`, where the log has no other beginning."""
    SURVIVED_ERROR_WORDS = auto()
    """`ERROR_WORDS`, after which the run went on, or which many ranks print at start-up."""
    NEUTRAL = auto()
    """A consequence, a teardown line or context."""
    DEMOTED = auto()
    """A line after which the run went on, where the log has another beginning."""
    SAMPLED = auto()
    """A line near the beginning or end of a log, shown because little else was found."""
    SCHEDULER_NEUTRAL = auto()
    """`NEUTRAL`, in the scheduler's message."""

    @property
    def precedence(self) -> "Onset":
        """The member to sort by, where the time of the line decides among several.

        These are the members from `STRONG_ENTRY` to `SCHEDULER_STRONG_ENTRY`, `WEAK_ENTRY` with `LOGGED_ERROR`, and
        `LIKELY_CONSEQUENCE` with `FIRST_CONSEQUENCE`.
        """
        if Onset.STRONG_ENTRY <= self <= Onset.SCHEDULER_STRONG_ENTRY:
            return Onset.STRONG_ENTRY
        return _ORDERED_WITH.get(self, self)


_ORDERED_WITH: Final[Mapping[Onset, Onset]] = {
    Onset.LOGGED_ERROR: Onset.WEAK_ENTRY,
    Onset.FIRST_CONSEQUENCE: Onset.LIKELY_CONSEQUENCE,
}
# The scheduler sees a failure from outside: its message counts less than the same words in a log.
IN_SCHEDULER_MESSAGE: Final[Mapping[Onset, Onset]] = {
    Onset.DECISIVE_ENTRY: Onset.STRONG_ENTRY,
    Onset.STRONG_ENTRY: Onset.SCHEDULER_STRONG_ENTRY,
    Onset.TRACEBACK: Onset.WEAK_ENTRY,
    Onset.WEAK_ENTRY_EXCEPTION: Onset.WEAK_ENTRY,
    Onset.NAMED_EXCEPTION: Onset.PROCESS_END,
    Onset.SHELL_ERROR: Onset.LIKELY_CONSEQUENCE,
    Onset.CHAINED_TRACEBACK: Onset.LIKELY_CONSEQUENCE,
    Onset.WEAK_ENTRY: Onset.SCHEDULER_WEAK_ENTRY,
    Onset.LOGGED_ERROR: Onset.SCHEDULER_RETRIED,
    Onset.PROCESS_END: Onset.SCHEDULER_PROCESS_END,
    Onset.LIKELY_CONSEQUENCE: Onset.SCHEDULER_CONSEQUENCE,
    Onset.RETRIED: Onset.SCHEDULER_RETRIED,
    Onset.ERROR_WORDS: Onset.SCHEDULER_RETRIED,
    Onset.NEUTRAL: Onset.SCHEDULER_NEUTRAL,
}

AFTER_SURVIVAL: Final[Mapping[Onset, Onset]] = {
    Onset.DECISIVE_ENTRY: Onset.SURVIVED_DECISIVE_ENTRY,
    Onset.STRONG_ENTRY: Onset.SURVIVED_ERROR,
    Onset.TRACEBACK: Onset.SURVIVED_ERROR,
    Onset.WEAK_ENTRY_EXCEPTION: Onset.SURVIVED_ERROR,
    Onset.NAMED_EXCEPTION: Onset.SURVIVED_ERROR,
    Onset.SHELL_ERROR: Onset.SURVIVED_ERROR,
    Onset.CHAINED_TRACEBACK: Onset.SURVIVED_ERROR,
    Onset.WEAK_ENTRY: Onset.SURVIVED_HINT,
    Onset.LOGGED_ERROR: Onset.SURVIVED_HINT,
    Onset.PROCESS_END: Onset.SURVIVED_HINT,
    Onset.LIKELY_CONSEQUENCE: Onset.SURVIVED_HINT,
    Onset.RETRIED: Onset.SURVIVED_RETRY,
    Onset.ERROR_WORDS: Onset.SURVIVED_ERROR_WORDS,
}
