"""Events of pods that a job knows nothing of: what they say of their own pod explains no other event of the node."""

import re
from collections.abc import Iterable
from typing import Final

from classifiers.relevance.own_names import names_of_pod

_POD: Final = re.compile(r"\bpod[/ ](?:[\w.-]{1,60}/)?(?P<name>[a-z0-9][a-z0-9-]{2,80})")
_SHORTEST: Final = 4  # characters of a name (judgement: shorter ones are words of any log)


def is_of_foreign_pod(text: str, own_texts: Iterable[str]) -> bool:
    """Whether an event names pods, and no text of the job names one of them or what their job may be called.

    Args:
        text: the text of the event.
        own_texts: the logs of the job, the scheduler's message and the name of the job.
    """
    if "pod" not in text:
        return False
    names = {name for hit in _POD.finditer(text) for name in names_of_pod(hit["name"]) if len(name) >= _SHORTEST}
    return bool(names) and not any(name in own for own in own_texts for name in names)
