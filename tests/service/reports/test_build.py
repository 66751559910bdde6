from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from service.reports.breakdowns import compare_share
from service.reports.build import build
from service.reports.document import Report, Section, from_wire
from service.reports.records import Amount, Price
from service.reports.weekly_facts import AutomationFacts, CostCell, Facts, WeekCounts
from tests.service.reports.sample_facts import GOODPUT, SINCE, facts, group, week


def section(report: Report, key: str) -> Section:
    return next(one for one in report.sections if one.key == key)


def rows(report: Report, key: str) -> list[list[str]]:
    table = section(report, key).table
    return [] if table is None else [[cell.text for cell in row] for row in table.rows]


def test_a_sentence_each_for_failures_and_cost() -> None:
    text = " ".join(build(facts()).sentences).replace("\u00a0", " ")
    assert "70 of 1,000 jobs failed (7.0 %" in text
    assert "No significant change from the previous 4 weeks (7.0 %)" in text
    assert "Failures lost 110 GPU-hours (95 % interval 79 to 151)" in text


def test_a_significant_rise_is_reported_and_a_small_one_is_not() -> None:
    quiet = [week(number) for number in range(43, 47)]
    assert "significantly more" in " ".join(build(facts(*quiet, week(47, user=160))).sentences)
    assert "No significant change" in " ".join(build(facts(*quiet, week(47, user=66))).sentences)


def test_the_first_week_has_no_comparison() -> None:
    report = build(facts(week(47)))
    assert "no earlier week" in " ".join(report.sentences)
    assert all(not row[5] and not row[7] for row in rows(report, "sides"))


def test_an_empty_week_says_so_and_claims_nothing() -> None:
    empty = WeekCounts("2026-W47", 0, 0, Amount())
    report = build(
        replace(facts(empty), causes={}, categories={}, symptoms={}, groups=(), nodes=(), incidents=(), cells=())
    )
    assert report.sentences == ("No job ended in this week.",)
    assert report.todo == ()
    assert rows(report, "sides") == rows(report, "causes") == []
    assert report.figures["failure_rate"] is None


def test_a_week_that_is_not_over_says_so() -> None:
    assert "not over" in build(replace(facts(), now=SINCE + timedelta(days=3))).sentences[0]


def test_all_22_causes_20_categories_and_30_symptoms_are_compared_with_the_papers() -> None:
    report = build(facts())
    assert [len(rows(report, key)) for key in ("causes", "categories", "symptoms")] == [22, 20, 30]
    user_1 = next(row for row in rows(report, "causes") if row[0].startswith("USER.1"))
    assert user_1[5] == "more here than in the paper"
    assert "60.0" in section(report, "categories").paragraphs[0]


def test_new_and_regressed_groups() -> None:
    report = build(facts())
    assert [row[0][0] for row in rows(report, "new")] == ["1"]
    assert [row[0][0] for row in rows(report, "regressed")] == ["2"]
    assert [row[0][0] for row in rows(report, "costliest")] == ["1", "2", "3"]


def test_the_three_actions_that_save_most_are_listed() -> None:
    report = build(facts())
    assert [round(todo.gpu_hours) for todo in report.todo] == [300, 40, 30]
    assert "gpu018" in report.todo[0].title
    assert "400 GPU-hours" in report.todo[0].calculation


def test_without_known_gpu_hours_actions_are_ordered_by_jobs() -> None:
    report = build(
        replace(
            facts(),
            groups=(group(1, hours=0),),
            nodes=(),
            cells=(CostCell("1:1", "orion", None, False, 4, 0.0),),
        )
    )
    assert "4 failed attempts" in report.todo[0].gain


def test_accuracy_and_hours_without_data() -> None:
    text = dict(build(facts()).trust)
    assert "38 of 40" in text["audited accuracy"]
    assert text["hours without data"] == "in 1 of 168 hours no job ended; no rate counts such hours"
    unaudited = build(replace(facts(), quality=replace(facts().quality, audited=0, audited_right=0, audit=None)))
    assert "accuracy is unknown" in dict(unaudited.trust)["audited accuracy"]


