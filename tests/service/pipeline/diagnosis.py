"""The diagnosis of events, for tests of what comes before and after it."""

from service.good_runs.collection import GoodRuns
from service.pipeline.diagnose import Diagnose
from service.pipeline.diagnosis_tools import DiagnosisTools
from service.pipeline.revision import Revision


def revision_with(tools: DiagnosisTools) -> Revision:
    return Revision(tools)


def diagnose_with(tools: DiagnosisTools, good_runs: GoodRuns | None = None) -> Diagnose:
    return Diagnose(tools, revision_with(tools), good_runs or GoodRuns(tools.logs))
