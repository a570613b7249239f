"""Recursion: a program run over its own rows, round after round, until a round makes no new ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gpudb import errors
from gpudb.program import Recurse
from gpudb.storage.column import padded_copy
from gpudb.storage.dictionary import Dictionary

if TYPE_CHECKING:
    from gpudb.vm import Machine, StepRows

MOST_ROUNDS = 100_000
MOST_ROWS = 1 << 32  # row numbers have 32 bits


def recursed(machine: Machine, step: Recurse) -> StepRows:
    """The rows of all rounds, in their order.

    Raises OperationalError where it does not come to an end within MOST_ROUNDS rounds or MOST_ROWS rows.
    """
    from gpudb.vm import Machine

    device, run = machine.device, machine.run
    grown: set[int] = set()
    new = with_dictionaries(machine, machine.steps[step.step], None, grown)
    rounds = [new]
    whole = new
    profile, run.profile = run.profile, None  # a body runs many times: its steps are not counted one by one
    try:
        for _ in range(MOST_ROUNDS + 1):  # the last one has to make nothing
            assert new.emitted is not None and whole.emitted is not None
            if not new.emitted.rows:
                break
            run.check()
            given = {0: new, 1: whole} if step.whole else {0: new}
            body = Machine(step.body, device, machine.tables, machine.constant, run, machine.cache, given)
            new = with_dictionaries(body, body.execute(), whole, grown)
            rounds.append(new)
            whole = replace(whole, dictionaries=new.dictionaries)
            if step.whole:
                assert whole.emitted is not None and new.emitted is not None
                whole = replace(whole, emitted=device.concatenated([whole.emitted, new.emitted], run))
            if sum(one.emitted.rows for one in rounds if one.emitted is not None) > MOST_ROWS:
                raise errors.OperationalError(f"a recursion makes more than {MOST_ROWS:,} rows")
        else:
            raise errors.OperationalError(
                f"a recursion has not come to an end after {MOST_ROUNDS:,} rounds",
                hint="give its step a WHERE that ends it",
            )
    finally:
        run.profile = profile
    if not step.whole:
        found = [one.emitted for one in rounds if one.emitted is not None]
        whole = replace(whole, emitted=device.concatenated(found, run))
    return whole


def with_dictionaries(machine: Machine, rows: StepRows, before: StepRows | None, grown: set[int]) -> StepRows:
    """Rows with their texts' dictionaries, which go on from those of the rows before.

    Codes of another dictionary are translated on the host, and count as host rows.
    grown  columns whose dictionaries are the recursion's own by now
    """
    emitted, sink = rows.emitted, rows.sink
    assert emitted is not None and sink is not None
    columns = list(emitted.columns)
    dictionaries: list[Dictionary | None] = []
    for k, output in enumerate(sink.values):
        if output.dictionary is None:
            dictionaries.append(None)
            continue
        own = machine.texts.dictionary(output.dictionary)
        known = before.dictionaries[k] if before is not None else None
        if known is None or own is known:
            dictionaries.append(own)
            continue
        if k not in grown:  # what is a table's or a step's stays as it is
            known = Dictionary.empty().extend(known.values)[0]
            grown.add(k)
        longer, codes = known.extend(own.values)
        dictionaries.append(longer)
        assert output.validity is not None
        held = machine.device.to_host(columns[output.column], np.uint32, emitted.rows)
        valid = machine.device.to_host(columns[output.validity], np.uint8, emitted.rows)
        translated = codes[np.where(valid != 0, held, 0)] if len(codes) else np.zeros(emitted.rows, np.uint32)
        columns[output.column] = machine.device.from_host(padded_copy(translated, np.uint32))
        machine.run.host_rows += emitted.rows
    return replace(rows, emitted=replace(emitted, columns=columns), dictionaries=tuple(dictionaries))
