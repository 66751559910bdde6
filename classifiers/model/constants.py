"""Constants of the model that are not fitted, each with its source.

"Judgement" means that a person chose the value. "Held-out kinds" means that the value was chosen by accuracy on kinds
of failure that were held out of training.
"""

from collections.abc import Mapping
from typing import Final

from classifiers import taxonomy
from classifiers.taxonomy import Role

AXES: Final = taxonomy.AXES

# --- Features ---------------------------------------------------------------------------------------------------

# Judgement: characters and tokens of one line that are read.
LINE_CHARACTERS: Final = 420
LINE_TOKENS: Final = 60
# Judgement: a word is cut to this length, so that its inflected forms are one feature.
WORD_LENGTH: Final = 9
# Judgement: lines of a short log, and evidence items, whose words become features.
SHORT_LOG_LINES: Final = 24
EVIDENCE_ITEMS: Final = 16
INITIATING_ITEMS: Final = 4
# Held-out kinds: weight of a line's words by its role, and of a second initiating line.
WORD_WEIGHT_OF_ROLE: Final[Mapping[Role, float]] = {
    "initiating": 1.0, "cascade": 0.35, "teardown": 0.25, "context": 0.4,
}  # fmt: skip
FOLLOWING_LINE_WEIGHT: Final = 0.6
# Held-out kinds among neutral lines: of a short log, weight of the lines before the first failing line.
EARLIER_LINE_WEIGHT: Final = 0.35
# Judgement: the least that a line of a log counts, relative to one that surely tells the cause: the words of some
# twenty lines of banners and progress together count less than that line.
LEAST_LINE_WEIGHT: Final = 0.05
# Held-out kinds: inverse strength of the L2 penalty of the line model (area under the curve 0.98 on kinds held out).
LINE_INVERSE_PENALTY: Final = 3.0
# Judgement: so many lines of a log that are not the first one enter the line model; weights below the second are 0.
OTHER_LINES: Final = 8
SMALL_LINE_WEIGHT: Final = 0.05
# Held-out kinds: Euclidean length of the words of the initiating lines, and of all words.
INITIATING_WORDS_LENGTH: Final = 1.5
ALL_WORDS_LENGTH: Final = 4.0
# Held-out kinds: value of a catalogue entry's feature by the entry's strength and role.
ENTRY_VALUE_OF_STRENGTH: Final[Mapping[str, float]] = {"decisive": 1.0, "strong": 0.8, "weak": 0.4}
ENTRY_VALUE_OF_ROLE: Final[Mapping[Role, float]] = {
    "initiating": 1.0, "cascade": 0.4, "teardown": 0.25, "context": 0.25,
}  # fmt: skip
# Judgement: values of the features of the event.
STATUS_VALUE: Final = 1.0
EXIT_VALUE: Final = 0.7
MESSAGE_WORD_VALUE: Final = 0.6
PROCESS_COUNT_VALUE: Final = 0.5
SCHEDULER_VALUE: Final = 0.4
PROCESS_SIGNAL_VALUE: Final = 0.4
PROCESS_EXIT_CODE_VALUE: Final = 0.3
# Held-out kinds: value of a cue around the first line, and of the training stage there.
CUE_VALUE: Final = 1.0
STAGE_VALUE: Final = 0.8

# --- Training samples -------------------------------------------------------------------------------------------

# Judgement: a case labelled by an operator counts this many times a packaged one.
OPERATOR_WEIGHT: Final = 3.0
# Held-out kinds: weight of a case on the axes that it was not composed for.
SECONDARY_AXIS_WEIGHT: Final = 0.07
# Held-out kinds: share of the weight that the best label gets where experts could defend several.
BEST_LABEL_SHARE: Final = 0.75
# Judgement: a catalogue entry's label with at most this weight is no label that experts could defend.
ALTERNATIVE_LABEL_WEIGHT: Final = 0.15
# Judgement: of each kind this many cases give several views, the others one view each.
FULLY_VIEWED_CASES: Final = 2
VIEWS_OF_CAPTURED_CASE: Final = 3
VIEWS_OF_CASE: Final = 4
# Judgement: a catalogue example's weight by its entry's strength; the second is that of entries that are no onset.
EXAMPLE_WEIGHT_OF_STRENGTH: Final[Mapping[str, float]] = {"decisive": 1.0, "strong": 0.8, "weak": 0.3}
EXAMPLE_WEIGHT_OF_CONSEQUENCE: Final = 0.4
# Held-out kinds: weight of the copy of a sample that has no catalogue features.
MASKED_COPY_WEIGHT: Final = 0.6
# Judgement: number of folds of kinds for cross-fitting; three keeps two thirds of the kinds in each first stage.
FOLDS: Final = 3
# Judgement: fewer cases than this are extracted in one process, as starting more would take longer.
CASES_WORTH_PROCESSES: Final = 4_000

