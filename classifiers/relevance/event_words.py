"""Words by which a node event says that it harms no job: corrected, repaired, unused, or a limit that was raised.

The public expressions are of RE2's kind where possible: `event_objects` searches all of them in one pass.
"""

import re
from typing import Final

CORRECTED: Final = re.compile(
    r"(?i)\b(?:errors?|counts?|counters?|events?)\b[^\n]{0,60}\bsince boot\b"
    r"|(?<!un)(?<!not )\bcorrect(?:ed|able)\b|\bno pending\b|(?<!good )\bdeassert|\bpredictive\b"
    r"|\bcompletion polled\b|\bnone evicted\b|\bnearly met\b|\bredundan(?:cy|t)\b"
    r"|\bno action (?:is )?(?:needed|required)\b|\binformational\b|\brecovered\b|\bwithin limits\b"
    r"|\bbelow threshold\b|\brecovery errors:? 0\b|\bto 0x0 \(none\)|\bself-?test\b|\bcleared\b"
    r"|\bexpected (?:change|reboot|during)\b|\bcondition \w+(?<!Healthy)(?<!Health)(?<!Ready)=False\b"
    r"|\bcondition (?:Read[Oo]nly|Memory|Disk|PID|Kernel|Frequent|Corrupt)\w* is now: False\b|-> False\b"
    r"|\bKubeletHas(?:Sufficient|No)\w+|\|CE(?:CC)?\||\bMachine check events logged$"
    # An offset that no service notices; a remapped row, which 48, 94 or 95 precedes where a process was harmed; a
    # transaction that was lost on a link that works (Linux, PCI Express AER).
    r"|\bclock\b[^\n]{0,20} [+-]?0?\.\d{1,9} ?s(?:ec\w*)?\b|\bXid\b[^\n]{0,40}\): 63,|\bSXid\b[^\n]{0,60}\bnon-fatal\b"
    r"|\bAER: [^\n]{0,40}\(non-fatal\)"
    # Bit 61 of the status that a bank of x86 reports: the error was not corrected.
    r"|\b(?:Bank \d{1,3}: |STATUS\S{0,80}: (?:0x)?)[89cd][0-9a-f]{15}\b"
)
UNCORRECTED: Final = re.compile(
    r"(?i)\buncorrect(?!\w{0,6} \(non-fatal\))|\bnot correct|\bcan(?:'t|not) (?:be )?(?:correct|recover)|\bunrecover"
    r"|\bfatal\b(?<!non-fatal)|\binsufficient resources\b|\bpower(?:ed)? (?:down|off)\b"
)
_OVER: Final = (
    r"\bback (?:online|in service|to normal)\b"
    r"|\b(?:healthy|available|reachable|responding|up|mounted|running) again\b"
)
# That a trouble is over, in words that report nothing else.
OVER: Final = re.compile(rf"(?i){_OVER}")
RECOVERY: Final = re.compile(
    r"(?i)(?:^|[^ \w]|[^m ] |[^o]m |  )OK\b|\blink (?:is )?(?:up|active)\b|\bup and running\b|\bis (?:now )?up\b"
    r"|\brecover(?:ed|y (?:complete|done|succeeded))\b|\breconnected\b|\bcleared\b|(?:^|[^d ] ?|[^o]d )deassert"
    r"|\breplaced\b|\bpassed\b|\bnode(?:ready| is ready"
    r"| status is now: nodeready)|\brestored\b|\bresum(?:ed|ing)\b"
    r"|\bresponding again\b|\bnow healthy\b|\bstate[ :=]+(?:idle|active|ready|up)\b|\bremounted rw\b"
    r"|\bremapped successfully\b|\breset(?:\(\d+\))? (?:complete|succeeded|successful|done)|\breturned to service\b"
    r"|\bundrain|\brepaired\b|\brejoined\b|\bfrom down to up\b|\bto 0x0 \(none\)|\bhealth(?:y| check passed)\b"
    r"|\bconnection (?:re)?established\b|\bstatus definitely up\b|\b(?:state )?changed to (?:active|up)\b"
    r"|\bsession (?:re)?established\b|\bhealth_ok\b|\bnow responding\b|\bis now: nodehas(?:sufficient|no)"
    # Not a name that cannot be resolved, nor the daemon that resolves names.
    r"|(?:^|[^\w -] ?|[^et ] |[^b]e |[^o]t )resolved\b"
    r"|\bcancell?ing deletion of pod\b|\bhas ?no ?deadlock\b|\bjoined the cluster\b|\bis back\b|\bcame back\b"
    rf"|{_OVER}"
    r"|\btemperature(?:/speed)? (?:is )?normal\b"
    r"|[^\d.][1-8]?\d(?:\.\d)? ?% (?:used|full|in use)\b"
    r"|\bno longer (?:degraded|throttl\w*|full)\b|\bhealth ?check:? (?:pass|ok|success)\b"
    r"|\bsuccessfully (?:pulled|mounted|attached|created|started)\b|\b(?:attach|mount\w*|setup)\S* succeeded\b"
)
# Nobody uses it, or nothing was lost by it.
DISCLAIMED: Final = re.compile(
    r"(?i)\b(?:not|no longer|never) (?:in (?:scope|use)|cabled|configured|connected|used|allocated|mounted"
    r"|affected|offered|needed)\b"
    r"|\bmaintenance\b[^\n]{0,60}?\bannounced\b"
    r"|\bunused\b|\bempty slot\b|\bno (?:process|job|pod|(?:open )?file|change|existing)s?\b"
    r"|\b(?:external|removable|usb) (?:disk|drive|stick|medium)\b|\busb-storage\b|\bvirtual (?:media|cd|dvd|floppy)\b"
    r"|\bhosts? (?:was|were) not (?:touched|rebooted|interrupted)\b"
    # Housekeeping of a distribution.
    r"|\b(?:apt-daily|apt-news|logrotate|man-db|mlocate|updatedb|fwupd|motd-news|fstrim|e2scrub|anacron|cups)"
    r"[\w@-]*\.(?:service|timer)\b"
    r"|\balready (?:applied|installed|present)\b|\bno upcoming\b|\b0 (?:err-?disabled|links? (?:down|with errors))\b"
    # What kernels and drivers print at each start, of modules that are not signed or get another form.
    r"|\bmodule verification failed\b|\bmajor device number \d|\bdeprecated and will be\b|\bSHM_HUGETLB is deprecated\b"
    r"|\bMissing SyncE capability\b|\bECC is disabled on imc\b|\binit of the lockup detector\b|\bkernel command line: "
    r"|\bopen files there: 0\b|\((?:hot )?spare\b|\bstandby\b|\bunaffected\b|\bunchanged\b|\bnothing \w+"
    r"|\bnone of the\b|\banother (?:job|partition|tenant|user)\b|\b0 evicted\b|\bcompleted? without\b"
    r"|\badmin(?:istratively)? (?:state: )?(?:down|disabled)\b|\bis mounted at\b|\bplanned\b|\bstaged\b"
    r"|\boperation continuing\b|\bstay(?:s|ed)? (?:up|online|on)\b|\bkeeps? (?:running|serving|the)\b|\bkeeping\b"
    r"|\btriggered scale-up\b|\bsilence (?:expired|ended|created|set)\b|\bcertificate rotation detected\b"
    # Amazon EC2, scheduled events: how the description of a past one begins; pages of states of services.
    r"|\[(?:Completed|Canceled)\]|\bCompleted - scheduled maintenance\b|\bno interruption\b|\bdraining enabled\b"
    # What agents write in good times: the kubelet, containerd, CoreDNS and cAdvisor.
    r"|\bPod status updated\b|\bRemoveContainer for\b|\bStarted (?:monitoring|watching) for\b|\bHINFO IN\b"
    r"|\bError while processing event \(\"/sys/fs/cgroup"
)
# A failure in words that else say that nobody uses the object.
STANDS: Final = re.compile(
    r"(?i)\bendpoint is not connected\b|\bcheck_\w+[^\n]{0,80}?\bnot (?:mounted|connected)\b"
    r"|\bmount of\b[^\n]{0,80}?\bnot mounted\b|\b(?:drained|draining)\b[^\n]{0,60}?\bplanned\b"
    # It ended, and what would have kept its state was not there.
    r"|\b(?:exit(?:ed)?(?: with)?(?: code| status)? [1-9]\d{0,2}|crashed|panicked)\b[^\n]{0,120}\bnot configured\b"
    # Who takes the processors or the memory of a node.
    r"|\b(?:load\d{0,2}|v?cpus?|cores|processors|threads|memory)\b[^\n]{0,80}\b(?:another|other) (?:job|tenant|user)"
    r"|\banother (?:job|tenant|user)\b[^\n]{0,80}\b(?:load|v?cpus?|cores|processors|threads|memory)\b"
    # Beside what recovered, it names what did not.
    r"|\b[1-9]\d* (?:writes?|transactions?|replies) (?:were )?(?:lost|discarded|dropped)\b"
    r"|\b(?:detected|failed|lost|down|seen|occurred|tripped) again\b|\b\d+ times since\b"
    r"|\b(?:uncommitted|unsynced|unwritten|cached|pending|some|all) (?:client )?(?:writes?|data|transactions?)"
    r"\b[^\n]{0,40}\b(?:discarded|lost|dropped)\b"
)
# The node goes on with the other parts of the same kind.
REDUNDANT: Final = re.compile(r"(?i)\bredundan(?:cy|t)\b")
REPAIR: Final = re.compile(
    r"(?i)\breplaced\b|\brepaired\b|\breseated\b|\bundrain|\bback in service\b|\breturned to service\b"
    r"|\breimaged\b|\bpassed\b|\bstate[ :=]+(?:idle|ready|up)\b|\buncordon|\bRMA\b|\bresumed\b"
    r"|\bno errors? found\b|\bwithout errors\b|\bhealth ?check:? (?:pass|ok|success)\b"
    r"|\b(?:burn-?in|diag|diagnostics?|(?:stress|memory) tests?)\b[^\n]*"
    r"(?:\b(?:0|no) (?:errors|failures)\b|\bpass\b)"
    # What is no longer offered to jobs harms none that starts later.
    r"|\bwithdrawn from\b|\btaken out of (?:service|use)\b"
)
MANAGEMENT: Final = re.compile(
    r"(?i)\b\w*mgmt\d*\b|\bidrac\b|\bilo\d?\b|\bbmc\b|\bipmi\d?\b|\busb\d\b|\bwlan\d\b|\bcdc_ether\b"
)
# Entries of changes of how much of something jobs get.
_LIMITS: Final = frozenset({"changes.memory-limit", "changes.shared-memory", "changes.quota"})
_VALUE: Final = r"(?P<{name}>\d{{1,15}}(?:\.\d{{1,4}})?) ?(?P<{name}_unit>[KMGTP]?)i?B?"
_FROM_TO: Final = re.compile(
    rf"(?i)(?<![\w.]){_VALUE.format(name='before')} ?(?:->|=>|\u2192|to) ?{_VALUE.format(name='after')}(?![\w.])"
    rf"|(?<![\w.]){_VALUE.format(name='now')} \((?:was|before|from)[ :]{{1,2}}{_VALUE.format(name='old')}\)"
)
_UNITS: Final = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_RAISED: Final = re.compile(r"(?i)\b(?:rais(?:ed|ing)|increas(?:ed|ing)|doubled|extended|lifted|unlimited)\b")
# A version, and what became of it.
_VERSIONS: Final = re.compile(
    r"(?<![\w.])[vr]?(?P<before>\d{1,4}(?:\.\d{1,6}){0,3})[\w.+~-]{0,30} ?(?:->|=>|\u2192|to|replaced by) ?"
    r"(?:[a-z][a-z+_-]{1,30}[ /-])?[vr]?(?P<after>\d{1,4}(?:\.\d{1,6}){0,3})(?![\w:])"
)
_OLDER: Final = re.compile(r"(?i)\b(?:downgrad\w+|roll(?:ed|ing|s)?[ -]?back|revert\w*|back(?:ed|ing) out)\b")
_NEWER: Final = re.compile(r"(?i)\b(?:upgrad\w+|updat\w+|bump\w*)\b")
_DRIVER: Final = re.compile(r"(?i)driver")
# Libraries by what a change of them names, with what a failure names that is of them.
_LIBRARIES: Final = (
    (re.compile(r"(?i)nccl"), ("nccl",)),
    (re.compile(r"(?i)cudnn"), ("cudnn",)),
    (re.compile(r"(?i)cuda\b|cuda-|toolkit|\bngc\b"),
     ("cuda", "nvidia", "cublas", "cudart", "cufft", "cusparse", "cusolver", "curand", "nvrtc", "nvjitlink")),
    (re.compile(r"(?i)glibc\b|libc6"), ("glibc_",)),
    (re.compile(r"(?i)libstdc\+\+|\bgcc"), ("glibcxx", "cxxabi", "libstdc++")),
)  # fmt: skip
_RESERVED: Final = re.compile(r"(?i)reserved")  # what is kept back from jobs


