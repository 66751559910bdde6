"""Spans that no policy sets: how long things are looked at, kept and waited for."""

from datetime import timedelta

# An end told so late is history: it opens no incident and asks for no resubmit by itself. A day, as the scheduler's own
# record of the job is long gone then (Slurm forgets after MinJobAge, five minutes by default; judgement).
TOO_OLD = timedelta(hours=24)
# Failures told later than this are no news of an outage now (judgement: half a day's backlog of a stopped consumer).
INCIDENT_FAILURE_AGE = timedelta(hours=6)
# How long a request waits for an incident, a storm or a person before it is given up (judgement: a weekend and more).
HELD_FOR = timedelta(days=7)
# A hook that can't act is asked again so often (judgement).
MOST_TRIES = 10
# A resubmitted job whose end nobody tells for so long: unknown (longer than usual time limits; judgement).
SILENT_AFTER = timedelta(days=14)
# Outcomes older than this no longer count, so that what was demoted can earn its trust again (judgement).
OUTCOMES_COUNT = timedelta(days=90)
# An open incident with nothing held and nothing new for so long is over (judgement).
QUIET_AFTER = timedelta(hours=2)
# How long success_rates of outcomes may be kept in a process before they are read again.
SUCCESS_RATES_FOR_S = 15.0
