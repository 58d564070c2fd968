"""Half-written files are never seen, and strange YAML is refused by name and line."""

import pytest

from discreet.errors import BadInput, NewerFormat, UnreadableFile
from discreet.files import (
    FORMAT_VERSION,
    atomic_file,
    atomic_folder,
    check_format,
    read_yaml,
    write_json,
    write_yaml,
)


def test_an_interrupted_file_leaves_the_old_one(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("old")

    def interrupted():
        with atomic_file(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        interrupted()
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["x.txt"]


def test_an_interrupted_folder_leaves_nothing(tmp_path):
    def interrupted():
        with atomic_folder(tmp_path / "out") as temporary:
            (temporary / "half").write_text("x")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_a_finished_folder_is_private_and_never_merged(tmp_path):
    with atomic_folder(tmp_path / "out") as temporary:
        (temporary / "x").write_text("x")
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o700
    with pytest.raises(BadInput, match="not empty"), atomic_folder(tmp_path / "out"):
        pass


def test_yaml_and_json_round_trip(tmp_path):
    value = {"b": ["01", 1, None], "a": {"x": "é"}}
    write_yaml(tmp_path / "x.yaml", value)
    assert read_yaml(tmp_path / "x.yaml") == value
    shared = ["01"]
    write_yaml(tmp_path / "y.yaml", {"a": shared, "b": shared})
    assert read_yaml(tmp_path / "y.yaml") == {"a": ["01"], "b": ["01"]}
    write_json(tmp_path / "x.json", value)
    assert (tmp_path / "x.json").read_text().index('"a"') < 10


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\na: 2\n",
        "a: [1\n",
        "a: !!python/object/apply:os.getcwd []\n",
        "\x00",
        "{" * 5000,
        "[" * 200_000,
        "a: &x [1]\nb: *x\n",
        "- " * 300 + "1",
    ],
)
def test_strange_yaml_is_refused(tmp_path, text):
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(UnreadableFile, match=r"x\.yaml"):
        read_yaml(tmp_path / "x.yaml")


@pytest.mark.parametrize("version", [FORMAT_VERSION + 1, 0, "1", None, True, 1.0])
def test_other_format_versions_are_refused(version):
    with pytest.raises(NewerFormat):
        check_format({"format_version": version}, "x.yaml")
