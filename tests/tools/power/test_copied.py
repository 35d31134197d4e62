"""The copy that faults are planted in: as the checkout is, and the checkout stays as it was."""

from pathlib import Path

import pytest

from tests.tools.power.checkouts import git, make_checkout
from tools.power.copied import Copy, CopyError


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return make_checkout(tmp_path / "checkout", {"a.py": "A = 1\n", "b.py": "B = 1\n", "gone.py": "C = 1\n"})


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_copy_has_what_is_not_committed(checkout: Path, tmp_path: Path) -> None:
    (checkout / "a.py").write_text("A = 2\n")
    (checkout / "b.py").write_text("B = 2\n")
    git(checkout, "add", "b.py")
    (checkout / "new.py").write_text("N = 1\n")
    (checkout / "gone.py").unlink()
    copy = Copy(checkout, tmp_path / "copy")
    copy.renew()
    assert copy.files("a.py", "b.py", "gone.py", "new.py") == ["a.py", "b.py", "new.py"]
    assert [copy.read(name) for name in ("a.py", "b.py", "new.py")] == ["A = 2\n", "B = 2\n", "N = 1\n"]


def test_the_checkout_and_its_git_directory_stay_as_they_were(checkout: Path, tmp_path: Path) -> None:
    (checkout / "a.py").write_text("A = 2\n")
    git(checkout, "status")  # which writes git's index
    before = everything(checkout)
    copy = Copy(checkout, tmp_path / "copy")
    copy.renew()
    copy.plant("a.py", "A = 3\n")
    (copy.folder / "left.txt").write_text("by a test")
    copy.restore("a.py")
    copy.renew()
    assert everything(checkout) == before


def test_a_restored_copy_is_clean(checkout: Path, tmp_path: Path) -> None:
    copy = Copy(checkout, tmp_path / "copy")
    copy.renew()
    copy.plant("a.py", "A = 3\n")
    (copy.folder / "left.txt").write_text("by a test")
    compiled = copy.folder / "__pycache__" / "a.cpython-311.pyc"
    compiled.parent.mkdir()
    compiled.write_bytes(b"of the fault")
    copy.restore("a.py")
    assert (copy.read("a.py"), (copy.folder / "left.txt").exists(), compiled.exists()) == ("A = 1\n", False, False)


def test_one_process_at_a_time_works_in_a_copy(checkout: Path, tmp_path: Path) -> None:
    first, second = Copy(checkout, tmp_path / "copy"), Copy(checkout, tmp_path / "copy")
    with first.alone(), pytest.raises(CopyError, match="another process works in"), second.alone():
        pass
    with Copy(checkout, tmp_path / "copy").alone():
        pass


def test_a_renewed_copy_follows_the_checkout(checkout: Path, tmp_path: Path) -> None:
    copy = Copy(checkout, tmp_path / "copy")
    copy.renew()
    blobs = copy.blobs()
    (checkout / "a.py").write_text("A = 4\n")
    git(checkout, "commit", "-qam", "A change")
    copy.renew()
    assert copy.read("a.py") == "A = 4\n"
    assert {name for name, blob in copy.blobs().items() if blobs.get(name) != blob} == {"a.py"}


def test_a_folder_that_is_no_checkout_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(CopyError, match="nowhere"):
        Copy(tmp_path / "nowhere", tmp_path / "copy").renew()
