"""Training sees the weights that ship, and learns as if they were not rounded."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from needle.model.activations import fake_quantise_activations
from needle.model.architecture import SimpleAttentionNetwork
from needle.model.bitmap import BitMap, canonical_name, parse_bit_map
from needle.model.checkpoints import load_checkpoint
from needle.model.fake_quantise import fake_quantise, fake_quantised_params
from needle.model.lora import merge
from needle.model.parameters import flatten
from needle.model.quantize import quantised_params


@pytest.fixture
def reference(golden):
    return np.load(golden / "quant.npz")


@pytest.mark.parametrize("bits", [1.58, 2, 3, 4])
def test_weights_are_rounded_to_the_published_values(reference, bits):
    rounded = jax.jit(lambda weights: fake_quantise(weights, bits))(reference["w"])

    np.testing.assert_allclose(rounded, reference[f"cq_{bits}"], rtol=0, atol=1e-6)


def test_activations_are_rounded_to_the_published_values(reference):
    assert np.array_equal(fake_quantise_activations(reference["act"], 8), reference["act_a8"])


def test_the_gradient_passes_through_the_rounding_unchanged(reference):
    weights, pull = jnp.asarray(reference["w"]), jnp.asarray(reference["cq_3"])

    gradient = jax.jit(jax.grad(lambda w: jnp.sum(fake_quantise(w, 2) * pull)))(weights)

    assert np.array_equal(gradient, pull)


def test_training_rounds_exactly_the_leaves_that_ship_rounded(golden):
    params, _ = load_checkpoint(golden / "tiny.pkl")
    bit_map = parse_bit_map("default=2,embedding=4,attn.q_proj=3,engram0=1.58")
    shipped = flatten(quantised_params(params, bit_map))

    trained = flatten(jax.jit(lambda params: fake_quantised_params(params, bit_map))(params))

    for path, leaf in shipped.items():
        if canonical_name(path):
            np.testing.assert_allclose(trained[path], leaf, rtol=0, atol=1e-6, err_msg=path)
        else:
            assert np.array_equal(trained[path], flatten(params)[path]), path


def test_only_the_named_leaves_are_rounded_when_the_rest_was_rounded_before(golden):
    params, _ = load_checkpoint(golden / "tiny.pkl")
    kernel = "stack/layers/block/self_attn/q_proj/kernel"

    rounded = flatten(fake_quantised_params(params, BitMap(2), only=[kernel]))

    changed = [path for path, leaf in flatten(params).items() if not np.array_equal(leaf, rounded[path])]
    assert changed == [kernel]


def test_quantisation_aware_loss_and_gradients_are_the_published_ones(golden):
    params, config = load_checkpoint(golden / "tiny.pkl")
    lora, tokens = np.load(golden / "lora.npz"), np.load(golden / "forward.npz")["tokens"]
    adapter: dict[str, dict[str, np.ndarray]] = {}
    for name in lora.files:
        if name.startswith("weights/"):
            path, _, matrix = name.removeprefix("weights/").rpartition("/")
            adapter.setdefault(path, {})[matrix] = lora[name]
    model, counted = SimpleAttentionNetwork(config), lora["mask"][:, 1:]

    def loss_of(adapter):
        weights = fake_quantised_params(merge(params, adapter, 2.0), BitMap(4))
        logits = model.apply({"params": weights}, tokens, quant=True)[:, :-1]
        entropies = optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:])
        return jnp.sum(entropies * counted) / jnp.sum(counted)

    loss, gradient = jax.jit(jax.value_and_grad(loss_of))(adapter)

    assert float(loss) == pytest.approx(float(lora["qat/loss"]), abs=1e-3)
    for path, matrices in gradient.items():
        for matrix, values in matrices.items():
            wanted = lora[f"qat/grad/{path}/{matrix}"]
            np.testing.assert_allclose(values, wanted, rtol=0, atol=1e-3, err_msg=path)
