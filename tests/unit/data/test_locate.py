"""Which files the settings mean."""

import pytest

from needle.config import FinetuneSettings
from needle.data.locate import locate_base, locate_data, locate_tokenizer
from needle.data.sample import sample_base, sample_directory
from needle.errors import InputError


@pytest.fixture(autouse=True)
def in_empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_sample_means_the_embedded_data_unless_a_file_has_that_name(tmp_path):
    settings = FinetuneSettings(data="sample")
    assert locate_data(settings) == sample_directory() / "train.jsonl"
    (tmp_path / "sample").touch()
    assert locate_data(settings).resolve() == tmp_path / "sample"


def test_the_base_in_the_checkpoint_directory_comes_before_the_sample(tmp_path):
    assert locate_base(FinetuneSettings())[:2] == (sample_base(), "sample")
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "needle2.pkl").touch()
    path, name, why = locate_base(FinetuneSettings())
    assert (path.name, name, why) == (
        "needle2.pkl",
        "checkpoints/needle2.pkl",
        "found in the checkpoint directory",
    )


def test_a_named_base_that_is_not_there_is_refused_at_its_field():
    with pytest.raises(InputError, match=r"none\.pkl: no such file") as refused:
        locate_base(FinetuneSettings(checkpoint="none.pkl"))
    assert refused.value.field == "checkpoint"


def test_the_tokenizer_is_the_one_beside_the_base(tmp_path):
    base = tmp_path / "checkpoints" / "needle2.pkl"
    base.parent.mkdir()
    with pytest.raises(InputError, match=r"no tokenizer\.model beside needle2\.pkl") as refused:
        locate_tokenizer(FinetuneSettings(), base)
    assert refused.value.field == "tokenizer"
    published = tmp_path / "tokenizer" / "tokenizer.model"
    published.parent.mkdir()
    published.touch()
    assert locate_tokenizer(FinetuneSettings(), base) == published
    (base.parent / "tokenizer.model").touch()
    assert locate_tokenizer(FinetuneSettings(), base) == base.parent / "tokenizer.model"


def test_the_sample_base_has_its_tokenizer():
    assert locate_tokenizer(FinetuneSettings(), sample_base()) == sample_directory() / "tokenizer.model"
