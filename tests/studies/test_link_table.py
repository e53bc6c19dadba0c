"""Robot files of a line a link."""

import pytest

from jdyn.model import ModelError
from jdyn.studies.cloutier1995 import Link, load_links

pytestmark = pytest.mark.fast_compile


def written(folder, content):
    path = folder / "robot.dat"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_a_line_is_a_link(tmp_path):
    path = written(tmp_path, "\ufeff# length mass width\r\n1 2.5 1e-1  # the first\r\n\r\n\t3.0 4 5\r\n")
    assert load_links(path) == (Link(length=1, mass=2.5, width=0.1), Link(length=3, mass=4, width=5))


def test_every_problem_is_named_with_its_line(tmp_path):
    path = written(tmp_path, "1 1 1\n1 1\n# fine\n1 -2 1\n1 1 wide\nnan 1 1\n1 1 inf\n1 1 1 1\n")
    with pytest.raises(ModelError) as error:
        load_links(path)
    message = str(error.value)
    assert message.startswith(f"{path}: not a robot file")
    lines = message.splitlines()[1:]
    assert [line.split(":")[0] for line in lines] == [f"  - line {n}" for n in (2, 4, 5, 6, 7, 8)]
    assert "expected 3 numbers, length, mass, width, got 2" in lines[0]
    assert "mass: expected a finite positive number, got '-2'" in lines[1] and "width" in lines[2]


@pytest.mark.parametrize(
    ("content", "message"),
    [("", "no link"), ("# nothing\n", "no link"), (b"\xff\xfe1", "UTF-8"), (b"1 1 1\n" * 200_000, "larger than 1 MB")],
    ids=["empty", "comments", "binary", "large"],
)
def test_what_is_no_table_is_refused(tmp_path, content, message):
    with pytest.raises(ModelError, match=message):
        load_links(written(tmp_path, content))


@pytest.mark.parametrize("name", ["missing.dat", "."])
def test_what_cannot_be_read_is_refused(tmp_path, name):
    with pytest.raises(ModelError, match="cannot be read"):
        load_links(tmp_path / name)
