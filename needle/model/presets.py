"""Named configurations: the published models, and the small one that comes with needle."""

from __future__ import annotations

from needle.model.configuration import TransformerConfig

PRESETS: dict[str, TransformerConfig] = {
    "needle2": TransformerConfig(attn_dim=512, num_layers=27),
    "needle": TransformerConfig(d_model=768, attn_dim=768, num_heads=12, num_kv_heads=6, num_layers=27),
    "sample": TransformerConfig(
        vocab_size=1024,
        d_model=128,
        attn_dim=128,
        num_heads=4,
        num_kv_heads=2,
        num_layers=6,
        max_seq_len=1024,
        engram_slots=2048,
        engram_layers=(1, 4),
        dtype="float32",
    ),
}
