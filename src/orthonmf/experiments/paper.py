"""What the paper prints, as data.

S. Basiri, A. Bayati, S. M. Salapaka, "Orthogonal Nonnegative Matrix Factorization with Sparsity Constraints", 2025, Tables I and II.
Times that it marks with ≈ are whole numbers here; all its other times have decimals.
"""

from __future__ import annotations

CITATION = "Basiri, Bayati, Salapaka, Orthogonal Nonnegative Matrix Factorization with Sparsity Constraints, 2025"

Row = tuple[float, float, float, float, float]

# Table I: for each method E (%), O (%), S (%) and T (s) on data sets 1 to 5.
TABLE1: dict[str, dict[str, Row]] = {
    "MEP_ONMF": {
        "E": (0.026, 0.027, 0.028, 0.028, 30.678),
        "O": (100, 100, 100, 100, 100),
        "S": (95, 95, 95, 95, 66),
        "T": (0.040, 0.085, 0.252, 0.965, 0.033),
    },
    "ONMF_apx": {
        "E": (0.026, 0.027, 0.028, 0.028, 30.707),
        "O": (100, 100, 100, 100, 100),
        "S": (95, 95, 95, 95, 66),
        "T": (0.133, 0.264, 0.420, 1.239, 0.018),
    },
    "ONMF_Ding": {
        "E": (2.520, 0.107, 3.092, 5.375, 29.651),
        "O": (85, 97, 90, 87, 77),
        "S": (78, 78, 86, 87, 36),
        "T": (19.193, 46.584, 300, 1400, 0.311),
    },
    "ONMF_A": {
        "E": (4.235, 4.846, 2.130, 4.062, 30.006),
        "O": (74, 81, 90, 88, 80),
        "S": (66, 66, 61, 69, 30),
        "T": (1.789, 5.930, 17.181, 93.992, 0.054),
    },
    "PNMF": {
        "E": (4.305, 4.975, 7.345, 6.341, 30.250),
        "O": (81, 86, 82, 90, 84),
        "S": (79, 82, 82, 87, 42),
        "T": (31.185, 130, 530, 3600, 0.325),
    },
    "NHL": {
        "E": (5.166, 6.324, 6.538, 7.718, 30.432),
        "O": (82, 84, 88, 86, 76),
        "S": (80, 85, 86, 89, 33),
        "T": (27.051, 190, 550, 3560, 0.195),
    },
    "ONMF_EM": {
        "E": (9.522, 8.782, 9.839, 9.491, 31.169),
        "O": (100, 100, 100, 100, 100),
        "S": (95, 95, 95, 95, 66),
        "T": (0.086, 0.201, 0.666, 3.133, 0.012),
    },
    "HALS": {
        "E": (0.006, 0.483, 1.042, 0.049, 32.663),
        "O": (13, 13, 26, 46, 100),
        "S": (24, 29, 52, 56, 66),
        "T": (2.099, 2.783, 26.565, 90.312, 0.019),
    },
    "iONMF": {
        "E": (1.917, 5.006, 7.098, 8.947, 28.723),
        "O": (10, 11, 14, 17, 34),
        "S": (0, 0, 0, 0, 3),
        "T": (0.071, 0.139, 0.314, 1.269, 0.007),
    },
    "NMF": {
        "E": (0.028, 0.091, 0.210, 0.528, 28.229),
        "O": (10, 14, 28, 46, 30),
        "S": (0, 0, 16, 37, 4),
        "T": (0.348, 4.788, 30.208, 300, 0.322),
    },
}

# Table II: D and the largest share of the genes, at seven times, without bounds and with c/n ≤ 0.35.
FREE_COST = (13.8, 12.2, 22.0, 16.4, 23.5, 19.9, 17.1)
FREE_SHARE = (0.83, 0.87, 0.83, 0.83, 0.83, 0.87, 0.87)
BOUNDED_COST = (47.0, 56.7, 50.6, 64.7, 64.5, 48.8, 48.2)
BOUNDED_SHARE = (0.36,) * 7
BOUND = 0.35

# Figure 1: where the paper sees the largest ratio of successive critical values.
PEAKS = (3, 3, 3, 4, 3, 3, 3)
