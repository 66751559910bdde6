from classifiers import signatures
from classifiers.case import JobFacts, LogStream, RawCase
from classifiers.evidence import Extractor
from classifiers.fingerprint import fingerprint
from classifiers.scan import Scanner

EXTRACTOR = Extractor(Scanner(signatures.packaged()))


def of(text: str, cause: str = "USER.1", rank: int = 0) -> str:
    raw = RawCase(job=JobFacts(status="failed"), streams=(LogStream(text=text, rank=rank),))
    return fingerprint(EXTRACTOR.extract(raw), cause)


def test_the_same_failure_elsewhere_and_later_has_the_same_fingerprint() -> None:
    one = of("[rank3]: WidgetError: no widget 17 under /data/a/x.bin at 10.0.0.1")
    other = of("step 4\n[rank0]: WidgetError: no widget 9001 under /mnt/u7/y.bin at 172.16.0.9\nexit", rank=5)
    assert one == other


def test_other_exceptions_lines_and_causes_have_others() -> None:
    prints = {of("WidgetError: no widget"), of("GadgetError: no widget"), of("WidgetError: too many"), of("", "SYS.1")}
    prints.add(of("WidgetError: no widget", "USER.4"))
    assert len(prints) == 5


def test_the_algorithm_s_version_stands_in_it() -> None:
    version, digits = of("WidgetError: no widget").split(":")
    assert version == "v1"
    assert len(digits) == 16
