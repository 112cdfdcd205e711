"""XLA_FLAGS read, merged and judged by their spelling."""

import pytest

from needle.devices.flags import flags_problem, merged_flags, overruled_flags, split_flags


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("", ()),
        ("  --xla_a=1\t--xla_b\n", ("--xla_a=1", "--xla_b")),
        ("--xla_a=\"x y\" --xla_b='p q'", ('--xla_a="x y"', "--xla_b='p q'")),
    ],
)
def test_flags_are_split_as_xla_splits_them(text, flags):
    assert split_flags(text) == flags


@pytest.mark.parametrize(
    ("own", "extra", "merged"),
    [
        ("", "--xla_a=1", "--xla_a=1"),
        ("--xla_a=1", "", "--xla_a=1"),
        ("--xla_a=1 --xla_b=2", "--xla_b=3", "--xla_a=1 --xla_b=3"),
        ("--xla_a", "--xla_ab=1", "--xla_a --xla_ab=1"),
        ("--xla_z --xla_a", "--xla_m", "--xla_z --xla_a --xla_m"),
    ],
)
def test_the_persons_flags_are_kept_and_the_runs_count_where_both_say_one(own, extra, merged):
    assert merged_flags(own, extra) == merged


def test_what_is_overruled_is_named_and_what_is_said_twice_alike_is_not():
    assert overruled_flags("--xla_a=1 --xla_b=2", "--xla_a=1 --xla_b=3") == ("--xla_b=2",)


@pytest.mark.parametrize(
    ("own", "extra", "words"),
    [
        ("", "", ""),
        ("", "--xla_gpu_autotune_level=0", ""),
        ("", "xla_gpu_autotune_level=0", "begins with --xla_, not xla_gpu_autotune_level=0"),
        ("", "--jax_enable_x64=1", "not --jax_enable_x64=1"),
        ("/etc/xla.flags", "--xla_a=1", "XLA_FLAGS names a file (/etc/xla.flags)"),
        ("/etc/xla.flags", "", ""),
    ],
)
def test_flags_that_cannot_be_added_are_refused_by_their_spelling(own, extra, words):
    problem = flags_problem(own, extra)
    assert words in problem
    assert bool(words) == bool(problem)
