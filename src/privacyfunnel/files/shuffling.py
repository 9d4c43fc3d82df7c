"""Tables in random order, in bounded memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from ..sampling import random_order, uniform

#: Bytes that are held in memory before they go to the disk.
MOST_BYTES = 1 << 27
N_HEAPS = 64


class Shuffler:
    """Takes tables of one schema and gives their records back in random order, each order as likely.

    Every record goes to one of many heaps at random, and each heap is put in random order by itself (Rao and
    Sandelius). A heap that is still too large is shuffled in the same way. Heaps are files without a name,
    so nothing is left of them when the process ends, however it ends.

    Parameters
    ----------
    folder : str, optional
        Where there is room for the heaps; the system's folder for temporary files by default.
    rng : Generator, optional
        For tests; None draws from the operating system's entropy.
    """

    def __init__(self, folder: str | None = None, rng: np.random.Generator | None = None) -> None:
        self._folder, self._rng = folder, rng
        self._waiting: list[Any] = []
        self._n_bytes = 0
        self._heaps: list[tuple[IO[bytes], Any]] = []

    def add(self, table: Any) -> None:
        """Take the records of a pyarrow Table."""
        self._waiting.append(table)
        self._n_bytes += table.nbytes
        # One record that is larger than all memory allowed cannot be put on heaps any further.
        if self._n_bytes > MOST_BYTES and sum(part.num_rows for part in self._waiting) > 1:
            self._spill()

    def tables(self) -> Iterator[Any]:
        """All records in random order, in parts; afterwards there are none left."""
        import pyarrow as pa

        if not self._heaps:
            if self._waiting:
                whole = pa.concat_tables(self._waiting)
                self._waiting = []
                yield whole.take(pa.array(random_order(whole.num_rows, self._rng)))
            return
        self._spill()
        heaps, self._heaps = self._heaps, []
        for file, writer in heaps:
            writer.close()
            file.seek(0)
            part = Shuffler(self._folder, self._rng)
            with file, pa.ipc.open_stream(file) as reader:
                for batch in reader:
                    part.add(pa.Table.from_batches([batch]))
            yield from part.tables()

    def _spill(self) -> None:
        import pyarrow as pa

        if not self._waiting:
            return
        whole = pa.concat_tables(self._waiting).unify_dictionaries()
        self._waiting, self._n_bytes = [], 0
        if not self._heaps:
            for _ in range(N_HEAPS):
                file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115
                self._heaps.append((file, pa.ipc.new_stream(file, whole.schema)))
        heap = (uniform(whole.num_rows, self._rng) * N_HEAPS).astype(np.intp)
        for number, (_, writer) in enumerate(self._heaps):
            writer.write_table(whole.take(pa.array(np.flatnonzero(heap == number))).combine_chunks())