def test_a_report_round_trips_through_its_wire_format() -> None:
    report = build(facts())
    assert from_wire(report.to_wire()) == report
    assert build(facts()) == report


def test_a_group_without_a_decided_side_has_only_a_possible_cause() -> None:
    unnamed = replace(group(3, hours=7), side="unknown", cause="unknown")
    groups = (group(1, hours=9, side="unknown"), group(2, hours=8), unnamed)
    made = section(build(replace(facts(), groups=groups)), "costliest").table
    assert made is not None
    assert [row[2].text for row in made.rows] == ["undecided, possibly Buggy Code", "Buggy Code", "unknown"]


def test_a_report_stored_by_an_earlier_version_is_read() -> None:
    report = build(facts())
    wire = report.to_wire()
    assert [one["reckoned"] for one in wire["todo"]] == [one.calculation for one in report.todo]
    todo = [{name: value for name, value in one.items() if name != "calculation"} for one in wire["todo"]]
    assert from_wire({**wire, "todo": todo}) == report


def test_no_failure_counts_for_two_actions() -> None:
    cells = (
        CostCell("1:1", "orion", "gpu018", False, 6, 90.0),  # of group 1, on the suspect node
        CostCell("1:1", "orion", None, False, 2, 10.0),
        CostCell("1:2", "orion", "gpu018", False, 3, 40.0),
        CostCell("1:2", "orion", None, True, 1, 5.0),  # of group 2, a missing file
    )
    todo = build(replace(facts(), cells=cells)).todo
    assert [one.gpu_hours for one in todo] == [100.0, 40.0, 5.0]
    assert sum(one.gpu_hours for one in todo) <= sum(one.gpu_hours for one in cells)


def test_resolved_groups_are_no_actions_and_merged_ones_are_one_action() -> None:
    cells = tuple(CostCell(f"1:{number}", "orion", None, False, 1, 10.0) for number in (1, 2, 3))
    groups = (replace(group(1, hours=20), merged=("1:2",)), replace(group(3, hours=10), resolved=True))
    todo = build(replace(facts(), cells=cells, groups=groups, nodes=())).todo
    assert [one.gpu_hours for one in todo] == [20.0]


def test_actions_of_groups_with_one_headline_are_distinguished_by_their_cause() -> None:
    cells = tuple(CostCell(f"1:{number}", "orion", None, False, 1, 10.0 + number) for number in (1, 2, 3, 4))
    causes = (("unknown", "HW.NET.1"), ("unknown", "HW.NODE.3"), ("user", "USER.1"), ("user", "USER.4"))
    groups = tuple(
        replace(group(number, hours=10.0), headline="one line", side=side, cause=cause)
        for number, (side, cause) in enumerate(causes, 1)
    )
    titles = [one.title for one in build(replace(facts(), cells=cells, groups=groups, nodes=())).todo]
    assert titles == [
        "Fix in the jobs' code or data: “one line” (Software Incompatibility)",
        "Fix in the jobs' code or data: “one line” (Buggy Code)",
        "Find the cause of: “one line” (possibly Node Preemption)",
    ]
    alone = build(replace(facts(), cells=cells, groups=groups[1:3], nodes=())).todo
    assert [one.title for one in alone] == [
        "Fix in the jobs' code or data: “one line”",
        "Find the cause of: “one line”",
    ]


def test_a_list_says_how_many_entries_it_leaves_out() -> None:
    many = tuple(group(number, hours=20 - number) for number in range(13))
    report = build(replace(facts(), groups=many))
    assert len(rows(report, "new")) == 10
    assert "The first 10 of 13 are listed." in " ".join(section(report, "new").paragraphs)
    assert "of at least 13 are listed." in " ".join(
        section(build(replace(facts(), groups=many, groups_cut=True)), "new").paragraphs
    )


