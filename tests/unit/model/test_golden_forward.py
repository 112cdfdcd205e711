"""The forward pass, the adapter and its gradients agree with a published implementation."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from needle.model.architecture import Execution, SimpleAttentionNetwork
from needle.model.checkpoints import load_checkpoint
from needle.model.engram import engram_indices
from needle.model.lora import collection, init_lora, merge

PLAIN = Execution()
CLOSE = {"rtol": 0, "atol": 1e-5}


@pytest.fixture(scope="module")
def forward(request):
    return np.load(request.config.rootpath / "tests" / "golden" / "forward.npz")


@pytest.fixture(scope="module")
def lora(request):
    return np.load(request.config.rootpath / "tests" / "golden" / "lora.npz")


@pytest.fixture(scope="module")
def tiny(request):
    return load_checkpoint(request.config.rootpath / "tests" / "golden" / "tiny.pkl")


def logits(tiny, forward, *, execution=PLAIN, variables=None, **inputs):
    params, config = tiny
    network = SimpleAttentionNetwork(config, execution)
    compute = jax.jit(lambda variables, tokens: network.apply(variables, tokens, **inputs))
    return compute(variables or {"params": params}, forward["tokens"])


@pytest.mark.parametrize(
    ("kernel", "unroll"), [("xla", False), ("manual", True)], ids=["xla, scanned", "manual, unrolled"]
)
def test_logits_agree_with_the_published_ones(tiny, forward, kernel, unroll):
    ours = logits(tiny, forward, execution=Execution(kernel=kernel, unroll=unroll))
    np.testing.assert_allclose(ours, forward["logits"], **CLOSE)
    np.testing.assert_allclose(ours, forward["logits_manual"], **CLOSE)


def test_packed_rows_see_only_their_own_segment(tiny, forward):
    ours = logits(tiny, forward, segments=forward["segments"])
    real = forward["segments"] > 0
    np.testing.assert_allclose(np.asarray(ours)[real], forward["logits_packed"][real], **CLOSE)
    assert np.isfinite(ours).all()


def test_the_multi_token_head_agrees(tiny, forward):
    params, config = tiny
    network = SimpleAttentionNetwork(config)
    compute = jax.jit(lambda tokens: network.apply({"params": params}, tokens, method="multi_token_logits"))
    ours = compute(forward["tokens"])
    np.testing.assert_allclose(ours, forward["logits_mtp"], **CLOSE)


def test_engram_rows_are_those_of_the_published_hash(tiny, forward):
    indices = np.asarray(engram_indices(jnp.asarray(forward["tokens"]), tiny[1]))
    assert np.array_equal(indices.reshape(forward["engram_indices"].shape), forward["engram_indices"])


def test_a_fresh_adapter_is_the_published_one(tiny, lora):
    for path, matrices in init_lora(tiny[0], rank=4, seed=0).items():
        for name, ours in matrices.items():
            np.testing.assert_allclose(ours, lora[f"init/{path}/{name}"], rtol=1e-6, atol=1e-7, err_msg=path)


@pytest.fixture(scope="module")
def adapter(lora):
    paths = {name.split("/", 1)[1].rsplit("/", 1)[0] for name in lora if name.startswith("weights/")}
    return {path: {part: lora[f"weights/{path}/{part}"] for part in "AB"} for path in sorted(paths)}


def loss_of(tiny, forward, mask, adapter, execution):
    params, config = tiny
    network, tokens = SimpleAttentionNetwork(config, execution), forward["tokens"]
    ours = network.apply({"params": params, "lora": collection(adapter, 2.0)}, tokens)
    losses = optax.softmax_cross_entropy_with_integer_labels(ours[:, :-1], tokens[:, 1:])
    return jnp.sum(losses * mask[:, 1:]) / jnp.sum(mask[:, 1:])


@pytest.mark.parametrize("remat", [False, True], ids=["layers kept", "layers recomputed"])
def test_loss_and_gradients_of_an_adapter_agree(tiny, forward, lora, adapter, remat):
    def loss_under(adapter):
        return loss_of(tiny, forward, lora["mask"], adapter, Execution(remat=remat))

    loss, gradients = jax.jit(jax.value_and_grad(loss_under))(adapter)
    np.testing.assert_allclose(loss, lora["plain/loss"], **CLOSE)
    for path, parts in gradients.items():
        for name, ours in parts.items():
            np.testing.assert_allclose(ours, lora[f"plain/grad/{path}/{name}"], err_msg=path, **CLOSE)


def test_an_adapter_beside_the_weights_is_the_same_as_one_merged_into_them(tiny, forward, adapter):
    params, _ = tiny
    beside = logits(tiny, forward, variables={"params": params, "lora": collection(adapter, 2.0)})
    merged = logits(tiny, forward, variables={"params": merge(params, adapter, 2.0)})
    np.testing.assert_allclose(beside, merged, rtol=0, atol=2e-5)
