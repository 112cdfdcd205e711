"""What this machine has, and what of it JAX can really use. Never imports JAX: probes are children.

inventory: static hints, cached and probed answers.  memory: host and NVIDIA memory.  doctor: findings.
"""