def raises_limit(text: str, entries: tuple[str, ...]) -> bool:
    """Whether the report of a change says that a limit is greater than before.

    Args:
        text: the report.
        entries: ids of the catalogue entries that match it.
    """
    if _LIMITS.isdisjoint(entries) or _RESERVED.search(text) is not None:
        return False
    found = _FROM_TO.search(text)
    if found is None or _is_version(found):
        return _RAISED.search(text) is not None
    before, after = ("before", "after") if found["before"] is not None else ("old", "now")
    return _size(found, after) >= _size(found, before)


def made_older(text: str) -> bool | None:
    """Whether the report of a change says that a version is older than before; None where it says neither."""
    if _OLDER.search(text) is not None:
        return True
    found = _VERSIONS.search(text)
    if found is not None:
        before, after = (tuple(map(int, found[name].split("."))) for name in ("before", "after"))
        return None if before == after else after < before
    return None if _NEWER.search(text) is None else False


def is_of_driver(text: str) -> bool:
    """Whether the report of a change names a driver."""
    return _DRIVER.search(text) is not None


def changes_library_of(text: str, failure: str) -> bool:
    """Whether the report of a change names a library of which the lines of a failure name something.

    Args:
        text: the report.
        failure: the lines.
    """
    low = failure.lower()
    return any(name.search(text) is not None and any(word in low for word in words) for name, words in _LIBRARIES)


def _is_version(found: re.Match[str]) -> bool:
    return found["before"] is not None and "." in found["before"] and not found["before_unit"]


def _size(found: re.Match[str], name: str) -> float:
    return float(found[name]) * _UNITS[found[f"{name}_unit"].upper()]