def test_dates_are_in_the_time_zone_of_the_report() -> None:
    late = replace(group(1, hours=5), first_seen=datetime(2026, 11, 19, 23, 30, tzinfo=UTC))
    assert rows(build(replace(facts(), groups=(late,))), "new")[0][6] == "2026-11-20"


def test_comparisons_with_the_papers_use_both_intervals_and_are_counted() -> None:
    report = build(replace(facts(), causes={"HW.GPU.1": Amount(3, 1, 1)}))
    compared = sum(row[4] != "–" for row in rows(report, "causes"))
    assert f"{compared} shares are compared" in section(report, "causes").paragraphs[0]
    assert compare_share(30, 100, 0.2, cases=10_000) == 1
    assert compare_share(30, 100, 0.2, cases=50) == 0


def test_the_interval_of_a_node_is_labelled_90_percent() -> None:
    table = section(build(facts()), "nodes").table
    assert table is not None
    assert "(90 %)" in table.columns[1]


def test_the_change_of_goodput_from_the_week_before_is_a_sentence() -> None:
    def sentences(*shares: float | None) -> str:
        parts = [replace(GOODPUT.trend[0], goodput=share) for share in (*shares, GOODPUT.goodput)]
        return " ".join(build(facts(goodput=GOODPUT, goodput_trend=tuple(parts))).sentences).replace("\u00a0", " ")

    assert GOODPUT.goodput is not None
    now = f"{100 * GOODPUT.goodput:.1f}"
    better = sentences(0.5, 0.6, GOODPUT.goodput - 0.02)
    assert f"Goodput was {now} % of" in better
    assert "GPU-hours, 2.0 points more than in the week before (" in better
    assert "In the weeks before that, latest first, it was 60.0 %, 50.0 %." in better
    assert "2.0 points less than in" in sentences(GOODPUT.goodput + 0.02)
    assert "as much as in the week before" in sentences(GOODPUT.goodput)
    alone = sentences(0.5, None)
    assert "week before (" not in alone
    assert "In the weeks before that, latest first, it was 50.0 %." in alone


def test_the_largest_loss_is_called_most_only_if_it_is_more_than_half() -> None:
    def cost(**sides: float) -> str:
        lost = Amount(70, sum(sides.values()), 1.0)
        of = {side: Amount(1, hours, hours) for side, hours in sides.items()}
        one = replace(week(47), lost=lost, by_side=of, amounts=tuple(sides.values()))
        return next(text for text in build(facts(one)).sentences if "Failures lost" in text).replace("\u00a0", " ")

    assert "most of them through hardware failures (80 %)" in cost(hardware=8, user=2)
    assert "the largest part through user failures (40 %)" in cost(hardware=3, system=3, user=4)
    assert "most of them through undecided failures (80 %)" in cost(unknown=8, user=2)


def test_a_week_with_only_cancelled_jobs_says_that_they_ended() -> None:
    empty = WeekCounts("2026-W47", 0, 0, Amount())
    cancelled = replace(GOODPUT, attempts=5)
    [sentence] = build(replace(facts(empty, goodput=cancelled), cells=(), groups=())).sentences
    assert sentence == "No job succeeded or failed in this week: 5 attempts were cancelled or preempted."
    one = replace(GOODPUT, attempts=1)
    assert "1 attempt was cancelled or preempted" in build(facts(empty, goodput=one)).sentences[0]


def test_a_week_that_is_not_compared_mentions_no_correction_for_comparisons() -> None:
    assert "Holm" in section(build(facts()), "sides").paragraphs[0]
    alone = section(build(facts(week(47))), "sides").paragraphs[0]
    assert "Holm" not in alone
    assert "Nothing is compared with earlier weeks" in alone


def test_tables_that_count_attempts_say_so() -> None:
    report = build(facts())
    for key in ("causes", "categories", "symptoms", "new", "costliest"):
        table = section(report, key).table
        assert table is not None
        assert "jobs" not in table.columns
        assert "attempts" in table.columns


