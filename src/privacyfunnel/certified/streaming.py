"""A certified rule on records that need not fit in memory: batch by batch, as tables are released."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..arrays import one_generator
from ..errors import InvalidInputError
from ..files import TableFile, file_kind
from ..files.typed import typed, written_forms
from ..frames import parse_type
from ..progress import progress_bar
from ..streams import check_sink, open_any, write_stream

if TYPE_CHECKING:
    from ..mechanism import Rng
    from .rule import CertifiedRule


class RuleRelease:
    """A table on its way out through a rule for tables."""

    def __init__(
        self,
        table: TableFile,
        rule: CertifiedRule,
        records: str,
        keep: Sequence[str],
        rng: Rng = None,
        key: bytes | None = None,
        id: str | None = None,
    ) -> None:
        import pyarrow as pa

        if rule.tables is None:
            raise InvalidInputError("release_stream: this rule is for arrays; release tables with it.")
        self.table, self.rule = table, rule
        beside = [*keep, *([] if id is None else [id])]
        self.how: dict[str, Any] = {"records": records, "keep": tuple(keep), "rng": rng, "key": key, "id": id}
        schema = rule.reader.schema  # type: ignore[union-attr]
        self.names = list(dict.fromkeys([*schema.names, *beside]))
        table.require(self.names)
        read = table.schema(self.names)
        self.types = {name: read.field(name).type for name in beside}
        for column in schema.columns:
            kind = parse_type(column.arrow)
            self.types[column.name] = kind.value_type if pa.types.is_dictionary(kind) else kind
        self.forms = written_forms(table)
        # A few records alone need not show whether commas separate decimals or thousands.
        commas = {name: form for name, form in self.forms.items() if form.commas}
        self.types |= {name: one for name, one in commas.items() if self.types.get(name) == one.kind}

    def tables(self, part: TableFile | None = None) -> Iterator[Any]:
        """What is released of the table, or of a part of it, batch after batch; at least a header."""
        source, empty = part or self.table, True
        with progress_bar(f"Releasing {os.path.basename(source.path)}") as report:
            for batch in source.batches(self.names, letters=self.names, report=report):
                if batch.num_rows:
                    empty = False
                    yield self._one(batch.schema, [batch])
        if empty:
            yield self._one(source.schema(self.names), [])

    def _one(self, schema: Any, batches: list[Any]) -> Any:
        """Records with the types that they had when the rule was made, released."""
        import narwhals as nw
        import pyarrow as pa

        part = typed(pa.Table.from_batches(batches, schema), self.table, self.types)
        return nw.from_native(self.rule.release(part, **self.how), eager_only=True).to_arrow()


def release_stream(rule: CertifiedRule, source: Any, sink: Any, how: dict[str, Any], shuffle: bool) -> Any:
    """See `CertifiedRule.release_stream`."""
    table = open_any(source, "release_stream")
    if sink is not None:
        file_kind(sink)
    check_sink(table, sink, shuffle)
    # An int would start the same numbers again for every batch.
    generator = how["rng"] = one_generator(how["rng"])
    order = None if generator is None or not shuffle else generator.spawn(1)[0]
    releasing = RuleRelease(table, rule, **how)
    made = releasing.tables()
    first = next(made)

    def tables(part: TableFile | None = None) -> Iterator[Any]:
        yield first
        for other in made:
            yield other.cast(first.schema)

    return write_stream(table, sink, tables, first.schema, shuffle=shuffle, rng=order, forms=releasing.forms)
