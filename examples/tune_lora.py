"""Tune a model by LoRA on rows of `auditor export training --form chat-completion`.

    pip install "auditor[tune]"
    python examples/tune_lora.py rows.jsonl --model meta-llama/Meta-Llama-3-8B-Instruct -o tuned

The hyperparameters are those that "Aligning with Logic" (ICML 2025) prints in its appendix F. It does not say which
layers LoRA adapts, the dropout or the schedule of the learning rate; here these are the defaults of peft and TRL.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from datasets import load_dataset
from peft import LoraConfig
from trl import SFTConfig, SFTTrainer

LEARNING_RATE = 5e-5
EPOCHS = 2
WEIGHT_DECAY = 1e-2
LORA_RANK, LORA_ALPHA = 16, 64
BATCH_SIZE, GRADIENT_ACCUMULATION_STEPS = 4, 2


def main() -> None:
    """Train on the rows, and save the adapter and the tokenizer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path, help="rows of `auditor export training --form chat-completion`")
    parser.add_argument("--model", required=True, help="folder or name of the model to tune")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the adapter")
    parser.add_argument("--max-steps", type=int, default=-1, help="stop after so many steps, to try the script")
    parser.add_argument("--cpu", action="store_true", help="train on the CPU, even if there is a GPU")
    arguments = parser.parse_args()
    rows = load_dataset("json", data_files=str(arguments.rows), split="train")
    trainer = SFTTrainer(
        model=arguments.model,
        args=SFTConfig(
            output_dir=str(arguments.output),
            learning_rate=LEARNING_RATE,
            num_train_epochs=EPOCHS,
            weight_decay=WEIGHT_DECAY,
            per_device_train_batch_size=BATCH_SIZE,
            gradient_accumulation_steps=GRADIENT_ACCUMULATION_STEPS,
            max_steps=arguments.max_steps,
            use_cpu=arguments.cpu,
            bf16=not arguments.cpu,
            save_strategy="no",
            report_to="none",
        ),
        train_dataset=rows.select_columns(["prompt", "completion"]),
        peft_config=LoraConfig(r=LORA_RANK, lora_alpha=LORA_ALPHA, task_type="CAUSAL_LM"),
    )
    trainer.train()
    trainer.save_model(str(arguments.output))


if __name__ == "__main__":
    main()
