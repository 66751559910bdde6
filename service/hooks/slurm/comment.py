"""Reads and writes the hook's words in the comment of a Slurm job; the user's own text is kept.

A comment is free text; words such as `faultline/resubmit=auto` in it belong to Faultline. They are separated by spaces,
commas or semicolons.
"""

import re

from service.contracts.advice import OPT_IN_LABEL, REQUEST_LABEL
from service.formatting import one_line

RESUME = "faultline/resume"

_WORD = re.compile(r"(?:^|(?<=[\s,;]))(faultline/[a-z_]+)=([^\s,;]*)")


def comment_fields(comment: str | None) -> dict[str, str]:
    """Return Faultline's words in a comment; the last one of each name counts."""
    return dict(_WORD.findall(comment or ""))


def opt_in(comment: str | None) -> str | None:
    """Return the owner's mode: auto, advise, never; None: not set. An unknown word is returned unchanged."""
    return comment_fields(comment).get(OPT_IN_LABEL)


def with_request(comment: str | None, request_id: str, resume_from: str | None = None) -> str:
    """Return the comment with the request id as its last word, replacing an earlier one; on one line."""
    own_text = _WORD.sub(lambda found: "" if found[1] in {REQUEST_LABEL, RESUME} else found[0], comment or "")
    text = one_line(own_text)
    fits = resume_from is not None and not re.search(r"[\s,;]", resume_from)
    resume = f"{RESUME}={resume_from} " if fits else ""
    return f"{text} {resume}{REQUEST_LABEL}={request_id}".strip()
