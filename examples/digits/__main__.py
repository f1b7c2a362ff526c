"""Trains the classifier from five seeds, judges it on a held-out fifth, and shows what was compiled."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

from examples.digits import dataset, training
from examples.digits.picture import draw
from examples.digits.progress import progress_bar
from examples.digits.recipes import BATCH, PERCEPTRON, RECIPES, SEEDS, SPLIT_SEED
from examples.digits.timing import step_times
from examples.digits.training import Programs, Run


def main() -> int:
    """The exit code: 0 if the mean accuracy is what it should be."""
    parser = argparse.ArgumentParser(prog="python -m examples.digits", description=__doc__)
    parser.add_argument(
        "--model", choices=RECIPES, default=PERCEPTRON.name, help="mlp: dense layers; cnn: convolutions"
    )
    parser.add_argument("--picture", type=Path, default=Path("output/digits.png"), help="where the PNG goes")
    options = parser.parse_args()

    recipe = RECIPES[options.model]

    begin = time.perf_counter()
    learned_from, held_out = dataset.split(dataset.load(), SPLIT_SEED)
    print(f"{len(learned_from)} images to learn from, {len(held_out)} held out, {len(SEEDS)} seeds")

    programs = training.make_programs(recipe)
    runs = train_all(programs, learned_from)
    accuracies = [training.accuracy(programs, run, held_out) for run in runs]
    for run, accuracy in zip(runs, accuracies, strict=True):
        print(f"  seed {run.seed}: loss {run.losses[0]:.3f} -> {run.losses[-1]:.3f}, held-out accuracy {accuracy:.2%}")
    mean = statistics.mean(accuracies)
    print(f"mean held-out accuracy {mean:.2%} (required: {recipe.required_accuracy:.1%})")

    report_programs(programs)
    if recipe is PERCEPTRON:
        compiled, by_hand = step_times(programs, learned_from)
        print(f"one training step of {BATCH} images: {compiled:.0f} us compiled, {by_hand:.0f} us in numpy")

    last = runs[-1]
    draw(options.picture, runs, held_out, training.predict(programs, last.parameters, held_out.images))
    print(f"picture: {options.picture}\ndone in {time.perf_counter() - begin:.1f} s")
    return 0 if mean >= recipe.required_accuracy else 1


def train_all(programs: Programs, examples: dataset.Examples) -> list[Run]:
    """One run per seed, one after the other."""
    epochs = programs.recipe.epochs * len(SEEDS)
    begin = time.perf_counter()
    with progress_bar(epochs * training.batches_per_epoch(examples), "training") as bar:
        runs = [training.train(programs, examples, seed, bar.update) for seed in SEEDS]
    print(f"{epochs} epochs, {(time.perf_counter() - begin) / epochs:.2f} s each, compilation included")
    return runs


def report_programs(programs: Programs) -> None:
    for title, function in (("training step", programs.step), ("prediction", programs.logits)):
        for program in function.programs:
            print(
                f"compiled {title}: {program.kernels} kernels, {program.fusions} fusions, "
                f"{program.compile_ms:.0f} ms to compile"
            )


if __name__ == "__main__":
    sys.exit(main())
