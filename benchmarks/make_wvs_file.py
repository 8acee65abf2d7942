"""Write a file in the format of the World Values Survey's wave 7, of the same size, with made-up answers.

    python benchmarks/make_wvs_file.py OUT.csv [--rows 94000] [--columns 600] [--seed 0]

`OUT.sav` writes SPSS, with value labels and with the codes of nonresponse declared missing, as the official file does.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

# Alphabetic and numeric codes of the countries of wave 7.
COUNTRIES = dict(re.findall(r"(\w+)=(\d+)", """
    AND=20 ARG=32 ARM=51 AUS=36 BGD=50 BOL=68 BRA=76 CAN=124 CHL=152 CHN=156 COL=170 CYP=196 CZE=203 DEU=276
    ECU=218 EGY=818 ETH=231 GBR=826 GRC=300 GTM=320 HKG=344 IDN=360 IND=356 IRN=364 IRQ=368 JOR=400 JPN=392
    KAZ=398 KEN=404 KGZ=417 KOR=410 LBN=422 LBY=434 MAC=446 MAR=504 MDV=462 MEX=484 MMR=104 MNG=496 MYS=458
    NGA=566 NIC=558 NIR=909 NLD=528 NZL=554 PAK=586 PER=604 PHL=608 PRI=630 ROU=642 RUS=643 SGP=702 SRB=688
    SVK=703 THA=764 TJK=762 TUN=788 TUR=792 TWN=158 UKR=804 URY=858 USA=840 UZB=860 VEN=862 VNM=704 ZWE=716
"""))  # fmt: skip
JUSTIFIABLE = range(177, 196)
NONRESPONSE: dict[int | float, str] = {-1: "Don't know", -2: "No answer", -4: "Not asked", -5: "Missing; Not available"}


def column_names(count: int) -> list[str]:
    """Names of the columns: identifiers, the questions Q1 to Q290, and fillers up to the count."""
    names = ["version", "doi", "A_WAVE", "B_COUNTRY", "B_COUNTRY_ALPHA", "D_INTERVIEW", "W_WEIGHT", "S018"]
    names += [f"Q{i}" for i in range(1, 291)]
    return (names + [f"X{i}" for i in range(max(0, count - len(names)))])[:count]


def draw_answers(rng: np.random.Generator, country: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    """Codes of the 19 questions: 1 to 10 around a level of country and topic, and every code of nonresponse."""
    strictness = rng.normal(0, 1, country.size)
    codes = {}
    for question in JUSTIFIABLE:
        level = rng.normal(4, 1.5) + rng.normal(0, 1.5, len(COUNTRIES))[country]
        question_codes = np.clip(np.rint(level + 1.5 * strictness + rng.normal(0, 2, country.size)), 1, 10).astype(
            np.int64
        )
        is_missing = rng.random(country.size) < 0.05
        question_codes[is_missing] = rng.choice([-1, -2, -5], is_missing.sum(), p=[0.6, 0.35, 0.05])
        question_codes[np.isin(country, rng.choice(len(COUNTRIES), 2, replace=False))] = -4
        codes[f"Q{question}"] = question_codes
    return codes


def make_columns(rows: int, count: int, seed: int) -> dict[str, NDArray[np.generic]]:
    """Make all columns with `rows` values each, by name."""
    rng = np.random.default_rng(seed)
    country = np.sort(rng.integers(0, len(COUNTRIES), rows))
    alpha_codes, numeric_codes = np.array(list(COUNTRIES), object), np.array(list(map(int, COUNTRIES.values())))
    known_columns: dict[str, NDArray[np.generic]] = {
        "version": np.full(rows, "5-0-0 (2022-05-18)", object),
        "doi": np.full(rows, "doi.org/10.14281/18241.20", object),
        "A_WAVE": np.full(rows, 7),
        "B_COUNTRY": numeric_codes[country],
        "B_COUNTRY_ALPHA": alpha_codes[country],
        "D_INTERVIEW": np.arange(1, rows + 1),
        "W_WEIGHT": np.round(rng.gamma(6, 1 / 6, rows) + 0.01, 6),
        **draw_answers(rng, country),
    }
    return {
        name: known_columns[name] if name in known_columns else rng.integers(-2, 11, rows)
        for name in column_names(count)
    }


def write_csv(path: Path, data: Mapping[str, NDArray[np.generic]]) -> None:
    """Comma-separated, text in quotes."""
    import pyarrow as pa
    from pyarrow import csv

    csv.write_csv(pa.table({name: pa.array(column) for name, column in data.items()}), path)


def write_sav(path: Path, data: Mapping[str, NDArray[np.generic]]) -> None:
    """SPSS, compressed, with labels."""
    import pandas as pd
    import pyreadstat

    labels: dict[int | float, str] = {**NONRESPONSE, 1: "Never justifiable", 10: "Always justifiable"}
    questions = [f"Q{question}" for question in JUSTIFIABLE if f"Q{question}" in data]
    pyreadstat.write_sav(
        pd.DataFrame(data),
        str(path),
        variable_value_labels=dict.fromkeys(questions, labels),
        missing_ranges={question: [{"lo": -99, "hi": -1}] for question in questions},
        row_compress=True,
    )


def main() -> None:
    """Write the file that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--rows", type=int, default=94_000)
    parser.add_argument("--columns", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    columns = make_columns(arguments.rows, arguments.columns, arguments.seed)
    (write_sav if arguments.out.suffix == ".sav" else write_csv)(arguments.out, columns)


if __name__ == "__main__":
    main()
