"""Pearson's r of two columns of a CSV file, with numpy and nothing of the program: python FILE PEOPLE MODEL."""

import csv
import sys

import numpy as np

if __name__ == "__main__":
    path, people, model = sys.argv[1:]
    with open(path, encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row[people] and row[model] and row["country"] != "universal"]
    print(repr(float(np.corrcoef([[float(row[name]) for row in rows] for name in (people, model)])[0, 1])))
