"""Names of images, as the kubelet reads them (row CW7)."""

import pytest

from agent.kubelet.runtime.image_names import with_tag

SHA = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("busybox", "busybox:latest"),
        ("busybox:1", "busybox:1"),
        ("r.example:5000/a/b", "r.example:5000/a/b:latest"),
        ("localhost/a:b", "localhost/a:b"),
        ("[::1]:5000/a", "[::1]:5000/a:latest"),
        ("A.example/b", "A.example/b:latest"),
        ("a:latest", "a:latest"),
        (f"a@sha256:{SHA}", f"a@sha256:{SHA}"),
        (f"a:1@sha256:{SHA}", f"a:1@sha256:{SHA}"),
    ],
)
def test_a_tag_is_added_where_there_is_neither_one_nor_a_digest(name: str, expected: str) -> None:
    assert expected == with_tag(name)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "invalid reference format"),
        ("a b", "invalid reference format"),
        ("a.b_:1/c", "invalid reference format"),
        ("a:b:c", "invalid reference format"),
        ("http://a/b", "invalid reference format"),
        ("a\n", "invalid reference format"),
        ("a/B", "invalid reference format: repository name (a/B) must be lowercase"),
        ("a" * 256, "repository name must not be more than 255 characters"),
        (SHA, f"invalid repository name ({SHA}), cannot specify 64-byte hexadecimal strings"),
        (f"a@sha256:{SHA}0", "invalid checksum digest length"),
        (f"a@sha256:{SHA.upper()}", "invalid checksum digest format"),
        (f"a@md5:{SHA}", "unsupported digest algorithm"),
    ],
)
def test_what_is_no_name_says_why(name: str, why: str) -> None:
    with pytest.raises(ValueError, match="couldn't parse image name") as told:
        with_tag(name)
    assert why == str(told.value).partition('": ')[2]
