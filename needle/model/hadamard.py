"""The orthonormal Walsh-Hadamard transform in Sylvester order."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

_DENSE_LIMIT = 256


def walsh_matrix(size: int) -> np.ndarray:
    """The orthonormal Walsh-Hadamard matrix (size, size) float32; size is a power of two."""
    matrix = np.ones((1, 1), np.float32)
    while matrix.shape[0] < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return (matrix / np.sqrt(size)).astype(np.float32)


def walsh_transform(x: jax.Array) -> jax.Array:
    """x · W over the last axis, in x's dtype.

    W is a Kronecker power, so a wide transform is two narrow matrix products; a narrow one is faster dense.
    """
    size = x.shape[-1]
    if size <= _DENSE_LIMIT:
        return x @ jnp.asarray(walsh_matrix(size), x.dtype)
    inner = 1 << (size.bit_length() - 1) // 2
    outer = size // inner
    split = x.reshape(*x.shape[:-1], outer, inner) @ jnp.asarray(walsh_matrix(inner), x.dtype)
    mixed = jnp.einsum("...ab,ac->...cb", split, jnp.asarray(walsh_matrix(outer), x.dtype))
    return mixed.reshape(x.shape)