def failing(failed: int, *, finished: int = 9, hours: float = 1.5) -> Facts:
    """A week in which `failed` of nine jobs failed, after weeks of which one is complete."""
    one = facts(
        week(46, user=2),
        week(47, finished=finished, user=0, hardware=failed, hours=hours),
        cells=(CostCell("1:1", "orion", None, False, failed, failed * hours),) if failed else (),
        groups=(replace(group(1, hours=hours, side="hardware"), headline="Xid 79", users=1),),
        goodput=GOODPUT,
        causes={},
        categories={},
        symptoms={},
        nodes=(),
    )
    return replace(one, quality=replace(one.quality, diagnosed=failed, abstained=0, contested=0, corrected=1))


@pytest.mark.parametrize(
    ("failed", "sentences"),
    [
        (
            0,
            (
                "None of 9 jobs failed (95 % interval of the rate 0.0 % to 29.9 %).",
                "Not compared: only 1 previous week is complete, and a comparison needs 3.",
                "Goodput was 91.7 % of 300 GPU-hours.",
            ),
        ),
        (
            1,
            (
                "1 of 9 jobs failed (11.1 %, 95 % interval 2.0 % to 43.5 %); of their attempts, 1 of 9 failed.",
                "Not compared: only 1 previous week is complete, and a comparison needs 3.",
                "Failures lost 1.5 GPU-hours (95 % interval 0.2 to over 150), all of them through hardware failures.",
                "Goodput was 91.7 % of 300 GPU-hours.",
            ),
        ),
    ],
)
def test_sentences_read_well_without_failures_and_with_one(failed: int, sentences: tuple[str, ...]) -> None:
    found = [text.replace("\u00a0", " ") for text in build(failing(failed)).sentences]
    assert tuple(found) == sentences


def test_one_is_followed_by_the_singular_and_none_has_no_share() -> None:
    earlier = build(failing(1)).todo
    one = replace(failing(1), previous_todo=earlier, automation=AutomationFacts({"done": 1}, {}, 1, 0, 1))
    report = build(one)
    assert report.todo[0].calculation == "all GPU-hours that its 1 failure of 1 user lost this week"
    assert report.previous[0].outcome == (
        "1 failed attempt lost 1.5 GPU-hours this week; in the week before, 1 lost 1.5"
    )
    trust = {label: text.replace("\u00a0", " ") for label, text in report.trust}
    assert trust["undecided"] == "0 of 1 verdict (0.0 %)"
    assert trust["revised"] == "1 verdict corrected by people, 5 revised as evidence arrived"
    assert "later retracted: 1." in section(report, "automation").paragraphs[0]
    assert dict(build(failing(0)).trust)["undecided"] == "no verdict in this week"
    solved = build(replace(failing(0), previous_todo=earlier)).previous[0].outcome
    assert solved == "no failure this week; in the week before, 1 failed attempt lost 1.5 GPU-hours"
    unknown = build(replace(failing(1, hours=0.0), groups=(replace(group(1, hours=0), users=1),)))
    assert unknown.todo[0].gain == "saves 1 failed attempt a week; its GPU-hours are unknown"


def test_an_action_says_which_share_of_the_loss_it_saves_and_its_price_if_one_is_set() -> None:
    gains = [todo.gain.replace("\u00a0", " ") for todo in build(facts()).todo]
    assert gains[1] == "saves up to 40 GPU-hours a week (8 % of what failures lost)"
    priced = build(replace(facts(), price=Price(2.5, "EUR")))
    text = " ".join(priced.sentences).replace("\u00a0", " ")
    assert "At 2.50 EUR a GPU-hour, this is 275 EUR." in text
    assert priced.todo[1].gain.replace("\u00a0", " ") == (
        "saves up to 40 GPU-hours a week (8 % of what failures lost), 100 EUR"
    )


def test_causes_with_most_failures_come_first() -> None:
    assert [row[0].split()[0] for row in rows(build(facts()), "causes")[:3]] == ["USER.1", "HW.GPU.1", "HW.GPU.2"]
