"""CSV files: read with pyarrow in blocks, written with quotes only where a value needs them."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import IO, Any, NoReturn

from ..errors import DataFileError, InvalidInputError, shortened
from ..progress import Report
from . import base
from .base import TableFile, file_kind
from .forms import Form

_BLOCK = 1 << 21  # bytes that are parsed at a time; a record must fit

# What may separate fields, and records that show it.
_MARKS_BETWEEN, _SHOWING = ",;\t|", 20

# The bits of an encoding by how files in it begin; the mark of UTF-32 begins like that of UTF-16.
_MARKS = {codecs.BOM_UTF32_LE: 32, codecs.BOM_UTF32_BE: 32, codecs.BOM_UTF16_LE: 16, codecs.BOM_UTF16_BE: 16}

# What spreadsheets take for a formula when a text begins with it, also in the wide forms of East Asia.
_FORMULA = "^[=+\\-@\\t\\r\\n＝＋－＠]"
_NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"


class CsvFile(TableFile):
    """A CSV file, gzipped or not; every column is text. Those in `gaps` mean a missing value."""

    def __init__(self, path: str, delimiter: str, gaps: Sequence[str] = ()) -> None:
        self.path, self.delimiter, self.gaps = path, delimiter, tuple(gaps)
        self.compressed = file_kind(path)[1]
        self.columns = self._header()

    def schema(self, columns: Sequence[str] | None = None) -> Any:
        import pyarrow as pa

        return pa.schema([(name, pa.string()) for name in (self.columns if columns is None else columns)])

    def other_delimiter(self) -> str | None:
        """What separates the fields, where this delimiter finds but one and another as many in each record.

        Only the first records are looked at; None where they leave a doubt.
        """
        if len(self.columns) > 1:
            return None
        head, found = self._head(), []
        for mark in _MARKS_BETWEEN:
            try:
                rows = csv.reader(io.StringIO(head, newline=""), delimiter=mark)
                widths = [len(row) for row in islice(filter(None, rows), _SHOWING)]
            except csv.Error:
                continue
            if len(widths) > 1 and widths[0] > 1 and len(set(widths)) == 1:
                found.append(mark)
        return found[0] if len(found) == 1 else None

    def require(self, columns: Sequence[str]) -> None:
        absent = [name for name in columns if name not in self.columns]
        found = next((mark for mark in _MARKS_BETWEEN if mark in self.columns[0]), None)
        if absent and found and len(self.columns) == 1:
            raise InvalidInputError(
                f"{self.path}: there is no column {shortened(absent[0])}; the fields seem to be separated by "
                f"{shortened(found)} and not by {shortened(self.delimiter)}: pass that as the delimiter.",
                names=("delimiter",),
            )
        super().require(columns)

    def _batches(self, columns: list[str], letters: Sequence[str], report: Report) -> Iterator[Any]:
        import pyarrow as pa

        last = self.columns[-1]
        ending = None
        done = 0
        try:
            size = os.path.getsize(self.path)
            # Not closed here: pyarrow reads ahead in a thread and closes it after that.
            file = pa.OSFile(self.path)
            for block in self._reader(file, dict.fromkeys([*columns, last])):
                if block.num_rows:
                    ending = block.column(last)[-1].as_py()
                wanted = block.select(columns)
                self._refuse_nul(wanted, done)
                done += block.num_rows
                yield from _sliced(self._without_gaps(_without_empty(wanted, letters)))
                report(file.tell() >> 20, size >> 20)  # megabytes
            if ending is not None and ("\n" in ending or "\r" in ending):
                self._check_end()
        except (pa.ArrowInvalid, OSError) as error:
            self._explain(error)

    def _without_gaps(self, batch: Any) -> Any:
        """The batch with texts that mean a missing value as such."""
        import pyarrow as pa
        from pyarrow import compute

        if not self.gaps:
            return batch
        gaps, nothing = pa.array(self.gaps, pa.string()), pa.scalar(None, pa.string())
        columns = [compute.if_else(compute.is_in(one, gaps), nothing, one) for one in batch.columns]
        return pa.RecordBatch.from_arrays(columns, schema=batch.schema)

    def _reader(self, file: Any, columns: Any) -> Any:
        import pyarrow as pa
        from pyarrow import csv as pa_csv

        return pa_csv.open_csv(
            pa.CompressedInputStream(file, "gzip") if self.compressed else file,
            read_options=pa_csv.ReadOptions(block_size=_BLOCK),
            parse_options=pa_csv.ParseOptions(
                delimiter=self.delimiter,
                newlines_in_values=True,
                # In a table of one column an empty line is a record whose value is missing.
                ignore_empty_lines=len(self.columns) > 1,
            ),
            convert_options=pa_csv.ConvertOptions(
                column_types=self.schema(),
                include_columns=list(columns),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )

    def _header(self) -> tuple[str, ...]:
        try:
            rows = csv.reader(io.StringIO(self._head(), newline=""), delimiter=self.delimiter)
            blank, names = next(((at, row) for at, row in enumerate(rows) if row), (0, []))
        except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
            self._explain(error)
        if not names:
            raise InvalidInputError(
                f"{self.path}: the file is empty; pass a table with a header and records."
            )
        if any("\0" in name for name in names):
            raise InvalidInputError(
                f"{self.path}: the header has a zero byte (NUL), which is no text; convert the file to UTF-8."
            )
        if blank and len(names) == 1:
            raise InvalidInputError(
                f"{self.path}: an empty line comes before the header, and in a table of one column an empty "
                "line is a missing value; remove it."
            )
        return self._distinct(names)

    def _head(self) -> str:
        """The first lines."""
        with self._open() as file:
            head: bytes = file.read(_BLOCK)
        if len(head) == _BLOCK:  # which may end within a character
            head = head[: max(head.rfind(b"\n"), head.rfind(b"\r")) + 1]
        return head.decode("utf-8-sig")

    def _refuse_nul(self, block: Any, done: int) -> None:
        """Refuse a zero byte: many programs end a text there, so that two values become one."""
        from pyarrow import compute

        for name, column in zip(block.schema.names, block.columns, strict=True):
            held = column.buffers()[2]
            if held is None or b"\0" not in held.to_pybytes():
                continue
            at = compute.match_substring(column, "\0").to_pylist()
            if True in at:
                raise InvalidInputError(
                    f"{self.path}: record {done + at.index(True) + 1:,} has a zero byte (NUL) in column "
                    f"{shortened(name)}, which is no text; remove it, or write the table as Parquet."
                )

    def _open(self) -> Any:
        return gzip.open(self.path) if self.compressed else open(self.path, "rb")

    def _check_end(self) -> None:
        """Refuse a file whose last quotation mark is not closed: what follows it is taken for one value.

        Only such a value, or one with a line break in it, can be the last and hold a line break.
        """
        if not self.compressed:
            with self._open() as file:
                file.seek(-min(os.path.getsize(self.path), 1024), os.SEEK_END)
                if file.read().rstrip(b"\r\n").endswith(b'"'):
                    return
        self._scan()

    def _explain(self, error: Exception) -> NoReturn:
        """Say where the file is wrong, or what pyarrow says."""
        self._scan()
        reason = str(error).splitlines()[0]
        raise InvalidInputError(f"{self.path}: this cannot be read as CSV ({reason}); correct the file.")

    def _scan(self) -> None:
        """Read the file slowly, to the first line that cannot be used."""
        start = 1
        try:
            self._refuse_utf_16()
            with self._open() as file:
                rows = csv.reader(self._lines(file), delimiter=self.delimiter, strict=True)
                width = 0
                for row in rows:
                    width = width or len(row)
                    if row and len(row) != width:
                        raise InvalidInputError(
                            f"{self.path}: line {start} has {len(row)} fields and the header has {width}; "
                            "correct it, or quote the values that hold the delimiter."
                        )
                    start = rows.line_num + 1
        except csv.Error as wrong:
            raise InvalidInputError(
                f"{self.path}: the record that begins in line {start} cannot be read ({wrong}); look for a "
                "quotation mark that is not closed."
            ) from None
        except (OSError, EOFError, zlib.error) as wrong:
            remedy = "compress it again" if self.compressed else "check the disk"
            raise DataFileError(
                f"{self.path}: cannot read the file, it may be damaged or cut short ({wrong}); {remedy}."
            ) from None

    def _refuse_utf_16(self) -> None:
        """Name the encoding that spreadsheets call "Unicode text": read as LATIN1 it becomes garbage."""
        with self._open() as file:
            head = file.read(4)
        width = next((width for mark, width in _MARKS.items() if head.startswith(mark)), None)
        if width is not None:
            raise InvalidInputError(
                f"{self.path}: the file is UTF-{width} text and must be UTF-8; convert it, for example with: "
                f"iconv -f UTF-{width} -t UTF-8"
            )

    def _lines(self, file: IO[bytes]) -> Iterator[str]:
        for number, line in enumerate(file, start=1):
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError:
                raise InvalidInputError(
                    f"{self.path}: line {number} is not UTF-8 text; convert the file, for example with: "
                    "iconv -f LATIN1 -t UTF-8"
                ) from None


def _sliced(batch: Any) -> Iterator[Any]:
    for start in range(0, batch.num_rows, base.BATCH_ROWS):
        yield batch.slice(start, base.BATCH_ROWS)


def _without_empty(batch: Any, letters: Sequence[str]) -> Any:
    """The batch with empty texts of the named columns as missing values."""
    import pyarrow as pa
    from pyarrow import compute

    for name in letters:
        # By length: comparing with "" would make a scalar of it, for which pyarrow imports pandas.
        full = compute.binary_length(batch.column(name)).cast(pa.bool_())
        if compute.min(full).as_py() is False:
            values = compute.if_else(full, batch.column(name), pa.nulls(1, batch.column(name).type)[0])
            batch = batch.set_column(batch.schema.get_field_index(name), name, values)
    return batch


class CsvWriter:
    """Writes CSV with quotes only where a value needs them; a missing value is an empty field.

    With `spreadsheet_safe` texts and names of columns that a spreadsheet would execute get a ' in front.
    Values of the columns in `forms` are written in these, if they still have the types of these.
    """

    def __init__(
        self,
        file: IO[bytes],
        name: str,
        delimiter: str,
        *,
        spreadsheet_safe: bool = False,
        forms: Mapping[str, Form] | None = None,
    ) -> None:
        self._file, self._name, self._delimiter = file, name, delimiter
        self._spreadsheet_safe, self._forms = spreadsheet_safe, dict(forms or {})
        self._begun = False

    def write(self, table: Any) -> None:
        import pyarrow as pa

        if not self._begun:
            names = pa.table({str(i): [name] for i, name in enumerate(table.column_names)})
            self._write_lines(names, names.column_names)
            self._begun = True
        if table.num_rows:
            self._write_lines(table, table.column_names)

    def _write_lines(self, table: Any, names: Sequence[str]) -> None:
        import pyarrow as pa
        from pyarrow import compute

        texts = [self._texts(table.column(i), name) for i, name in enumerate(names)]
        # An empty line would be no record to many readers.
        missing = '""' if len(texts) == 1 else ""
        texts = [compute.fill_null(text, missing) for text in texts]
        lines = compute.binary_join_element_wise(*texts, pa.scalar(self._delimiter, pa.large_string()))
        newline = pa.scalar("\n", pa.large_string())
        whole = compute.binary_join(pa.ListArray.from_arrays([0, len(lines)], lines), newline)
        self._file.write(whole[0].as_buffer())
        self._file.write(b"\n")

    def _texts(self, column: Any, name: str) -> Any:
        """A column as text, quoted where needed."""
        import pyarrow as pa
        from pyarrow import compute

        values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        is_text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
        form = self._forms.get(name)
        has_form = form is not None and form.kind == values.type
        try:
            values = form.write(values) if form and has_form else values.cast(pa.large_string())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise InvalidInputError(
                f"{self._name}: column {shortened(name)} of type {column.type} cannot be written as text; "
                "drop it, or write a .parquet file."
            ) from None
        if is_text and self._spreadsheet_safe:
            values = _defused(values)
        if not (is_text or has_form) and self._delimiter in ",\t;|":
            return values
        special = compute.match_substring_regex(values, f'["\r\n{_escaped(self._delimiter)}]|^$')
        if not compute.any(special).as_py():
            return values
        inner = compute.replace_substring(values, '"', '""')
        quote = pa.scalar('"', pa.large_string())
        quoted = compute.binary_join_element_wise(quote, inner, quote, pa.scalar("", pa.large_string()))
        return compute.if_else(special, quoted, values)


def _defused(texts: Any) -> Any:
    """Texts that a spreadsheet takes for text: a ' before what it would execute; numbers stay."""
    import pyarrow as pa
    from pyarrow import compute

    formula = compute.match_substring_regex(texts, _FORMULA)
    formula = compute.and_not(formula, compute.match_substring_regex(texts, _NUMBER))
    if not compute.any(formula).as_py():
        return texts
    none, mark = pa.scalar("", pa.large_string()), pa.scalar("'", pa.large_string())
    return compute.if_else(formula, compute.binary_join_element_wise(mark, texts, none), texts)


def _escaped(delimiter: str) -> str:
    return "\\" + delimiter if delimiter in r"\]^-" else delimiter
