"""What `lockgate.spark.write` is given, before Spark is asked for anything."""

from __future__ import annotations

import pytest
from lockgate.errors import UsageError
from lockgate.spark import write


@pytest.mark.parametrize("given", [[1, 2], {"a": 1}, None, "df"])
def test_what_is_no_dataframe_is_refused_by_its_type(given, tmp_path) -> None:
    with pytest.raises(UsageError, match=f"takes a DataFrame of Spark first, not {type(given).__name__}") as caught:
        write(given, str(tmp_path / "t"))
    assert "spark.createDataFrame" in caught.value.next_step
    assert not (tmp_path / "t").exists()