# --- First stage: the linear text model ---------------------------------------------------------------------------

# Held-out kinds: inverse strength of the L2 penalty.
INVERSE_PENALTY: Final[Mapping[str, float]] = {
    "side": 0.3, "cause": 0.3, "category": 0.8, "symptom": 0.2, "retry": 0.4,
}  # fmt: skip
# Held-out kinds: share of the naive Bayes log ratio that is added to the fitted weights of words.
WORD_COUNT_SHARE: Final[Mapping[str, float]] = {
    "side": 0.03, "cause": 0.015, "category": 0.03, "symptom": 0.04, "retry": 0.03,
}  # fmt: skip
# Judgement: smoothing of the naive Bayes ratio, as a share of the frequency over all classes.
WORD_COUNT_SMOOTHING: Final = 0.05
# Held-out kinds: how far intercepts move from the shares in the training data to the published shares
# (side and cause: Gao et al. 2023; symptom: Liu et al. 2023). 0 leaves them, 1 moves them all the way.
PRIOR_SHIFT: Final[Mapping[str, float]] = {"side": 0.5, "cause": 0.5, "symptom": 0.5}
# Judgement: the solver stops when no weight changes by more than this share of the largest weight in one pass.
# Passes beyond that change accuracy on held-out kinds by less than 0.1 points.
SOLVER_TOLERANCE: Final = 0.02
SOLVER_PASSES: Final = 100
# Numerical: the solver's step suits samples of weight one. A heavier sample enters several times, with less weight.
SAMPLE_WEIGHT_LIMIT: Final = 3.0
# Judgement: in the prior of a site the packaged shares count as much as this many cases of its operator.
SITE_PRIOR_CASES: Final = 20

# --- Second stage: label fusion -----------------------------------------------------------------------------------

# Judgement: probability of a label that a catalogue entry does not mention, before normalisation.
UNMENTIONED_LABEL: Final = 0.01
# Numerical: probabilities below this enter as this.
PROBABILITY_FLOOR: Final = 1e-6
# Judgement: strength of the L2 penalty on the coefficients, relative to a sample of weight one.
FUSION_PENALTY: Final = 1.0
# Held-out kinds: share of the words that masked samples lack, on which the second stage is fitted.
MASKED_WORD_SHARE: Final = 0.5
# Judgement, not fitted: how much the retry outlook follows the text model, the outlook of the causes of the chosen side
# and of all causes, and votes by the strength of the entry and its place. Fitted coefficients follow the text alone;
# on failures in operation they start more jobs before a repair and fewer that a retry would help. The weights of votes
# also tell which side the entries alone would choose.
RETRY_COEFFICIENTS: Final = (0.5, 1.0, 0.0)
VOTE_OF_STRENGTH: Final[Mapping[str, float]] = {"decisive": 0.54, "strong": 0.21, "weak": 0.045}
VOTE_OF_PLACE: Final[Mapping[str, float]] = {
    "first": 1.0, "following": 0.3, "consequence": 0.6, "scheduler": 1.0, "scheduler and log": 0.4,
}  # fmt: skip
# Judgement: so many samples, drawn by the seed, fix the few coefficients; more only take time.
FUSION_SAMPLES: Final = 24_000
# Judgement: causes of which failures of the program itself have a category.
PROGRAM_CAUSES: Final = ("USER.1", "USER.3", "USER.4")
# Taxonomy: categories of what a program misses in its environment. They apply to failures of the user's side only.
ENVIRONMENT_CATEGORIES: Final = "EE."
# Judgement: neither "the program's own cause" nor its opposite is ever less likely than this for the category.
PROGRAM_CAUSE_FLOOR: Final = 0.05
# Judgement: a decisive entry on the first line decides the side if it gives one side 0.7 of its weight or more, which
# is a share of 0.6 after smoothing, unless the words of the case are ten times as likely on another side. With 0.75 and
# a hundred, the side is right in 0.909 instead of 0.923 of 274 runs, which training reads today.
DECIDED_SHARE: Final = 0.6
DECIDED_AGAINST: Final = 0.1
# Fitted on 966 failures and runs, of which training reads all but 152 short failures today. Where the failure began
# with a node event, words have to be thirty times as likely against its decisive entry (900 sides are right instead of
# 895), and ten times against strong ones that give one side 0.8 of their weight (902). A third of these numbers and
# shares from 0.5 change at most two. The same for lines of logs gains three more there, and loses 19 of 10,466
# held-out kinds.
DECIDED_BY_EVENT_AGAINST: Final = 0.03
STRONG_DECIDED_SHARE: Final = 0.7
# Judgement: of the failures to which no category applies, the share that may get one. The probability from which a
# category is reported is fitted for it on held-out kinds (`fusion_fitting`), within a range, from parts of the data
# of so many samples or more; the next constant is for data that have no such part.
CATEGORY_FALSE_REPORTS: Final = 0.05
CATEGORY_THRESHOLD_RANGE: Final = (0.6, 0.9)
CATEGORY_PART_SAMPLES: Final = 200
CATEGORY_THRESHOLD: Final = 0.75
# Judgement: "no symptom" leads from this probability on.
NO_SYMPTOM_THRESHOLD: Final = 0.6
# Judgement, of costs: a retry that fails again wastes more than one that is left out. A job is held for a repair where
# a futile retry is at least this likely.
FUTILE_THRESHOLD: Final = 0.3
# Held-out kinds: a job is held where a repair is at least this likely among what is no user's to change. A lower number
# holds more of the jobs that need a repair, and more of those that a retry would help. With this one at most one in a
# hundred of the latter is lost, on held-out kinds and among 1,466 failures and runs that were read.
REPAIR_THRESHOLD: Final = 0.45

