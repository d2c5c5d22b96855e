"""Where batches of predictions go: CSV, Parquet or Arrow."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
from typing import IO, TYPE_CHECKING, Any, Self

from spinney.cli.group import Problem
from spinney.cli.tables import show_name

if TYPE_CHECKING:
    import pyarrow as pa

KINDS = {
    ".csv": "csv",
    ".csv.gz": "csv.gz",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}


def kind_of(path: str) -> str:
    """The kind of file that a suffix names."""
    for suffix, kind in KINDS.items():
        if path.lower().endswith(suffix):
            return kind
    raise Problem(f"--out {path}: unknown kind of file. Known are {', '.join(KINDS)}")


class Sink:
    """Writes batches of one schema into a binary file.

    Parameters
    ----------
    file : binary file
        It stays open.
    kind : {"csv", "csv.gz", "parquet", "arrow"}
    """

    def __init__(self, file: IO[bytes], kind: str) -> None:
        self.file = file
        self.kind = kind
        self.open = contextlib.ExitStack()
        self.writer: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.open.close()
            self.file.flush()
        else:
            with contextlib.suppress(Exception):  # the file is lost anyway
                self.open.close()

    def write(self, table: pa.Table) -> None:
        """Add rows; the first have the header written before them."""
        import pyarrow as pa

        for j, field in enumerate(table.schema):
            if pa.types.is_dictionary(field.type):  # batches may have other ones, which Arrow does not allow
                table = table.set_column(j, field.name, table.column(j).cast(field.type.value_type))
            elif pa.types.is_string_view(field.type):
                table = table.set_column(j, field.name, table.column(j).cast(pa.string()))
            elif pa.types.is_nested(field.type) and self.kind.startswith("csv"):
                raise Problem(
                    f"column {show_name(field.name)} is nested, which CSV cannot hold: write Parquet or Arrow"
                )
        if self.writer is None:
            self.start(table.schema)
        if self.kind.startswith("csv"):
            self.write_csv(table)
        else:
            self.writer.write_table(table)

    def start(self, schema: pa.Schema) -> None:
        """Write what comes before the first row."""
        import pyarrow as pa
        from pyarrow import parquet

        if self.kind == "parquet":
            self.writer = self.open.enter_context(parquet.ParquetWriter(self.file, schema))
        elif self.kind == "arrow":
            self.writer = self.open.enter_context(pa.ipc.new_file(self.file, schema))
        else:
            self.writer = self.file
            if self.kind == "csv.gz":  # without the time, so that equal tables give equal bytes
                self.writer = self.open.enter_context(gzip.GzipFile("", "wb", fileobj=self.file, mtime=0))
            head = io.StringIO()
            csv.writer(head, lineterminator="\n").writerow(schema.names)
            self.writer.write(head.getvalue().encode("utf-8", "backslashreplace"))

    def write_csv(self, table: pa.Table) -> None:
        """Add rows in UTF-8; text is in quotes only in batches where some of it needs them."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        for style in ("none", "needed"):
            text = io.BytesIO()
            try:
                arrow_csv.write_csv(table, text, arrow_csv.WriteOptions(include_header=False, quoting_style=style))
            except pa.ArrowInvalid:
                if style == "needed":
                    raise
                continue
            break
        self.writer.write(text.getvalue())
        if self.writer is self.file:
            self.file.flush()  # so that a reader that went away is noticed
