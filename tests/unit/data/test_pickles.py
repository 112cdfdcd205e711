"""A pickle may make arrays and plain containers; anything else is refused by name, and never run."""

import io
import os
import pickle
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from needle.data.pickles import load_pickle
from needle.errors import InputError

CONTENT = {
    "f16": np.arange(6, dtype=np.float16).reshape(2, 3),
    "fortran": np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
    "sliced": np.arange(10, dtype=np.int64)[::3],
    "empty": np.zeros((0, 4), np.float32),
    "no axes": np.array(2.5),
    "truth": np.array([True, False]),
    "big endian": np.arange(3, dtype=">i4"),
    "plain": [1, 2.5, "text", None, True, b"bytes", (1, (2,)), {"k": {1, 2}}],
    "scalar": np.float32(1.5),
}


def same(found, wanted):
    if isinstance(wanted, np.ndarray):
        return (
            found.shape == wanted.shape
            and found.dtype == wanted.dtype.newbyteorder("=")
            and (found == wanted).all()
        )
    return not isinstance(found, np.generic) and found == wanted


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_arrays_and_plain_values_of_every_protocol_come_back(written, protocol):
    loaded = load_pickle(written(pickle.dumps(CONTENT, protocol), "c.pkl"))
    assert loaded.keys() == CONTENT.keys()
    assert [name for name in CONTENT if not same(loaded[name], CONTENT[name])] == []


def test_a_published_checkpoint_is_what_pickle_itself_gives(golden):
    loaded = load_pickle(golden / "tiny.pkl")
    with open(golden / "tiny.pkl", "rb") as file:
        wanted = pickle.load(file)
    assert loaded["config"] == wanted["config"]
    np.testing.assert_array_equal(
        loaded["params"]["embedding"]["embedding"], wanted["params"]["embedding"]["embedding"]
    )


class RunsACommand:
    """What an attacker would put in a checkpoint."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def test_a_malicious_pickle_is_refused_by_name_and_not_run(written, tmp_path):
    trace = tmp_path / "trace"
    path = written(pickle.dumps({"format_version": 2, "params": RunsACommand(trace)}), "evil.pkl")
    with pytest.raises(InputError, match=r"would run posix\.system") as refused:
        load_pickle(path)
    assert refused.value.where == str(path)
    assert not trace.exists()
    pickle.loads(path.read_bytes())
    assert trace.exists(), "the same bytes do run elsewhere: the test is a real one"


@pytest.mark.parametrize(
    ("program", "name"),
    [
        (b"c__builtin__\neval\n(V1+1\ntR.", "__builtin__.eval"),
        (b"cbuiltins\ngetattr\n(VX\nVy\ntR.", "builtins.getattr"),
        (b"cnumpy\nload\n(Vx\ntR.", "numpy.load"),
        (b"cnumpy.core.multiarray\nfrombuffer\n.", "numpy.core.multiarray.frombuffer"),
        (b"\x80\x04\x8c\x05posix\x8c\x06system\x93.", "posix.system"),
        (b"cneedle.data.pickles\n_Unpickler\n.", "needle.data.pickles._Unpickler"),
        (b"Pstored elsewhere\n.", "something outside the file"),
    ],
)
def test_every_other_name_is_refused(written, program, name):
    with pytest.raises(InputError, match=name.replace(".", r"\.")):
        load_pickle(written(program, "evil.pkl"))


def dtype_state(code, order="<"):
    return f"cnumpy\ndtype\n(V{code}\nI00\nI01\ntR(I3\nV{order}\nNNNI-1\nI-1\nI0\ntb".encode()


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(
            b"cnumpy.core.multiarray\nscalar\n(" + dtype_state("O", "|") + b"Vx\ntR.", id="object scalar"
        ),
        pytest.param(
            b"cnumpy.core.multiarray\nscalar\n(" + dtype_state("f8") + b"Vx\ntR.", id="short scalar"
        ),
        pytest.param(b"cnumpy.core.multiarray\n_reconstruct\n(tR.", id="array without content"),
        pytest.param(b"cnumpy\nndarray\n.", id="the array type itself"),
        pytest.param(b"c_codecs\nencode\n(Vx\nVrot13\ntR.", id="another encoding"),
    ],
)
def test_arrays_whose_parts_do_not_agree_are_refused(written, program):
    with pytest.raises(InputError, match="is cut short or is not a pickle"):
        load_pickle(written(program, "bad.pkl"))


def test_an_array_larger_than_its_bytes_is_refused(written):
    honest = pickle.dumps(np.zeros(3, np.float32), 4)
    claimed = honest.replace(b"K\x03\x85", b"J" + struct.pack("<i", 2**30) + b"\x85")
    assert claimed != honest
    with pytest.raises(InputError, match="does not fill its shape"):
        load_pickle(written(claimed, "bad.pkl"))


def test_a_container_that_holds_itself_is_read(written):
    holder = {}
    holder["me"] = holder
    loaded = load_pickle(written(pickle.dumps(holder), "loop.pkl"))
    assert loaded["me"] is loaded


def test_shared_containers_do_not_multiply(written):
    shared = []
    for _ in range(60):
        shared = [shared, shared]
    loaded = load_pickle(written(pickle.dumps(shared), "laughs.pkl"))
    assert loaded[0] is loaded[1]


@pytest.mark.parametrize("share", [0.01, 0.5, 0.99])
def test_a_cut_checkpoint_is_refused(golden, written, share):
    content = (golden / "tiny.pkl").read_bytes()
    with pytest.raises(InputError, match="is cut short"):
        load_pickle(written(content[: int(share * len(content))], "cut.pkl"))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_pickle_is_read_or_refused_but_never_anything_else(written, data):
    content = bytearray(pickle.dumps(CONTENT, 4))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = written(bytes(content), "damaged.pkl")
    try:
        load_pickle(path)
    except InputError as error:
        outcome = error.where
    else:
        outcome = str(path)
    assert outcome == str(path)


def test_torch_files_are_named_for_what_they_are(written):
    import zipfile

    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("data.pkl", b"x")
    with pytest.raises(InputError, match="is a zip archive"):
        load_pickle(written(packed.getvalue(), "model.pkl"))