# --- The beginning that a verdict shows ------------------------------------------------------------------------------

# Fitted on authors of runs held out: the penalty of the weights, and what a word or entry counts beside a property of
# the line. A half or twice of each changes less than a point of the right first lines.
BEGINNING_PENALTY: Final = 0.5
BEGINNING_WORD_VALUE: Final = 0.3
# Fitted as above: by how much the log odds of a candidate have to be higher than those of the line that leads by the
# rules. Without it a point more of the first lines are right in the authors' runs, and half a point less of those of
# programs among harmless node events.
BEGINNING_MARGIN: Final = 1.0
# Experiment: with half of the runs as many first lines are right, to a quarter of a point; more only take time.
BEGINNING_KINDS: Final = 3_000
# Judgement: more telling than this are no words, and so many others are shown as beginnings beside a chosen one.
BEGINNING_ODDS_LIMIT: Final = 4.0
BEGINNINGS_BESIDE: Final = 2
# Judgement: the weights hardly change after so many steps, and smaller ones are stored as 0.
BEGINNING_ITERATIONS: Final = 200
SMALL_BEGINNING: Final = 0.01

# --- Calibration ----------------------------------------------------------------------------------------------------

# Fitted on failures of sources that nobody has read (`python -m tests.classifiers.unseen_confidence`): the log-odds of
# the curve that is fitted on held-out kinds are multiplied by the first and increased by the second, and by the third
# times the log-odds of the cause. Held-out kinds are worded more like the others than failures of an unknown source
# are, and are more often right.
UNSEEN_SLOPE: Final = 0.20
UNSEEN_OFFSET: Final = 1.27
UNSEEN_CAUSE: Final = 0.26
# Fitted as above on runs with node events: there the log-odds of the confidence are multiplied by the first, increased
# by the second, and by the third where all that the failure may have begun with speaks for the side of the verdict
# (`beginnings`). The part of the cause is taken out before: on sets that the fit had not seen it raises the log loss.
EVENTS_SLOPE: Final = 3.80
EVENTS_OFFSET: Final = -6.59
EVENTS_AGREEMENT: Final = 2.20
# Fitted on the same: from this confidence on 0.97 of the sides are right there, and 0.88 of the cases are answered.
EVENTS_ANSWERED_FROM: Final = 0.82
# Judgement: sides to be right among the answered on held-out kinds, and the largest share of them that may be abstained
# from. The aim on failures of unknown sources is 0.95, and 0.80 of them answered.
RIGHT_WHEN_ANSWERED: Final = 0.97
ABSTAINED_LIMIT: Final = 0.14
# Judgement: features of a case that are named as what decided its cause.
SHOWN_FEATURES: Final = 6
# Judgement: a weight below this share of the largest one of its class is stored as 0.
SMALL_WEIGHT: Final = 0.002
