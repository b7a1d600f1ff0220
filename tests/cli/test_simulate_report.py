"""The chart holds the largest places, in the order of their names."""

from __future__ import annotations

from gateway.cli.simulate_report import Read, chart, report
from gateway.replay.run import Outcome
from gateway.replay.tally import Prices, Tally


def tally(number: int) -> Tally:
    found = Tally(f"team-{number}", "chat")
    was = Outcome(None, sized=True, image_tokens=10 * number, prompt_tokens=100 * number)
    found.add(was, Outcome(None, sized=True, image_tokens=number, prompt_tokens=10 * number))
    return found


def test_many_tenants_are_told_and_the_largest_drawn() -> None:
    tallies = [tally(number) for number in range(1, 31)]
    drawn = chart(tallies, Prices(per_million_tokens=1.0))
    assert "team-30 chat" in drawn
    assert "team-20 chat" not in drawn
    assert drawn.count("<g transform") == 5
    told = report(tallies, Prices(), Read())
    rows = told["rows"]
    assert isinstance(rows, list)
    assert len(rows) == 30


def test_bad_lines_are_counted_and_some_kept() -> None:
    read = Read()
    for number in range(150):
        read.note_bad(str(number))
    assert (read.bad_lines, len(read.bad)) == (150, 100)
