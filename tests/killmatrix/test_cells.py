"""The matrix is the whole cross product: no step, state, victim or return is left out by mistake."""

from __future__ import annotations

from itertools import product

from letta_tui.worker.crashpoints import POINTS
from tests.killmatrix.cells import ELSEWHERE, RETURNS, STATES, STEPS, VICTIMS, cannot_be, every, sample


def test_every_named_step_is_a_row_or_told_elsewhere() -> None:
    rows = {step.removeprefix("return:") for step in STEPS}
    assert {point for point in POINTS if point.split(".")[0] not in ELSEWHERE} == rows


def test_every_step_meets_every_state_it_can_and_every_victim() -> None:
    cells = every()
    assert len(set(cells)) == len(cells)
    for step, state in product(STEPS, STATES):
        met = [cell for cell in cells if (cell.step, cell.state) == (step, state)]
        assert bool(met) != bool(cannot_be(step, state)), (step, state)
        if met:
            assert set(VICTIMS) < {cell.victims for cell in met}, "each alone, and some together"
    assert {cell.back for cell in cells} == set(RETURNS)


def test_a_sample_takes_every_cell_before_any_comes_twice() -> None:
    assert set(sample(3, len(every()))) == set(every())
    assert sample(3, 10) == sample(3, 10) != sample(4, 10)
