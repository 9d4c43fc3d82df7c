"""Encoders release records batch by batch as they release them at once."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privacyfunnel.errors import InvalidInputError
from privacyfunnel.learned import Funnel


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=300)
    x = rng.normal(size=(300, 3)).astype(np.float32) + y[:, None]
    return pa.table({name: x[:, j] for j, name in enumerate("abc")}), y


@pytest.fixture
def funnel(records):
    table, y = records
    return Funnel(n_components=2, hidden=(8,), epochs=1, random_state=0, release_state=5).fit(
        table.to_pandas(), y
    )


def test_codes_are_those_of_the_whole_table(funnel, records, tmp_path):
    table, y = records
    whole = funnel.transform(table.to_pandas())
    more = table.append_column("y", pa.array(y))
    made = funnel.release_stream(more.to_reader(70)).read_all()
    assert made.column_names == list(funnel.get_feature_names_out())
    assert np.allclose(np.column_stack(made.columns), whole, atol=1e-6)
    assert {field.type for field in made.schema} == {pa.float32()}
    assert funnel.release_state == 5
    pq.write_table(more, tmp_path / "records.parquet")
    funnel.save(tmp_path / "encoder", part="encoder")
    written = funnel.release_stream(tmp_path / "records.parquet", tmp_path / "codes.parquet")
    assert written.n_records == 300
    assert np.allclose(np.column_stack(pq.read_table(tmp_path / "codes.parquet").columns), whole, atol=1e-6)


def test_what_an_encoder_cannot_stream(funnel, records, tmp_path):
    table, _ = records
    with pytest.raises(InvalidInputError, match="there is no column 'b'"):
        funnel.release_stream(table.drop_columns("b"), tmp_path / "codes.csv")
    with pytest.raises(InvalidInputError, match="the name must end in"):
        funnel.release_stream(table, tmp_path / "codes")
    with pytest.raises(InvalidInputError, match="there are no records"):
        funnel.release_stream(table.slice(0, 0), tmp_path / "codes.csv")
    frame = type("DataFrame", (), {"__module__": "pyspark.sql.dataframe", "mapInArrow": None})()
    with pytest.raises(InvalidInputError, match="a frame of Spark; release it there with release_frame"):
        funnel.transform(frame)
    holes = table.set_column(0, "a", pa.array([None] * 300, pa.float32()))
    with pytest.raises(InvalidInputError, match="record 1 has no value in column 'a'"):
        funnel.release_stream(holes.to_reader(50), tmp_path / "codes.csv")
    assert list(tmp_path.iterdir()) == []
