"""The pieces of the forward pass, each against its plain definition."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from needle.errors import InputError
from needle.model.activations import fake_quantise_activations
from needle.model.architecture import PRESETS, SimpleAttentionNetwork, TransformerConfig, init_params
from needle.model.attention import attend
from needle.model.checkpoints import load_checkpoint
from needle.model.hadamard import walsh_matrix, walsh_transform
from needle.model.parameters import flatten, optional_shapes, parameter_shapes
from needle.model.streams import SINKHORN_ITERATIONS, sinkhorn
from needle.model.visibility import make_visibility


@pytest.fixture(scope="module")
def tiny(request):
    return load_checkpoint(request.config.rootpath / "tests" / "golden" / "tiny.pkl")


def sinkhorn_on_logarithms(logits):
    for _ in range(SINKHORN_ITERATIONS):
        logits = logits - jax.nn.logsumexp(logits, axis=1, keepdims=True)
        logits = logits - jax.nn.logsumexp(logits, axis=0, keepdims=True)
    return jnp.exp(logits)


@pytest.mark.parametrize("spread", [1.0, 30.0, 300.0])
def test_sinkhorn_agrees_with_its_definition_on_logarithms(spread):
    logits = spread * jax.random.normal(jax.random.PRNGKey(0), (4, 4, 50))
    np.testing.assert_allclose(sinkhorn(logits), sinkhorn_on_logarithms(logits), rtol=0, atol=2e-5)


@pytest.mark.parametrize("size", [128, 256, 512, 1024])
def test_the_walsh_transform_is_the_product_with_its_matrix(size):
    x = jax.random.normal(jax.random.PRNGKey(1), (2, 3, size))
    np.testing.assert_allclose(walsh_transform(x), x @ walsh_matrix(size), rtol=0, atol=2e-5)
    np.testing.assert_allclose(walsh_transform(walsh_transform(x)), x, rtol=0, atol=2e-5)


def attention_by_definition(query, key, value, seen):
    key, value = (jnp.repeat(part, query.shape[2] // part.shape[2], axis=2) for part in (key, value))
    scores = jnp.einsum("bthd,bshd->bhts", query, key) / np.sqrt(query.shape[-1])
    weights = jax.nn.softmax(jnp.where(seen[:, None], scores, -np.inf), axis=-1)
    return jnp.einsum("bhts,bshd->bthd", weights, value)


def attention_inputs(length):
    keys = jax.random.split(jax.random.PRNGKey(2), 3)
    shapes = ((2, length, 4, 16), (2, length, 2, 16), (2, length, 2, 16))
    return [jax.random.normal(key, shape) for key, shape in zip(keys, shapes, strict=True)]


def segments_of(length):
    places = np.arange(length)
    return np.stack([1 + places // 50, np.where(places < length - 9, 1, 0)]).astype(np.int32)


@pytest.mark.parametrize("length", [7, 300])
@pytest.mark.parametrize("backend", ["cpu", "another"])
@pytest.mark.parametrize("kernel", ["xla", "manual"])
def test_every_kernel_computes_attention_within_segments(kernel, backend, length, monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    inputs, segments = attention_inputs(length), segments_of(length)
    seen = np.tril(np.ones((length, length), bool)) & (segments[:, :, None] == segments[:, None, :])
    expected = attention_by_definition(*inputs, seen)
    found = attend(*inputs, kernel=kernel, visibility=make_visibility(jnp.asarray(segments), None))
    real = segments > 0
    np.testing.assert_allclose(found[real], expected[real], rtol=0, atol=1e-5)


@pytest.mark.parametrize("kernel", ["xla", "manual"])
def test_a_row_of_padding_has_finite_gradients(kernel):
    visibility = make_visibility(jnp.zeros((2, 20), jnp.int32), None)
    inputs = attention_inputs(20)

    def total(*inputs):
        return jnp.sum(attend(*inputs, kernel=kernel, visibility=visibility) ** 2)

    for gradient in jax.jit(jax.grad(total, argnums=(0, 1, 2)))(*inputs):
        assert np.isfinite(gradient).all()


@pytest.mark.parametrize("axes", [2, 3, 4])
def test_an_explicit_mask_gives_what_segments_give(tiny, golden, axes):
    params, config = tiny
    forward = np.load(golden / "forward.npz")
    tokens, segments = forward["tokens"][:1], forward["segments"][:1]
    mask = (segments[:, :, None] == segments[:, None, :]) & (segments > 0)[:, :, None]
    mask = {2: mask[0], 3: mask, 4: mask[:, None]}[axes]
    ours = jax.jit(SimpleAttentionNetwork(config).apply)({"params": params}, tokens, mask)
    real = segments > 0
    np.testing.assert_allclose(ours[real], forward["logits_packed"][:1][real], rtol=0, atol=1e-5)


def test_packing_two_examples_gives_what_each_gives_alone(tiny):
    params, config = tiny
    network = SimpleAttentionNetwork(config)
    compute = jax.jit(lambda tokens, segments: network.apply({"params": params}, tokens, segments=segments))
    tokens = np.random.default_rng(0).integers(4, config.vocab_size, (1, 30)).astype(np.int32)
    packed = compute(tokens, np.array([[1] * 12 + [2] * 18], np.int32))
    for part in (slice(0, 12), slice(12, 30)):
        alone = compute(tokens[:, part], None)
        np.testing.assert_allclose(packed[:, part], alone, rtol=0, atol=1e-5)


def test_rounding_activations_keeps_a_row_of_zeros():
    x = jnp.zeros((2, 8)).at[0].set(jnp.linspace(-1, 2, 8))
    assert not np.asarray(fake_quantise_activations(x, bits=8))[1].any()


def test_fresh_parameters_have_every_shape_and_are_repeatable():
    config = replace(PRESETS["sample"], num_layers=5, vocab_size=64, engram_slots=16)
    flat = flatten(init_params(config, seed=3))
    shapes = parameter_shapes(config) | optional_shapes(config)["mtp"]
    assert {name: leaf.shape for name, leaf in flat.items()} == shapes
    again, other = (flatten(init_params(config, seed)) for seed in (3, 4))
    assert all(np.array_equal(leaf, again[name]) for name, leaf in flat.items())
    assert not np.array_equal(flat["embedding/embedding"], other["embedding/embedding"])


def test_fresh_parameters_are_spread_as_specified():
    config = replace(PRESETS["sample"], num_layers=5)
    flat = flatten(init_params(config, seed=0))
    attention = "stack/layers/block/self_attn"
    assert np.std(flat[f"{attention}/q_proj/kernel"]) == pytest.approx(0.02, rel=0.02)
    assert np.std(flat[f"{attention}/out_proj/kernel"]) == pytest.approx(0.02 / np.sqrt(10), rel=0.02)
    assert np.std(flat["engrams_0/value_proj/kernel"]) == pytest.approx(0.02 / np.sqrt(10), rel=0.02)
    np.testing.assert_array_equal(flat["stack/mhc_b_res"][2], 4 * np.eye(4))
    np.testing.assert_array_equal(flat["engrams_1/taps"][:, 0], [1, 0, 0, 0])


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"engram_layers": (1, 6)}, "engram site 6 is not one of its 6 layers"),
        ({"num_kv_heads": 3}, "3 kv heads do not divide 4 heads"),
        ({"attn_dim": 130}, "4 heads do not divide a width of 130"),
        ({"num_layers": 0}, "num_layers is 0"),
        ({"engram_orders": (2, 3, 4)}, "3 engram tables do not divide a width of 128"),
    ],
)
def test_a_geometry_that_cannot_be_is_said_before_anything_is_computed(changed, words):
    with pytest.raises(InputError, match=words):
        init_params(replace(PRESETS["sample"], **changed), seed=0)


def test_the_published_presets_are_of_the_published_size():
    count = sum(int(np.prod(shape)) for shape in parameter_shapes(PRESETS["needle2"]).values())
    assert 40e6 < count < 48e6
    assert TransformerConfig().engram_hash_heads * 128 * len(TransformerConfig().engram_orders) == 512
