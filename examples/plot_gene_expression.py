"""
Gene programmes in an AnnData
=============================

``orthonmf.tl.onmf`` writes cells' and genes' parts where scanpy keeps its own results, and ``orthonmf.pl`` draws them.
"""

# %%
# Counts of 600 cells and 200 genes: five cell types, each with a programme of its own on top of a common background, and cells that were
# sequenced to very different depths. Real data would come from ``anndata.read_h5ad``.

import anndata
import numpy as np
import pandas as pd
from scipy import sparse

import orthonmf

rng = np.random.default_rng(0)
kinds = rng.choice(5, size=600, p=[0.4, 0.25, 0.15, 0.12, 0.08])
background = rng.gamma(0.6, 1.0, size=200)
programmes = np.array([np.where(np.arange(200) // 25 == kind, 8.0, 0.0) for kind in range(5)])
depth = rng.lognormal(0.0, 0.6, size=(600, 1))
counts = rng.poisson(depth * (background + programmes)[kinds])
adata = anndata.AnnData(sparse.csr_matrix(counts, dtype=np.float32))
adata.var_names = [f"gene{i}" for i in range(200)]
adata.obs["kind"] = [f"type {kind}" for kind in kinds]

# %%
# One call. The depth of a cell is its own scale, so counts need no normalisation: with ``scaling="item"`` (the default) a component is a
# direction. The matrix stays sparse, and the number of programmes is found.

orthonmf.tl.onmf(adata)
print(adata)
print(adata.uns["onmf"]["status"])

# %%
# Cells are labelled in ``obs``, as a clustering would be.

print(pd.crosstab(adata.obs["kind"], adata.obs["onmf"]))

# %%
# Why this number:

orthonmf.pl.persistence(adata)

# %%
# The genes of each programme, by name, from ``varm``:

for number in adata.obs["onmf"].cat.categories:
    weight = pd.Series(adata.varm["onmf"][:, int(number)], index=adata.var_names)
    print(number, ", ".join(weight.nlargest(6).index))

# %%
# All results survive ``adata.write_h5ad(...)``. With ``orthogonal="features"`` the *genes* are divided instead, each into one programme;
# a capacity keeps a programme from swallowing half of them.

orthonmf.tl.onmf(adata, 6, orthogonal="features", capacity=60, key_added="programme")
print(adata.var["programme"].value_counts().to_dict())
orthonmf.pl.sizes(adata, key="programme")
