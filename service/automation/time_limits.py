"""Durations that no policy sets: maximum ages and waiting times."""

from datetime import timedelta

# An end that is reported later opens no incident and requests no automatic resubmit. One day, because the scheduler's
# own record of the job is gone then (Slurm forgets after MinJobAge, five minutes by default; judgement).
MAX_END_AGE = timedelta(hours=24)
# Failures that are reported later do not count for incidents (judgement: half a day's backlog of a stopped consumer).
INCIDENT_FAILURE_AGE = timedelta(hours=6)
# How often a request is leased again after its hook could not act (judgement).
MAX_TRIES = 10
# The longest wait before it is leased again, unless the hook asks for a longer one (judgement).
LONGEST_RETRY_S = 3_600.0
# A resubmitted job without a reported end gets the outcome "unknown" (longer than usual time limits; judgement).
OUTCOME_WAIT = timedelta(days=14)
# Older outcomes do not count, so that a demoted action can recover (judgement).
OUTCOME_AGE = timedelta(days=90)
# An open incident without held requests and new failures is closed (judgement).
QUIET_TIME = timedelta(hours=2)
# How long the success rates are cached in a process.
SUCCESS_RATES_FOR_S = 15.0
