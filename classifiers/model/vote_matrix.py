"""Votes of catalogue entries as arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from classifiers.model import constants
from classifiers.model.fusion_input import GROUPS, PLACES, STRENGTHS, FusionInput
from classifiers.model.linear_model import Floats
from classifiers.model.sparse_rows import sum_of_entries
from classifiers.signatures import Catalogue, Signature

# Groups of the entries that match the first leading line.
_LEADING: Final = frozenset(number for number, name in enumerate(GROUPS) if name.endswith(", first"))
# Of each group how much a vote counts where no coefficient is fitted.
VOTE_WEIGHTS: Final = tuple(
    constants.VOTE_OF_STRENGTH[strength] * constants.VOTE_OF_PLACE[place] for strength in STRENGTHS for place in PLACES
)
_STRONG_LEADING: Final = GROUPS.index("strong, first")
_MOST_KEPT: Final = 4_000  # combinations of entries on leading lines; most lines have the same few (judgement)


@dataclass(frozen=True, slots=True)
class IndexedVotes:
    """All votes of some samples, in parallel arrays: number of the sample, number of the entry, group."""

    samples: NDArray[np.int64]
    entries: NDArray[np.int64]
    groups: NDArray[np.int64]
    count: int


class VoteMatrix:
    """What each entry of a catalogue says of the classes of each axis, as log probabilities.

    A class that an entry does not mention has the small probability `constants.UNMENTIONED_LABEL`. An entry that says
    nothing of an axis, or nothing of its classes, adds nothing.

    Args:
        catalogue: the entries.
        classes: by axis its classes.
        sides: to which side each cause belongs, causes × sides, 0 or 1.
    """

    def __init__(self, catalogue: Catalogue, classes: Mapping[str, Sequence[str]], sides: Floats) -> None:
        self._numbers = {entry.id: number for number, entry in enumerate(catalogue.entries)}
        self._statements = {axis: _statements(catalogue.entries, axis, codes) for axis, codes in classes.items()}
        names_a_cause = self._statements["cause"].any(axis=1, keepdims=True)
        shares = (np.exp(self._statements["cause"]) * names_a_cause) @ sides
        # Of each entry that names a cause the shares of the sides.
        names = list(self._numbers)
        self._shares = {names[number]: shares[number] for number in _rows_with_any(shares)}
        self._share_lists: dict[str, list[float]] = {name: one.tolist() for name, one in self._shares.items()}
        self._sides = sides.shape[1]
        self._open_sides: dict[tuple[str, ...], float] = {(): 0.0}
        self._labelling = {
            axis: {names[number] for number in _rows_with_any(rows)} for axis, rows in self._statements.items()
        }

    def against_decided(self, inputs: Sequence[FusionInput]) -> Floats:
        """What counts against each side where the entries of the first item decide, as log probabilities.

        A decisive entry decides. Where the failure began with a node event, it weighs more, since words of logs tell
        little of that, and strong entries of the event decide too.

        Returns:
            samples × sides; 0 where nothing is decided, and for the side that is decided on.
        """
        against = np.zeros((len(inputs), self._sides), np.float32)
        for row, one in enumerate(inputs):
            if not one.has_onset:
                continue
            shares = self._shares.get(one.deciding_entry or "")
            least, weight = constants.DECIDED_SHARE, constants.DECIDED_AGAINST
            if one.begins_with_event and one.deciding_entry is None:
                shares = self._of_strong_entries(one)
                least = constants.STRONG_DECIDED_SHARE
            elif one.begins_with_event:
                weight = constants.DECIDED_BY_EVENT_AGAINST
            if shares is not None and shares.max() >= least * shares.sum():
                against[row] = np.log(weight)
                against[row, shares.argmax()] = 0
        return against

    def _of_strong_entries(self, one: FusionInput) -> Floats | None:
        """What the strong entries of the first leading line say of the sides together, None without one."""
        votes = (vote for vote in one.votes if vote.group == _STRONG_LEADING)
        found = [self._shares[vote.entry] for vote in votes if vote.entry in self._shares]
        return np.sum(found, axis=0) if found else None

    def indexed(self, inputs: Sequence[FusionInput]) -> IndexedVotes:
        """The votes of some samples as arrays; those of entries that the catalogue lacks are left out."""
        numbers = self._numbers
        found = [
            (row, numbers[vote.entry], vote.group)
            for row, one in enumerate(inputs)
            for vote in one.votes
            if vote.entry in numbers
        ]
        columns = np.array(found, dtype=np.int64).reshape(-1, 3).T
        return IndexedVotes(columns[0], columns[1], columns[2], len(inputs))

    def scores(self, votes: IndexedVotes, axis: str, coefficients: Sequence[float]) -> Floats:
        """What the votes add to the scores of an axis, samples × classes; one coefficient for each group."""
        return self._sums(votes, axis, np.asarray(coefficients, np.float32)[votes.groups], votes.samples, votes.count)

    def features(self, votes: IndexedVotes, axis: str) -> Floats:
        """The sums of votes by group, samples × classes × groups."""
        rows = votes.samples * len(GROUPS) + votes.groups
        ones = np.ones(len(rows), np.float32)
        sums = self._sums(votes, axis, ones, rows, votes.count * len(GROUPS))
        return np.ascontiguousarray(sums.reshape(votes.count, len(GROUPS), -1).transpose(0, 2, 1))

    def strongest(self, inputs: Sequence[FusionInput], axis: str, coefficients: Sequence[float]) -> list[float | None]:
        """Of each sample the greatest coefficient of an entry that says something of the axis, None without one."""
        entries = self._labelling[axis]
        return [
            max((coefficients[vote.group] for vote in case_input.votes if vote.entry in entries), default=None)
            for case_input in inputs
        ]

    def open_sides(self, inputs: Sequence[FusionInput]) -> list[float]:
        """Of each sample how far the entries on its leading lines leave the side open, 0 (one side) to 1."""
        shares, known = self._shares, self._open_sides
        found = []
        for case_input in inputs:
            entries = tuple(
                [vote.entry for vote in case_input.votes if vote.group in _LEADING and vote.entry in shares]
            )
            side = known.get(entries)
            if side is None:
                if len(known) >= _MOST_KEPT:
                    known.clear()
                    known[()] = 0.0
                total = np.sum([shares[entry] for entry in entries], axis=0)
                side = known[entries] = 2 * (1 - float(total.max() / total.sum()))
            found.append(side)
        return found

    def contradict(self, inputs: Sequence[FusionInput], sides: Sequence[int]) -> list[bool]:
        """Of each sample whether most of what its entries say of the side is for other sides.

        Args:
            inputs: the samples.
            sides: the number of the side that was chosen for each.
        """
        found = []
        for one, side in zip(inputs, sides, strict=True):
            chosen = total = 0.0
            for vote in one.votes:
                shares = self._share_lists.get(vote.entry)
                if shares is not None:
                    weight = VOTE_WEIGHTS[vote.group]
                    chosen += weight * shares[side]
                    total += weight * sum(shares)
            found.append(2 * chosen < total)
        return found

    def _sums(self, votes: IndexedVotes, axis: str, values: Floats, rows: NDArray[np.int64], count: int) -> Floats:
        statements = self._statements[axis]
        return sum_of_entries(values, rows, votes.entries, (count, len(statements))) @ statements


def labels_of(entry: Signature, axis: str) -> Mapping[str, float]:
    """The labels of an axis that an entry gives, with their weights."""
    if axis == "retry":
        return {entry.retry: 1.0} if entry.retry is not None else {}
    weights: Mapping[str, Mapping[str, float]] = {
        "cause": entry.causes, "category": entry.categories, "symptom": entry.symptoms,
    }  # fmt: skip
    return weights[axis]


def _statements(entries: Sequence[Signature], axis: str, codes: Sequence[str]) -> Floats:
    columns = {code: column for column, code in enumerate(codes)}
    weights = np.zeros((len(entries), len(codes)), np.float32)
    for row, entry in enumerate(entries):
        for code, weight in labels_of(entry, axis).items():
            if code in columns:
                weights[row, columns[code]] = weight
    smoothed = (weights + constants.UNMENTIONED_LABEL) / (1 + constants.UNMENTIONED_LABEL * len(codes))
    statements: Floats = np.where(weights.any(axis=1, keepdims=True), np.log(smoothed), np.float32(0))
    return statements


def _rows_with_any(rows: Floats) -> list[int]:
    """The numbers of the rows that have a value other than 0."""
    numbers: list[int] = np.flatnonzero(rows.any(axis=1)).tolist()
    return numbers
