"""What a Slurm job's comment says to a hook, and what the hook adds to it; the user's own words are kept.

A comment is free text; words such as `faultline/resubmit=auto` in it are ours. They are separated by blanks, commas or
semicolons.
"""

import re

OPT_IN = "faultline/resubmit"
REQUEST = "faultline/request"
RESUME = "faultline/resume"

_WORD = re.compile(r"(?:^|(?<=[\s,;]))(faultline/[a-z_]+)=([^\s,;]*)")


def comment_fields(comment: str | None) -> dict[str, str]:
    """Our words in a comment; of one that is said twice, the last."""
    return dict(_WORD.findall(comment or ""))


def opt_in(comment: str | None) -> str | None:
    """What the job's owner wants: auto, advise, never; None: nothing is said. An unknown word is given as it is."""
    return comment_fields(comment).get(OPT_IN)


def request_of(comment: str | None) -> str | None:
    """The request that this job was last started for."""
    return comment_fields(comment).get(REQUEST)


def with_request(comment: str | None, request_id: str, resume_from: str | None = None) -> str:
    """The comment with the request's id as its last word, instead of an earlier one; on one line."""
    kept = _WORD.sub(lambda found: "" if found[1] in {REQUEST, RESUME} else found[0], comment or "")
    words = "".join(char if char.isprintable() else " " for char in kept).split(" ")
    text = " ".join(word for word in words if word)
    fits = resume_from is not None and not re.search(r"[\s,;]", resume_from)
    resume = f"{RESUME}={resume_from} " if fits else ""
    return f"{text} {resume}{REQUEST}={request_id}".strip()
