"""Sparse rows give the same sums as scipy, to the last bit."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from classifiers.model.sparse_rows import SparseRows, sum_of_entries


@pytest.mark.parametrize("count", [0, 1, 7])
def test_products_are_those_of_scipy(count: int) -> None:
    rng = np.random.default_rng(count)
    dense = rng.normal(size=(400, 30)).astype(np.float32)
    sizes = [0, *rng.integers(0, 200, count).tolist()]
    pointers = np.cumsum([0, *sizes]).astype(np.int64)
    data = rng.normal(size=pointers[-1]).astype(np.float32)
    indices = rng.integers(0, 400, pointers[-1]).astype(np.int32)
    shape = (len(sizes), 400)
    expected = csr_matrix((data, indices, pointers), shape=shape) @ dense
    assert np.array_equal(SparseRows(data, indices, pointers, shape) @ dense, expected)


def test_entries_of_one_place_are_added() -> None:
    rows, columns = np.array([2, 0, 2, 2]), np.array([1, 3, 1, 0])
    values = np.array([0.5, 2.0, 0.25, 1.0], np.float32)
    dense = np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32)
    expected = csr_matrix((values, (rows, columns)), shape=(3, 4)) @ dense
    assert np.array_equal(sum_of_entries(values, rows, columns, (3, 4)) @ dense, expected)
    nothing = sum_of_entries(values[:0], rows[:0], columns[:0], (3, 4))
    assert not (nothing @ dense).any()
